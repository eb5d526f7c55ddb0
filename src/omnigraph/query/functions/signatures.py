"""A small language for what functions take and give: `substring(String, Int, Int?) -> String`.

| kind | takes |
|---|---|
| `String`, `Bool`, `Date`, `DateTime` | a value of that type; `String` takes enums too |
| `Int`, `Number` | any integer type; any number type |
| `Moment` | a Date or a DateTime |
| `T` | any single value or list; all `T` of a call are brought to one type |
| `[T]`, `[String]` | a list; a list of text |
| `Single` | any single value; all of a call are brought to one type |
| `Any` | any single value |
| `Unit` | a string literal that names a unit of time |

`?` behind the last ones makes them optional, `...` lets the last one repeat. A result is a type, or the name of a kind
that an argument has: `Number` is then the type that arithmetic on it gives. Null fits every kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.query.functions.types import (
    BOOL,
    DATE,
    DATETIME,
    F64,
    I64,
    STRING,
    arithmetic_type,
    unified,
)
from omnigraph.schema.types import (
    INTEGERS,
    EntityType,
    ListType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
    is_blob,
    is_number,
    is_text,
)

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""The units of time that `Unit` takes."""

_FIXED: dict[str, ValueType] = {
    "String": STRING,
    "Bool": BOOL,
    "I64": I64,
    "F64": F64,
    "Date": DATE,
    "DateTime": DATETIME,
    "[String]": ListType(Scalar.STRING),
}
_WORDS = {
    "String": "text",
    "Bool": "a Boolean",
    "Date": "a Date",
    "DateTime": "a DateTime",
    "Int": "an integer",
    "Number": "a number",
    "Moment": "a Date or a DateTime",
    "T": "a value",
    "Single": "a single value",
    "Any": "a single value",
    "[T]": "a list",
    "[String]": "a list of text",
    "Unit": "one of " + ", ".join(f'"{unit}"' for unit in UNITS),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a call takes and gives. `required` arguments must be there; `variadic`: the last kind repeats."""

    text: str
    name: str
    kinds: tuple[str, ...]
    required: int
    variadic: bool
    result: str

    @property
    def most(self) -> int | None:
        """The largest number of arguments; None without a bound."""
        return None if self.variadic else len(self.kinds)

    def kind(self, index: int) -> str:
        """The kind of an argument."""
        return self.kinds[min(index, len(self.kinds) - 1)]

    def takes(self, count: int) -> bool:
        """Whether a call may have so many arguments."""
        return self.required <= count and (self.variadic or count <= len(self.kinds))


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a call does not fit: the place of the argument, and what it should be in words."""

    index: int
    wanted: str


def parse_signature(text: str) -> Signature:
    """Read the small language. What it cannot read is a mistake in the table."""
    found = re.fullmatch(r"(\w+)\((.*)\) -> (\S+)", text)
    assert found is not None, text
    name, inner, result = found.groups()
    parts = [part.strip() for part in inner.split(",") if part.strip()]
    variadic = bool(parts) and parts[-1].endswith("...")
    required = sum(not part.endswith(("?", "...")) for part in parts)
    kinds = tuple(part.removesuffix("...").removesuffix("?") for part in parts)
    assert all(kind in _WORDS for kind in kinds), text
    assert result in _FIXED or result in kinds, text
    return Signature(text, name, kinds, required, variadic, result)


def result_of(signature: Signature, types: Sequence[ValueType | None]) -> ValueType | Misfit:
    """The type of a call with arguments of these types (None: null), or why it does not fit."""
    for index, type_ in enumerate(types):
        kind = signature.kind(index)
        if type_ is not None and not _fits(kind, type_):
            return Misfit(index, _WORDS[kind])
    if signature.result in _FIXED:
        return _FIXED[signature.result]
    meant = [
        (index, type_)
        for index, type_ in enumerate(types)
        if signature.kind(index) == signature.result and type_ is not None
    ]
    if not meant:
        index = next(index for index in range(len(types)) if signature.kind(index) == signature.result)
        return Misfit(index, f"{_WORDS[signature.result]} that is not null")
    known = [type_ for _, type_ in meant]
    joined = arithmetic_type(*known) if signature.result == "Number" else unified(known)
    return joined if joined is not None else Misfit(meant[-1][0], f"a value of one type with the others ({known[0]})")


def _fits(kind: str, type_: ValueType) -> bool:
    match kind:
        case "String" | "Unit":
            return is_text(type_)
        case "Int":
            return isinstance(type_, ScalarType) and type_.scalar in INTEGERS
        case "Number":
            return is_number(type_)
        case "Moment":
            return type_ in {DATE, DATETIME}
        case "[T]":
            return isinstance(type_, ListType)
        case "T":
            return not isinstance(type_, EntityType | VectorType) and not is_blob(type_)
        case "Any" | "Single":
            return not isinstance(type_, EntityType | VectorType | ListType) and not is_blob(type_)
        case _:
            return type_ == _FIXED[kind]
