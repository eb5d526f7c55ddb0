"""Types of numbers that become wider: which may become which, so that every value is kept."""

from __future__ import annotations

from omnigraph.schema.types import INTEGERS, PropertyType, Scalar, ScalarType

_WIDER: dict[tuple[Scalar, Scalar], bool] = {
    (Scalar.I32, Scalar.I64): True,
    (Scalar.U32, Scalar.U64): True,
    (Scalar.U32, Scalar.I64): True,
    (Scalar.F32, Scalar.F64): True,
    (Scalar.I32, Scalar.F64): True,
    (Scalar.U32, Scalar.F64): True,
    (Scalar.I64, Scalar.F64): False,
    (Scalar.U64, Scalar.F64): False,
}
"""The pairs, and whether the wider type holds every value of the narrower one exactly."""


def widens(old: PropertyType, new: PropertyType) -> bool | None:
    """Whether values of `old` can all become values of `new`; False when that depends on them, None when they cannot.

    A value of `F32` is the number that it is shown as, so `0.1` stays `0.1`.
    """
    if not isinstance(old, ScalarType) or not isinstance(new, ScalarType):
        return None
    return _WIDER.get((old.scalar, new.scalar))


def keeps_ids(old: PropertyType, new: PropertyType) -> bool:
    """Whether a value of a key has one text in both types: whole numbers do, floats are spelled in their own way."""
    return (
        isinstance(old, ScalarType)
        and isinstance(new, ScalarType)
        and old.scalar in INTEGERS
        and new.scalar in INTEGERS
    )
