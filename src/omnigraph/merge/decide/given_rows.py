"""Rows that a caller gave as the answer to a conflict: whole rows, made of what was given over what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.compare.images import compared_columns, whole_rows
from omnigraph.merge.decide.conflicts import Resolution, Resolutions
from omnigraph.merge.decide.mixed_rows import mixed_rows
from omnigraph.schema.catalog import Catalog, GraphType, column_title
from omnigraph.schema.ids.given_ids import IdForm, own_forms
from omnigraph.write.decode.source_values import BadValue, to_id, to_value
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.row_ids import derived_ids
from omnigraph.write.validate.messages import show, wrong_type

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.merge.decide.three_way import TableMerge


def checked_answers(catalog: Catalog, resolutions: Resolutions) -> Resolutions:
    """The answers with their values as they are stored. `BadRequest` for a table, property or value that cannot be."""
    rows = resolutions.rows or {}
    return replace(resolutions, rows={key: _checked_answer(catalog, *key, answer) for key, answer in rows.items()})


def _checked_answer(catalog: Catalog, table_key: str, row_id: str, answer: Resolution) -> Resolution:
    type_ = catalog.table(table_key)
    if type_ is None:
        known = [known.table_key for known in catalog.types()]
        hint = did_you_mean(table_key, known) or did_you_mean(f"node:{table_key}", known)
        raise BadRequest(
            f"a resolution is about ({table_key!r}, {row_id!r}): the graph has no table `{table_key}`"
            f"{'; ' + hint if hint else ''}"
        )
    if not isinstance(answer, dict):
        return answer
    forms = own_forms(catalog, type_)
    return {_column(type_, name): _checked_value(type_, forms, row_id, name, value) for name, value in answer.items()}


def _column(type_: GraphType, name: str) -> str:
    """The column that an answer means: that of a property, else `id` or an end of an edge, also as `@id`."""
    property_ = type_.by_name.get(name)
    return property_.column if property_ is not None else name.removeprefix("@")


def _checked_value(type_: GraphType, forms: Mapping[str, IdForm], row_id: str, name: str, value: Any) -> Any:
    """A value of an answer, by the rules for values that are loaded: nothing is cast in silence."""
    about = f"the row given for {type_.table_key} `{row_id}`"
    if _column(type_, name) not in compared_columns(type_):
        hint = did_you_mean(name, [column_title(column) for column in compared_columns(type_)])
        raise BadRequest(f"{about}: {type_.name} has no property `{name}`{'; ' + hint if hint else ''}")
    property_ = type_.by_name.get(name)
    try:
        found = to_id(forms[name.removeprefix("@")], value) if property_ is None else to_value(property_.type, value)
    except BadValue as problem:
        expected = "an id" if property_ is None else property_.type
        raise BadRequest(f"{about}: {wrong_type(name, expected, value, problem.why)}") from None
    if property_ is None and name.endswith("id") and found != row_id:
        raise BadRequest(f"{about} has the id {show(value)}; leave it out, since an id cannot be changed")
    return found


def given_rows(store: GraphStore, table: TableMerge) -> pa.Table | None:
    """The rows that were given, None when there are none.

    What an answer does not mention is as on the target, or as on the source when the target has no such row. Of a row
    that both sides changed in different properties it is what was put together of them.
    """
    if not table.given:
        return None
    assert table.target is not None
    ids = pa.array(sorted(table.given), pa.utf8())
    known: dict[str, dict[str, Any]] = {}
    for pin in (table.source, table.target):
        for piece in whole_rows(store, table_of(pin), table.type, ids):
            known |= {row["id"]: _as_stored(table.type, row) for row in piece.to_pylist()}
    below = table.mixed.filter(pc.is_in(table.mixed["id"], value_set=ids))
    for piece in mixed_rows(store, table.type, table_of(table.source), table_of(table.target), below):
        known |= {row["id"]: _as_stored(table.type, row) for row in piece.to_pylist()}
    rows = [{**known.get(id_, {}), **table.given[id_], "id": id_} for id_ in ids.to_pylist()]
    return _whole(table.type, rows)


def _as_stored(type_: GraphType, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{p.column: to_value(p.type, row[p.column]) for p in type_.properties}}


def _whole(type_: GraphType, rows: list[dict[str, Any]]) -> pa.Table:
    schema = working_schema(type_)
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    table = pa.Table.from_arrays(columns, schema=schema)
    if type_.key:
        for id_, derived in zip(table["id"].to_pylist(), derived_ids(type_, table).to_pylist()):
            if id_ != derived:
                raise BadRequest(
                    f"the row given for {type_.table_key} `{id_}` has another key ({derived or 'incomplete'}); a key "
                    "cannot be changed: delete the row and insert another one"
                )
    return table
