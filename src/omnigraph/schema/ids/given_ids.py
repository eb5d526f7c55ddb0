"""Ids as somebody gives them: the id itself, or the value of the key that it is made of.

Wherever an id is taken (ends of edges, a look-up, a predicate), it goes through here. What is no value of the key is
left as it is: it is an id that nobody has, and whoever looks it up says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.schema.floats import parse_float
from omnigraph.schema.ids.identity import canonical_scalar, key_array
from omnigraph.schema.literals import parse_date, parse_datetime
from omnigraph.schema.types import FLOATS, INTEGERS, EnumType, PropertyType, Scalar, ScalarType, is_text


class NoId(ValueError):
    """A value that no id can be made of; the text says why."""


@dataclass(frozen=True, slots=True)
class IdForm:
    """What the ids of a type are made of: nothing (a given id), one value, or an array of several.

    A part is the type of a key property, or the form of a node's id for the ends of an edge.
    """

    parts: tuple[PropertyType | IdForm, ...] = ()
    is_array: bool = False
    iso_dates: bool = True

    @property
    def takes_any_text(self) -> bool:
        """Whether every text is an id as it stands: nothing in it can be spelled in two ways."""
        return not self.is_array and all(isinstance(part, IdForm) or not _has_spellings(part) for part in self.parts)

    def take(self, value: Any) -> str:
        """The id that a value stands for. Raises NoId."""
        value = _plain(value)
        if self.is_array:
            return self._array(value)
        if not self.parts:
            return _free(value)
        part = self.parts[0]
        assert not isinstance(part, IdForm)
        return _key_text(value, part, self.iso_dates)

    def _array(self, value: Any) -> str:
        if isinstance(value, str):
            items = _json_array(value)
            if items is None or len(items) != len(self.parts):
                return _text(value)
        elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            items = list(value)
            if len(items) != len(self.parts):
                raise NoId(f"the key has {len(self.parts)} parts, and this has {len(items)}")
        else:
            raise NoId(f"the key has {len(self.parts)} parts: give a list of them")
        return key_array([self._part(part, item) for part, item in zip(self.parts, items)])

    def _part(self, part: PropertyType | IdForm, item: Any) -> str:
        if item is None:
            raise NoId("a part of the key is null")
        return part.take(item) if isinstance(part, IdForm) else _key_text(_plain(item), part, self.iso_dates)


def id_form(catalog: Catalog, type_: GraphType) -> IdForm:
    """What the ids of a type are made of."""
    if not type_.key:
        return IdForm()
    if isinstance(type_, NodeType):
        parts = tuple(type_.by_column[column].type for column in type_.key)
        return IdForm(parts, len(parts) > 1, type_.iso_dates)
    ends = {"src": type_.source, "dst": type_.target}
    return IdForm(
        tuple(_end_form(catalog, ends[name]) if name in ends else type_.by_column[name].type for name in type_.key),
        True,
        type_.iso_dates,
    )


def own_forms(catalog: Catalog, type_: GraphType) -> dict[str, IdForm]:
    """The forms of `id`, and for edges of `src` and `dst`: those of the nodes they name."""
    forms = {"id": id_form(catalog, type_)}
    if isinstance(type_, EdgeType):
        forms |= {"src": _end_form(catalog, type_.source), "dst": _end_form(catalog, type_.target)}
    return forms


def spelled(forms: Sequence[IdForm], value: Any) -> Any:
    """The one id of all these forms that a value stands for; the value itself where there is none."""
    try:
        texts = {form.take(list(value) if isinstance(value, tuple) else value) for form in forms if value is not None}
    except NoId:
        return value
    return texts.pop() if len(texts) == 1 else value


def _end_form(catalog: Catalog, name: str) -> IdForm:
    node = catalog.node(name)
    return id_form(catalog, node) if node is not None else IdForm()


def _plain(value: Any) -> Any:
    """A value of NumPy or pandas as one of Python's."""
    if hasattr(value, "tolist") and not isinstance(value, str | bytes):
        return value.tolist()
    return value


def _free(value: Any) -> str:
    """An id that is made of nothing: text, or a whole number by its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NoId
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise NoId("half of a surrogate pair is not a character")
    return value


def _json_array(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text, parse_float=parse_float)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _has_spellings(type_: PropertyType) -> bool:
    """Whether one value of the type can be written as text in several ways."""
    return isinstance(type_, ScalarType) and type_.scalar in _READERS


def _key_text(value: Any, type_: PropertyType, iso_dates: bool) -> str:
    if isinstance(value, str):
        text = _text(value)
        read = _READERS.get(type_.scalar) if isinstance(type_, ScalarType) else None
        if read is None:
            return text
        try:
            return canonical_scalar(read(text), type_, iso_dates=iso_dates)
        except (ValueError, BadRequest):
            return text
    if is_text(type_) or isinstance(type_, EnumType):
        return _free(value)
    if isinstance(value, datetime) and getattr(value, "nanosecond", None):
        raise NoId(f"it is no {type_}")
    if isinstance(value, int) and not isinstance(value, bool) and not _is_number(type_):
        raise NoId(f"the key is {type_}")
    try:
        return canonical_scalar(value, type_, iso_dates=iso_dates)
    except BadRequest as error:
        raise NoId(f"the key is {type_}") from error


def _is_number(type_: PropertyType) -> bool:
    return isinstance(type_, ScalarType) and type_.scalar in (INTEGERS | FLOATS)


def _number(text: str) -> int | float:
    found = json.loads(text, parse_float=parse_float)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError
    return found


_READERS: dict[Scalar, Callable[[str], int | float | date]] = {
    Scalar.DATE: parse_date,
    Scalar.DATETIME: parse_datetime,
    Scalar.F32: _number,
    Scalar.F64: _number,
}
"""How text is read as a value of the key, for types whose values can be written in several ways."""
