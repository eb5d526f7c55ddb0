"""The returned columns, made for a stretch of rows at a time: only rows that survived everything else are looked up."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.query.evaluate.room import bytes_of, take_room
from omnigraph.read.codes.arrays import Codes, are_few, bytes_taken
from omnigraph.read.state.frame import EntityCodes, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.union import over_present
from omnigraph.read.tables.arrow_types import result_type, shown_columns, shows_type
from omnigraph.schema.types import EntityType


def project(run: Run, frame: Frame, columns: tuple[ir.Column, ...], schema: pa.Schema) -> pa.RecordBatch:
    """The columns of these rows, with the types that the query promises."""
    _fetch_together(run, frame, columns)
    arrays = [_column(run, frame, column) for column in columns]
    arrays = [_typed(array, field) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fetch_together(run: Run, frame: Frame, columns: tuple[ir.Column, ...]) -> None:
    """Look up the plain properties of each variable in one go; what is kept from it is read again below."""
    wanted: dict[str, list[str]] = {}
    for column in columns:
        if isinstance(column.expr, ir.Prop):
            wanted.setdefault(column.expr.var, []).append(column.expr.column)
        elif isinstance(column.expr, ir.Entity) and isinstance(column.type, EntityType):
            wanted.setdefault(column.expr.var, []).extend(shown_columns(run.catalog, column.type.table_key))
    for var, names in wanted.items():
        if len(names) > 1:
            codes = frame.bindings[var]
            run.entities(run.variables[var]).prefetch(codes[codes >= 0], names)


def _typed(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    if pa.types.is_large_string(array.type) and pa.types.is_string(field.type) and are_few(array):
        return pa.array(array.to_pylist(), field.type)
    take_room(bytes_of(array, len(array)), f"the texts of `{field.name}`")
    return array.cast(field.type)


def _column(run: Run, frame: Frame, column: ir.Column) -> pa.Array:
    match column.expr:
        case ir.Entity(var=var) if isinstance(column.type, EntityType):
            return entities(run, column.type, run.variables[var], frame.bindings[var])
        case ir.ColumnRef(name=name) if isinstance(computed := frame.columns[name], EntityCodes):
            assert isinstance(column.type, EntityType)
            return entities(run, column.type, computed.tables, computed.codes)
        case ir.ColumnRef(name=name):
            return frame.columns[name]
        case ir.Prop(var=var):
            values = run.values(run.variables[var], frame.bindings[var], [column.expr])[0]
            run.memory.expect("the values of properties", bytes_taken(values))
            return values
        case ir.Literal(value=None):
            return pa.nulls(frame.length, result_type(column.type, run.catalog))
        case _:
            return run.evaluate(column.expr, frame)


def entities(run: Run, type_: EntityType, tables: tuple[str, ...], codes: Codes) -> pa.StructArray:
    """Entities as structs: the id, of several types the type, the ends of an edge, the properties; null for none."""
    struct = result_type(type_, run.catalog)
    names = shown_columns(run.catalog, type_.table_key)

    def made(present: Codes) -> list[pa.Array]:
        space = run.entities(tables)
        arrays = [space.ids(present)]
        arrays += [run.type_names(tables, present)] if shows_type(type_.table_key) else []
        arrays += space.columns(present, names) if names else []
        typed = [_typed(array, field) for array, field in zip(arrays, struct, strict=True)]
        return [pa.StructArray.from_arrays(typed, fields=list(struct))]

    return over_present(codes, made)[0]
