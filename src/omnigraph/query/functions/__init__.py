"""The functions of the language: one table (`table`), the language of its signatures, and the kernels on Arrow."""

__all__ = ["kernels", "signatures", "table", "types"]
