"""The types of properties, parameters and result columns, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scalar(StrEnum):
    """The scalar types by their name in `.pg`."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"


INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMBERS = INTEGERS | FLOATS


@dataclass(frozen=True, slots=True)
class ScalarType:
    """`String`, `I64`, `Date` and so on."""

    scalar: Scalar

    def __str__(self) -> str:
        return self.scalar.value


@dataclass(frozen=True, slots=True)
class EnumType:
    """`enum(a, b)`: text from a sorted, de-duplicated set."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"enum({', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class VectorType:
    """`Vector(n)`: n 32-bit floats."""

    dim: int

    def __str__(self) -> str:
        return f"Vector({self.dim})"


@dataclass(frozen=True, slots=True)
class ListType:
    """`[T]`: a list of scalars."""

    item: Scalar

    def __str__(self) -> str:
        return f"[{self.item.value}]"


PropertyType = ScalarType | EnumType | VectorType | ListType


@dataclass(frozen=True, slots=True)
class EntityType:
    """The type of a bound variable: a node or an edge as a whole. Never the type of a stored property."""

    table_key: str

    def __str__(self) -> str:
        return self.table_key.split(":", 1)[1]


ValueType = PropertyType | EntityType


def is_number(type_: ValueType) -> bool:
    """Whether arithmetic comparison and `sum` make sense."""
    return isinstance(type_, ScalarType) and type_.scalar in NUMBERS


def is_text(type_: ValueType) -> bool:
    """Whether the stored value is text (strings and enums)."""
    return isinstance(type_, EnumType) or type_ == ScalarType(Scalar.STRING)


def is_blob(type_: ValueType) -> bool:
    """Whether the value is a lazily read blob."""
    return type_ == ScalarType(Scalar.BLOB)
