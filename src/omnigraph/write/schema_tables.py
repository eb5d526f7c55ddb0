"""The table side of a schema apply: one staged change of columns for each table whose columns change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.store import GraphStore
from omnigraph.schema.catalog import GraphType, Property, property_column
from omnigraph.schema.migration_steps import (
    AddProperty,
    DropProperty,
    RenameProperty,
    Step,
    UpdatePropertyMetadata,
)
from omnigraph.storage.filling import Fill
from omnigraph.storage.values import StagedWrite, TableVersion


@dataclass(slots=True)
class ColumnChanges:
    """What happens to the columns of one table. Those in `rename`, `drop` and `loosen` are from before it."""

    add: list[Property] = field(default_factory=list)
    rename: dict[str, str] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    loosen: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.add or self.rename or self.drop or self.loosen)


def column_changes(steps: Iterable[Step], old: GraphType, new: GraphType) -> ColumnChanges:
    """The changes of columns that the steps of one type ask for."""
    changes = ColumnChanges()
    columns_before = {p.id: p.column for p in old.properties}
    for step in steps:
        if isinstance(step, AddProperty):
            changes.add.append(new.by_name[step.property])
        elif isinstance(step, RenameProperty):
            changes.rename[property_column(step.old_property)] = property_column(step.property)
        elif isinstance(step, DropProperty):
            changes.drop.append(property_column(step.property))
        elif isinstance(step, UpdatePropertyMetadata) and "nullable" in step.changes:
            changes.loosen.append(columns_before[step.property_id])
    return changes


def stage_columns(
    store: GraphStore, line: TableVersion, new: GraphType, changes: ColumnChanges, row_count: int
) -> StagedWrite:
    """Stage the changes as one transaction. Metadata alone, unless a new property has a default and there are rows."""
    fields = {f.name: f for f in physical_schema(new)}
    if not row_count:
        return store.tables.stage_overwrite(line, [], physical_schema(new))
    filled = [p for p in changes.add if p.has_default and p.default is not None]
    empty = [fields[p.column] for p in changes.add if p not in filled]
    loosen = dict.fromkeys(changes.loosen, True)
    if not filled:
        return store.tables.stage_columns(line, add=empty, rename=changes.rename, drop=changes.drop, nullable=loosen)
    return store.tables.stage_filled_columns(
        line,
        _defaults([fields[p.column] for p in filled], filled),
        read=["id"],
        add=empty,
        rename=changes.rename,
        drop=changes.drop,
        nullable=loosen,
    )


def _defaults(fields: Sequence[pa.Field], properties: Sequence[Property]) -> Fill:
    schema = pa.schema(fields)
    values = [default_scalar(p, f.type) for p, f in zip(properties, fields, strict=True)]

    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pa.repeat(value, batch.num_rows) for value in values], schema=schema)

    return fill


def default_scalar(property_: Property, type_: pa.DataType) -> pa.Scalar:
    """The default of a property as an Arrow value; dates and datetimes are written as ISO text in `.pg`."""
    if isinstance(property_.default, str) and pa.types.is_temporal(type_):
        return pa.scalar(property_.default).cast(type_)
    return pa.scalar(property_.default, type_)
