"""The type checker: from a syntax tree to typed IR expressions, with every error of a query collected."""

__all__ = ["blocks", "match", "mutation", "parameters", "results", "scope", "values"]
