"""The schema language (`.pg`): grammar, syntax tree, catalog, migration planning. No I/O.

The names below are loaded when they are first used, so that importing the package costs nothing. `arrow` is not among
them: it needs pyarrow, and is imported by name where tables are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property
    from omnigraph.schema.catalog_json import (
        accepted_schema_bytes,
        accepted_schema_from_bytes,
        catalog_digest,
        catalog_from_json,
        catalog_to_json,
    )
    from omnigraph.schema.codes import MIGRATION_CODES, SCHEMA_CODES
    from omnigraph.schema.compiler.compile import CheckedSchema, check_schema, compile_schema
    from omnigraph.schema.diagram import schema_diagram
    from omnigraph.schema.ids.identity import canonical_scalar, edge_id, node_id
    from omnigraph.schema.migration.migrate import DataFacts, MigrationPlan, plan, plan_from_json, plan_sources
    from omnigraph.schema.patterns import anchored_pattern, portable_pattern
    from omnigraph.schema.syntax.format import format_schema
    from omnigraph.schema.syntax.parse import parse_schema

_HOMES = {
    "catalog": ("Catalog", "EdgeType", "NodeType", "Property"),
    "catalog_json": (
        "accepted_schema_bytes",
        "accepted_schema_from_bytes",
        "catalog_digest",
        "catalog_from_json",
        "catalog_to_json",
    ),
    "codes": ("MIGRATION_CODES", "SCHEMA_CODES"),
    "compiler.compile": ("CheckedSchema", "check_schema", "compile_schema"),
    "diagram": ("schema_diagram",),
    "syntax.format": ("format_schema",),
    "ids.identity": ("canonical_scalar", "edge_id", "node_id"),
    "migration.migrate": ("DataFacts", "MigrationPlan", "plan", "plan_from_json", "plan_sources"),
    "syntax.parse": ("parse_schema",),
    "patterns": ("anchored_pattern", "portable_pattern"),
}
_PUBLIC = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "MIGRATION_CODES",
    "SCHEMA_CODES",
    "Catalog",
    "CheckedSchema",
    "DataFacts",
    "EdgeType",
    "MigrationPlan",
    "NodeType",
    "Property",
    "accepted_schema_bytes",
    "accepted_schema_from_bytes",
    "anchored_pattern",
    "canonical_scalar",
    "catalog_digest",
    "catalog_from_json",
    "catalog_to_json",
    "check_schema",
    "compile_schema",
    "edge_id",
    "format_schema",
    "node_id",
    "parse_schema",
    "plan",
    "plan_from_json",
    "plan_sources",
    "portable_pattern",
    "schema_diagram",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
