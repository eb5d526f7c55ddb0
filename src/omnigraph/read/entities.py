"""One node or edge by its id, with its values as results show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.choices import Target
from omnigraph.ledger.snapshots import entity_row
from omnigraph.ledger.values import MAIN
from omnigraph.query.ir import ResultColumn
from omnigraph.read.result.formats import python_rows
from omnigraph.schema.entities import entity_columns, hidden_properties
from omnigraph.schema.types import Scalar, ScalarType, ValueType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

TEXT = ScalarType(Scalar.STRING)


def entity(
    store: GraphStore, type_name: str, entity_id: Any, at: Target = None, branch: str = MAIN
) -> dict[str, Any] | None:
    """One node or edge by type and id at a target, or None."""
    graph_type, rows = entity_row(store, type_name, entity_id, at, branch)
    if not rows.num_rows:
        return None
    hidden = hidden_properties(graph_type)
    types: dict[str, ValueType] = {p.name: p.type for p in graph_type.properties}
    shown = {column: name for column, name in entity_columns(graph_type).items() if name not in hidden}
    columns = [ResultColumn(name, types.get(name, TEXT)) for name in shown.values()]
    (batch,) = rows.select(list(shown)).rename_columns(list(shown.values())).combine_chunks().to_batches()
    return next(python_rows(batch, columns))
