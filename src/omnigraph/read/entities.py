"""One node or edge by its id, with its values as results show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.ledger.snapshots import Target, entity_row
from omnigraph.ledger.values import MAIN
from omnigraph.query.ir import ResultColumn
from omnigraph.read.formats import python_rows
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.entities import hidden_properties, shown_entity
from omnigraph.schema.types import Scalar, ScalarType, ValueType

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

TEXT = ScalarType(Scalar.STRING)
ENDS = {"src": TEXT, "dst": TEXT}


def entity(
    store: GraphStore, type_name: str, entity_id: str, at: Target = None, branch: str = MAIN
) -> dict[str, Any] | None:
    """One node or edge by type and id at a target, or None."""
    graph_type, rows = entity_row(store, type_name, entity_id, at, branch)
    if not rows.num_rows:
        return None
    hidden = hidden_properties(graph_type)
    types: dict[str, ValueType] = {"id": TEXT, **(ENDS if isinstance(graph_type, EdgeType) else {})}
    types |= {p.name: p.type for p in graph_type.properties if p.name not in hidden}
    columns = [ResultColumn(name, type_) for name, type_ in types.items()]
    (batch,) = rows.select(list(types)).combine_chunks().to_batches()
    return shown_entity(next(python_rows(batch, columns)), hidden)
