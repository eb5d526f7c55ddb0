"""Changes of a table's columns as a new Lance schema that keeps the field ids.

Lance finds a column's data by its field id, not by its name. A rename, a drop, a new all-null column and a change of
nullability are therefore changes of the schema alone, if the ids of the others stay. Lance's Python package has no
way to build such a schema, but its schemas pickle as one protobuf message per field, and those are edited here. A new
column must get an id that no data file ever used, or it would show the data of a dropped one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from lance.schema import LanceSchema

from omnigraph.errors import BadRequest

# Numbers of the protobuf message `lance.file.Field` that are edited here.
_NAME, _ID, _PARENT_ID, _NULLABLE = 2, 3, 4, 6
_NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class _Field:
    """One field, in the depth-first order of the schema; `rest` are the parts of the message that stay as they are."""

    name: str
    id: int
    parent_id: int
    nullable: bool
    rest: bytes


def changed_schema(
    schema: LanceSchema,
    highest_field_id: int,
    *,
    add: Sequence[pa.Field] = (),
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    nullable: Mapping[str, bool] | None = None,
) -> LanceSchema:
    """The schema after the change. Names of `rename`, `drop` and `nullable` are those before it."""
    rename, nullable = rename or {}, nullable or {}
    metadata, fields = _parts(schema)
    top = {field.name: field.id for field in fields if field.parent_id == _NO_PARENT}
    unknown = [name for name in (*rename, *drop, *nullable) if name not in top]
    if unknown:
        raise BadRequest(f"the table has no column `{unknown[0]}`; it has {', '.join(top)}")
    dropped = {top[name] for name in drop}
    kept: list[_Field] = []
    for field in fields:
        if field.id in dropped or field.parent_id in dropped:
            dropped.add(field.id)
        elif field.parent_id == _NO_PARENT:
            kept.append(
                replace(
                    field,
                    name=rename.get(field.name, field.name),
                    nullable=nullable.get(field.name, field.nullable),
                )
            )
        else:
            kept.append(field)
    kept += _new_fields(add, highest_field_id + 1)
    names = [field.name for field in kept if field.parent_id == _NO_PARENT]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise BadRequest(f"the change would give the table two columns called `{repeated[0]}`")
    return LanceSchema._from_protos(metadata, *(_encode(field) for field in kept))


def _new_fields(add: Sequence[pa.Field], first_id: int) -> list[_Field]:
    if not add:
        return []
    required = [field.name for field in add if not field.nullable]
    if required:
        raise BadRequest(f"the new column `{required[0]}` must be nullable: existing rows have no value for it")
    _, fields = _parts(LanceSchema.from_pyarrow(pa.schema(add)))
    return [
        replace(
            field,
            id=field.id + first_id,
            parent_id=field.parent_id if field.parent_id == _NO_PARENT else field.parent_id + first_id,
        )
        for field in fields
    ]


def _parts(schema: LanceSchema) -> tuple[str, list[_Field]]:
    _, (metadata, *messages) = schema.__reduce__()
    return metadata, [_decode(message) for message in messages]


def _decode(message: bytes) -> _Field:
    name, own_id, parent_id, nullable, rest = "", 0, 0, False, b""
    position = 0
    while position < len(message):
        start = position
        key, position = _read_varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _read_varint(message, position)
            content = b""
        elif wire == 2:
            value, position = _read_varint(message, position)
            content = message[position : position + value]
            position += value
        else:
            raise BadRequest(f"a field of the table is stored in a form that is not known here (wire type {wire})")
        if number == _NAME:
            name = content.decode()
        elif number == _ID:
            own_id = _signed(value)
        elif number == _PARENT_ID:
            parent_id = _signed(value)
        elif number == _NULLABLE:
            nullable = bool(value)
        else:
            rest += message[start:position]
    return _Field(name, own_id, parent_id, nullable, rest)


def _encode(field: _Field) -> bytes:
    name = field.name.encode()
    message = _varint(_NAME << 3 | 2) + _varint(len(name)) + name
    message += _varint(_ID << 3) + _varint(field.id)
    message += _varint(_PARENT_ID << 3) + _varint(field.parent_id)
    message += _varint(_NULLABLE << 3) + _varint(int(field.nullable))
    return message + field.rest


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
