"""Text to vectors: one client for stored text and for query text, so that both lie in one space.

Entrances: `provider_settings` reads which provider is meant, `client` makes it and guards every vector that comes back,
`provider` is what a provider is; `text_vectors` makes the imprinted vectors of stored texts, `due` says which rows want
one. The providers themselves are details.
"""

__all__ = ["client", "due", "imprints", "mock", "provider", "provider_settings", "text_vectors"]
