"""Text and vector search: tokens, their index in memory, distances, and the masks and scores that a query asks for."""

__all__ = ["ranking", "text_index", "tokenizer", "vectors"]
