"""Vectors for texts that are stored already: find the rows, make the vectors, write them in one commit.

What a provider has answered is kept on a shelf below the graph's root until the commit is made, so a run that was
killed goes on where it was.
"""

__all__ = ["embed_results", "embed_texts", "embed_work", "shelf"]
