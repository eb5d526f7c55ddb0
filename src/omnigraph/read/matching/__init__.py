"""The steps of a match block: each takes the bindings found so far and gives more or fewer of them."""

__all__ = ["expand", "inner", "join", "paths", "ranked_scan", "scan"]
