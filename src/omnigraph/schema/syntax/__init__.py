"""Text to syntax tree and back: the grammar, its errors in words, the formatter."""

__all__ = ["format", "parse", "source", "syntax"]
