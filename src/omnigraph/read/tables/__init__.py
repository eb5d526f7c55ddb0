"""The tables of one snapshot as reads see them: the few questions that can be asked of them, and what is kept of the
answers between queries.
"""

__all__ = ["arrow_types", "caches", "reader", "stored", "topology", "values"]
