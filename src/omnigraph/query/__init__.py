"""The query language, without any engine: text to IR, the meaning of expressions, parameters, lint.

`text` reads and writes the language, `check` types it, `lower` makes `ir` of it. `functions` is the one table of
functions; `evaluate` is what expressions mean on Arrow. Engines import `ir`, `evaluate`, `predicates`, `typing` and
`bind`; surfaces import `lower`, `text`, `lint` and `cache`.
"""

__all__ = [
    "bind",
    "blobs",
    "cache",
    "check",
    "codes",
    "completion",
    "evaluate",
    "functions",
    "ir",
    "lint",
    "lower",
    "moments",
    "predicates",
    "text",
    "typing",
]
