"""Text and vector search: tokens, sets of rows that match, the best rows of a table, and the scores of bound ones."""

__all__ = ["analyzer", "best_rows", "corpora", "query_texts", "ranking", "row_sets", "searched", "texts", "vectors"]
