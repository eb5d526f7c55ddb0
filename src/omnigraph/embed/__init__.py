"""Text to vectors: one client for stored text and for query text, so that both lie in one space.

Entrances: `provider_settings` reads which provider is meant, `client` makes it and guards every vector that comes back,
`provider` is what a provider is. The providers themselves are details.
"""

__all__ = ["client", "mock", "provider", "provider_settings"]
