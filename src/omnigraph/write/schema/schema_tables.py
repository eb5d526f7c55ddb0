"""The table side of a schema apply: one staged change of columns for each table whose columns change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.ledger.layout import physical_schema
from omnigraph.ledger.store import GraphStore
from omnigraph.schema.catalog import GraphType, Property, property_column
from omnigraph.schema.migration.migration_steps import (
    AddProperty,
    DropProperty,
    RenameProperty,
    RequireProperty,
    Step,
    UpdatePropertyMetadata,
    WidenProperty,
)
from omnigraph.storage.staging.filling import Fill
from omnigraph.storage.values import StagedWrite, TableVersion


@dataclass(slots=True)
class ColumnChanges:
    """What happens to the columns of one table. Those in `rename`, `drop` and `nullable` are from before it.

    `widen` are columns from before it that are written anew for the property as it is afterwards.
    """

    add: list[Property] = field(default_factory=list)
    rename: dict[str, str] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    nullable: dict[str, bool] = field(default_factory=dict)
    widen: dict[str, Property] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.add or self.rename or self.drop or self.nullable or self.widen)


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
            changes.nullable[columns_before[step.property_id]] = True
        elif isinstance(step, RequireProperty):
            changes.nullable[columns_before[step.property_id]] = False
        elif isinstance(step, WidenProperty):
            changes.widen[columns_before[step.property_id]] = new.by_name[step.property]
    for column in changes.widen:
        # The new column comes with its name and nullability.
        changes.rename.pop(column, None)
        changes.nullable.pop(column, None)
    return changes


def stage_columns(
    store: GraphStore, line: TableVersion, new: GraphType, changes: ColumnChanges, row_count: int
) -> StagedWrite:
    """Stage the changes as one transaction. Metadata alone, unless rows get values: defaults, or in wider columns."""
    fields = {f.name: f for f in physical_schema(new)}
    if not row_count:
        return store.tables.stage_overwrite(line, [], physical_schema(new))
    filled = [p for p in changes.add if p.has_default and p.default is not None]
    empty = [fields[p.column] for p in changes.add if p not in filled]
    if not filled and not changes.widen:
        return store.tables.stage_columns(
            line, add=empty, rename=changes.rename, drop=changes.drop, nullable=changes.nullable
        )
    wider = {column: fields[p.column].with_name(f"{_WIDER}{p.column}") for column, p in changes.widen.items()}
    return store.tables.stage_filled_columns(
        line,
        _filling([fields[p.column] for p in filled], filled, wider),
        read=["id", *wider],
        add=empty,
        rename={**changes.rename, **{field.name: field.name.removeprefix(_WIDER) for field in wider.values()}},
        drop=[*changes.drop, *wider],
        nullable=changes.nullable,
    )


_WIDER = "__wider_"
"""No column of a table begins so: it is the name of one that is about to take the place of another."""


def _filling(fields: Sequence[pa.Field], properties: Sequence[Property], wider: Mapping[str, pa.Field]) -> Fill:
    """New columns with their defaults, then columns in a wider type."""
    schema = pa.schema([*fields, *wider.values()])
    defaults = [default_scalar(p, f.type) for p, f in zip(properties, fields, strict=True)]

    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [pa.repeat(value, batch.num_rows) for value in defaults]
        columns += [widened(batch.column(column), field.type) for column, field in wider.items()]
        return pa.record_batch(columns, schema=schema)

    return fill


def widened(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same values in a wider type. A 32-bit float is the number that it is shown as."""
    if pa.types.is_float32(values.type) and pa.types.is_float64(type_):
        return values.cast(pa.utf8()).cast(type_)
    return values.cast(type_, safe=not pa.types.is_floating(type_))


def default_scalar(property_: Property, type_: pa.DataType) -> pa.Scalar:
    """The default of a property as an Arrow value; dates and datetimes are written as ISO text in `.pg`."""
    if isinstance(property_.default, str) and pa.types.is_temporal(type_):
        return pa.scalar(property_.default).cast(type_)
    return pa.scalar(property_.default, type_)
