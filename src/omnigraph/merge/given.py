"""Rows that a caller gave as the answer to a conflict: whole rows, made of what was given over what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest
from omnigraph.ledger.snapshots import table_of
from omnigraph.merge.conflicts import Resolutions
from omnigraph.merge.images import compared_columns, whole_rows
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.write.columns import empty_rows, working_schema
from omnigraph.write.identity import derived_ids

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore
    from omnigraph.merge.three_way import TableMerge


def check_answers(catalog: Catalog, resolutions: Resolutions) -> None:
    """Refuse answers about tables that do not exist, and rows with properties that their type does not have."""
    for (table_key, row_id), answer in (resolutions.rows or {}).items():
        type_ = catalog.table(table_key)
        if type_ is None:
            hint = did_you_mean(table_key, [known.table_key for known in catalog.types()])
            raise BadRequest(
                f"a resolution is about ({table_key!r}, {row_id!r}): the graph has no table `{table_key}`"
                f"{'; ' + hint if hint else ''}"
            )
        if isinstance(answer, dict):
            _check_names(type_, row_id, answer)


def given_rows(store: GraphStore, table: TableMerge) -> pa.Table | None:
    """The rows that were given, None when there are none.

    What an answer does not mention is as on the target, or as on the source when the target has no such row.
    """
    if not table.given:
        return None
    ids = pa.array(sorted(table.given), pa.utf8())
    known: dict[str, dict[str, Any]] = {}
    for pin in (table.source, table.target):
        for piece in whole_rows(store, table_of(pin), table.type, ids):
            known |= {row["id"]: row for row in piece.to_pylist()}
    rows = [{**known.get(id_, {}), **table.given[id_], "id": id_} for id_ in ids.to_pylist()]
    return _checked(table.type, rows)


def _checked(type_: GraphType, rows: list[dict[str, Any]]) -> pa.Table:
    schema = working_schema(type_)
    columns = []
    for field in schema:
        try:
            columns.append(pa.array([row.get(field.name) for row in rows], field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BadRequest(
                f"a row given for {type_.table_key} has a value for `{field.name}` that does not fit {field.type}"
            ) from error
    table = pa.Table.from_arrays(columns, schema=schema) if rows else empty_rows(type_)
    if type_.key:
        for id_, derived in zip(table["id"].to_pylist(), derived_ids(type_, table).to_pylist()):
            if id_ != derived:
                raise BadRequest(
                    f"the row given for {type_.table_key} `{id_}` has another key ({derived or 'incomplete'}); a key "
                    "cannot be changed: delete the row and insert another one"
                )
    return table


def _check_names(type_: GraphType, row_id: str, answer: Mapping[str, Any]) -> None:
    known = compared_columns(type_)
    for name in answer:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise BadRequest(
                f"the row given for {type_.table_key} `{row_id}`: {type_.name} has no property `{name}`"
                f"{'; ' + hint if hint else ''}"
            )
