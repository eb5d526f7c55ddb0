"""The steps of a migration as plain immutable values, with a JSON form and a line of text for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from omnigraph.errors import BadRequest
from omnigraph.schema.catalog import Cardinality, Check, LiteralValue, Range, column_titles
from omnigraph.schema.catalog_json import type_from_json, type_to_json
from omnigraph.schema.literals import encode_string
from omnigraph.schema.types import EnumType, ListType, PropertyType, ScalarType, VectorType


@dataclass(frozen=True, slots=True)
class Key:
    """`@key(…)`, by the columns of what it names."""

    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """`@unique(…)`, by the columns of what it names."""

    properties: tuple[str, ...]


Constraint = Key | Unique | Range | Check | Cardinality


@dataclass(frozen=True, slots=True)
class AddType:
    """Register a new table."""

    kind: ClassVar[str] = "add_type"
    table_key: str
    type_id: str


@dataclass(frozen=True, slots=True)
class RenameType:
    """Re-label a table. `table_key` is the new one; all other steps use it too."""

    kind: ClassVar[str] = "rename_type"
    table_key: str
    type_id: str
    old_table_key: str


@dataclass(frozen=True, slots=True)
class DropType:
    """Tombstone a table; `hard` also removes its old versions. `rows` is None when nobody looked."""

    kind: ClassVar[str] = "drop_type"
    table_key: str
    type_id: str
    hard: bool
    rows: int | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class AddProperty:
    """Add a column: null in the rows that are there, or the default."""

    kind: ClassVar[str] = "add_property"
    table_key: str
    type_id: str
    property: str
    property_id: str
    type: PropertyType
    nullable: bool
    has_default: bool = False
    default: LiteralValue = None


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """Rename a column."""

    kind: ClassVar[str] = "rename_property"
    table_key: str
    type_id: str
    property: str
    property_id: str
    old_property: str


@dataclass(frozen=True, slots=True)
class DropProperty:
    """Drop a column; `hard` also removes old versions of its table. `values` is None when nobody looked."""

    kind: ClassVar[str] = "drop_property"
    table_key: str
    type_id: str
    property: str
    property_id: str
    hard: bool
    values: int | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add or narrow a constraint. With `needs_check` the rows that are there must be looked at first."""

    kind: ClassVar[str] = "add_constraint"
    table_key: str
    type_id: str
    constraint: Constraint
    needs_check: bool


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """Allow more values. No data is touched."""

    kind: ClassVar[str] = "extend_enum"
    table_key: str
    type_id: str
    property: str
    property_id: str
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WidenProperty:
    """Give a number more room. Values and ids stay; the column is written anew. With `needs_check`, where exact."""

    kind: ClassVar[str] = "widen_property"
    table_key: str
    type_id: str
    property: str
    property_id: str
    old_type: PropertyType
    type: PropertyType
    needs_check: bool


@dataclass(frozen=True, slots=True)
class RequireProperty:
    """Make a nullable property required. With `needs_check`, if no row turns out to have no value."""

    kind: ClassVar[str] = "require_property"
    table_key: str
    type_id: str
    property: str
    property_id: str
    needs_check: bool


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """Annotations, interfaces, and constraints that go or get wider. No data is touched. Interfaces have no id."""

    kind: ClassVar[str] = "update_type_metadata"
    table_key: str
    type_id: str | None
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """Annotations of a property, its index, default and embedding, and required that becomes nullable."""

    kind: ClassVar[str] = "update_property_metadata"
    table_key: str
    type_id: str
    property: str
    property_id: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A change that cannot be carried out. With `needs_check` it could be if the type turned out to have no rows."""

    kind: ClassVar[str] = "unsupported_change"
    table_key: str
    type_id: str
    entity: str
    reason: str
    code: str
    needs_check: bool = False


Step = (
    RenameType
    | AddType
    | RenameProperty
    | AddProperty
    | ExtendEnum
    | WidenProperty
    | RequireProperty
    | UpdatePropertyMetadata
    | UpdateTypeMetadata
    | AddConstraint
    | DropProperty
    | DropType
    | UnsupportedChange
)

STEP_ORDER: tuple[type[Step], ...] = (
    RenameType,
    AddType,
    RenameProperty,
    AddProperty,
    ExtendEnum,
    WidenProperty,
    RequireProperty,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    AddConstraint,
    DropProperty,
    DropType,
    UnsupportedChange,
)
"""The order of steps in a plan: names first, then what is added, then what is checked, then what goes."""

_STEPS: Mapping[str, type[Step]] = {step.kind: step for step in STEP_ORDER}

# --- JSON --------------------------------------------------------------------------------------------------------

_CONSTRAINTS: Mapping[str, type[Constraint]] = {
    "key": Key,
    "unique": Unique,
    "range": Range,
    "check": Check,
    "card": Cardinality,
}


def step_to_json(step: Step) -> dict[str, Any]:
    """The step as plain JSON data."""
    data: dict[str, Any] = {"kind": step.kind}
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, ScalarType | EnumType | VectorType | ListType):
            value = type_to_json(value)
        elif isinstance(value, Key | Unique | Range | Check | Cardinality):
            value = _constraint_to_json(value)
        elif isinstance(value, tuple):
            value = list(value)
        data[field.name] = value
    return data


def step_from_json(data: Mapping[str, Any]) -> Step:
    """The step that `step_to_json` wrote. Raises BadRequest if it is not one."""
    step = _STEPS.get(str(data.get("kind")))
    if step is None:
        raise BadRequest(f"there is no migration step `{data.get('kind')}`")
    decode: dict[str, Callable[[Any], Any]] = {
        "type": type_from_json,
        "old_type": type_from_json,
        "constraint": _constraint_from_json,
        "changes": tuple,
        "added": tuple,
    }
    try:
        values = {f.name: decode.get(f.name, _same)(data[f.name]) for f in fields(step)}
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"not a `{step.kind}` step: {error}") from error
    return step(**values)


def _same(value: Any) -> Any:
    return value


def _constraint_to_json(constraint: Constraint) -> dict[str, Any]:
    kind = next(name for name, type_ in _CONSTRAINTS.items() if type_ is type(constraint))
    values = {field.name: getattr(constraint, field.name) for field in fields(constraint)}
    return {"kind": kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def _constraint_from_json(data: Mapping[str, Any]) -> Constraint:
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in data.items() if name != "kind"
    }
    return _CONSTRAINTS[data["kind"]](**values)


# --- text --------------------------------------------------------------------------------------------------------


def constraint_text(constraint: Constraint) -> str:
    """The constraint as it is written in `.pg`."""
    if isinstance(constraint, Key | Unique):
        return f"@{'key' if isinstance(constraint, Key) else 'unique'}({column_titles(constraint.properties)})"
    if isinstance(constraint, Range):
        return f"@range({constraint.property}, {_end(constraint.low)}..{_end(constraint.high)})"
    if isinstance(constraint, Check):
        return f"@check({constraint.property}, {encode_string(constraint.pattern)})"
    return f"@card({constraint.min}..{_end(constraint.max)})"


def _end(value: int | float | None) -> str:
    return "" if value is None else str(value)


def step_text(step: Step) -> str:
    """One line that says what the step does."""
    name = f"{step.kind} {step.table_key}"
    if isinstance(step, AddType):
        return name
    if isinstance(step, RenameType):
        return f"{name} (was {step.old_table_key})"
    if isinstance(step, DropType):
        return f"{name}, {_drop_text(step.hard, step.rows, 'rows', step.code)}"
    if isinstance(step, AddConstraint):
        return f"{name} {constraint_text(step.constraint)}{' (checks the data)' if step.needs_check else ''}"
    if isinstance(step, UpdateTypeMetadata):
        return f"{name}: {', '.join(step.changes)}"
    if isinstance(step, UnsupportedChange):
        unknown = " (rows not counted)" if step.needs_check else ""
        return f"{name}: {step.reason}{unknown} [{step.code}]"
    name = f"{name}.{step.property}"
    if isinstance(step, AddProperty):
        default = f", default {step.default!r}" if step.has_default else ""
        return f"{name}: {step.type}{'?' if step.nullable else ''}{default}"
    if isinstance(step, RenameProperty):
        return f"{name} (was {step.old_property})"
    if isinstance(step, DropProperty):
        return f"{name}, {_drop_text(step.hard, step.values, 'values', step.code)}"
    if isinstance(step, ExtendEnum):
        return f"{name}: {', '.join(step.added)}"
    if isinstance(step, WidenProperty):
        return f"{name}: {step.old_type} to {step.type}{' (checks the data)' if step.needs_check else ''}"
    if isinstance(step, RequireProperty):
        return f"{name}{' (checks the data)' if step.needs_check else ''}"
    return f"{name}: {', '.join(step.changes)}"


def _drop_text(hard: bool, count: int | None, what: str, code: str | None) -> str:
    how = "hard: gone at once" if hard else "soft: older snapshots keep it until cleanup"
    known = f", {what} not counted" if count is None else f", {count} {what[:-1] if count == 1 else what}"
    return how + known + (f" [{code}]" if code else "")
