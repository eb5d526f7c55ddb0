"""Text and vector search: tokens, sets of rows that match, the best rows of a table, and the scores of bound ones."""

__all__ = ["analyzer", "corpora", "ranking", "row_sets", "searched", "texts", "top", "vectors"]
