"""The schema language (`.pg`): grammar, syntax tree, catalog, migration planning. No I/O.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Catalog": "catalog",
    "CheckedSchema": "compile",
    "check_schema": "compile",
    "compile_schema": "compile",
    "parse_schema": "parse",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
