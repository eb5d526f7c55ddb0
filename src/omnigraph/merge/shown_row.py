"""A row of a table as changes show it: by the names of its properties, with 32-bit floats as everywhere else.

Arrow hands out a 32-bit float with the digits of the 64-bit one beside it: 0.10000000149011612 for what was written,
exported and queried as 0.1. That is also what the value becomes where its property gets wider, and no change tells of
that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from omnigraph.schema.catalog import GraphType
from omnigraph.schema.entities import entity_columns
from omnigraph.schema.types import ListType, PropertyType, Scalar, ScalarType, VectorType


def shown_row(graph_type: GraphType, row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row of the type's table by the names that its columns have where the entity is shown."""
    if row is None:
        return None
    names = entity_columns(graph_type)
    shown = {names[column]: value for column, value in row.items()}
    for property_ in graph_type.properties:
        if shown.get(property_.name) is not None and _is_narrow(property_.type):
            shown[property_.name] = _shortest(shown[property_.name])
    return shown


def _is_narrow(type_: PropertyType) -> bool:
    match type_:
        case VectorType() | ScalarType(scalar=Scalar.F32) | ListType(item=Scalar.F32):
            return True
        case _:
            return False


def _shortest(value: Any) -> Any:
    """The fewest digits that read back as the same 32 bits."""
    narrow = np.asarray(value, np.float32).reshape(-1)
    shown = orjson.loads(orjson.dumps(narrow, option=orjson.OPT_SERIALIZE_NUMPY))
    return shown if isinstance(value, list) else shown[0]
