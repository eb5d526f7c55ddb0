"""How types combine where values of several types meet: in arithmetic, in `case`, in the arguments of a function."""

from __future__ import annotations

from omnigraph.schema.types import FLOATS, INTEGERS, Scalar, ScalarType, ValueType, is_text

BOOL = ScalarType(Scalar.BOOL)
STRING = ScalarType(Scalar.STRING)
I64 = ScalarType(Scalar.I64)
U64 = ScalarType(Scalar.U64)
F64 = ScalarType(Scalar.F64)
DATE = ScalarType(Scalar.DATE)
DATETIME = ScalarType(Scalar.DATETIME)
BLOB = ScalarType(Scalar.BLOB)

_UNSIGNED = frozenset({Scalar.U32, Scalar.U64})


def arithmetic_type(*types: ValueType) -> ValueType | None:
    """The type in which numbers are computed: F64 if one is a float, U64 if all are unsigned, else I64."""
    scalars = {type_.scalar for type_ in types if isinstance(type_, ScalarType)}
    if len([type_ for type_ in types if isinstance(type_, ScalarType)]) < len(types):
        return None
    if not scalars <= INTEGERS | FLOATS:
        return None
    if scalars & FLOATS:
        return F64
    return U64 if scalars <= _UNSIGNED else I64


def unified(types: list[ValueType]) -> ValueType | None:
    """The one type that values of several types are brought to, if there is one."""
    first = types[0]
    if all(type_ == first for type_ in types):
        return first
    if all(is_text(type_) for type_ in types):
        return STRING
    return arithmetic_type(*types)
