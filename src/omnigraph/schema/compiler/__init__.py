"""From a syntax tree to a catalog: names, properties, constraints, stable ids, and every error at once."""

__all__ = ["annotations", "compile"]
