"""Keys: which properties are keys, the values they have, the id that a key makes, and how else it can be said.

The id of a row is the text of its key. Wherever an id is taken, the values of the key are taken too; so an edge says
its ends now by the id, now by the values, now by another spelling of them.
"""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import numpy as np

from tests.differential.types import NodeType, Property

IDS = ("a", "B", "b", "é", "z", "10", "9", "ab", "\U0001d11e", "\uffff")
CHOICES = ("high", "low", "mid")
UTC = datetime.UTC
SMALL = (0, 1, 2, 9, 10, 11)

KEY_VALUES: dict[str, tuple[Any, ...]] = {
    "String": IDS[:7],
    "enum": CHOICES,
    "I32": (*SMALL, -1),
    "I64": (*SMALL, -(2**63), 2**53 + 1),
    "U32": (*SMALL, 2**32 - 1),
    "U64": (*SMALL, 2**64 - 1),
    "Bool": (True, False),
    "F64": (-0.0, 0.1, 1.0, 2.5, -1.5e-7, 5e-324, 1.7976931348623157e308, 1e10, 9999999999.5, 0.000001),
    "Date": (
        datetime.date(1, 1, 1),
        datetime.date(1969, 12, 31),
        datetime.date(2024, 2, 29),
        datetime.date(9999, 12, 31),
    ),
    "DateTime": (
        datetime.datetime(1, 1, 1, tzinfo=UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC),
    ),
}
"""Few values of each type, edges among them. Zero is there once: two zeros are one key."""

NAMED = {
    "String": "name",
    "enum": "grade",
    "Bool": "half",
    "F64": "weight",
    "Date": "born",
    "DateTime": "since",
    "I32": "num",
    "I64": "num",
    "U32": "num",
    "U64": "num",
}
"""What the key properties of each type are called."""


def key_properties(rng: random.Random) -> tuple[Property, ...]:
    """A key: of one property, of several, or none."""
    shape = rng.random()
    if shape < 0.3:
        return ()
    if shape < 0.55:
        return (Property("name", "String", nullable=False),)
    count = 1 if shape < 0.8 else rng.choice((2, 2, 3))
    made = {}
    for type_ in rng.sample([*KEY_VALUES], count):
        made[NAMED[type_]] = Property(NAMED[type_], type_, False, choices=CHOICES if type_ == "enum" else ())
    return tuple(made.values())


def key_text(values: list[Any]) -> str:
    """The id that a key makes: the plain text of one value, a JSON array of several."""
    texts = [text_of(value) for value in values]
    return texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def text_of(value: Any) -> str:
    """One value as the text that ids are made of."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, datetime.datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def float_text(number: float) -> str:
    """The shortest digits, plain from a millionth up to ten thousand millions; there is one zero."""
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e10:
        return np.format_float_positional(number, trim="-")
    return np.format_float_scientific(number, trim="-", exp_digits=1)


def spelled(rng: random.Random, node: NodeType, id_: str, values: dict[str, Any]) -> Any:
    """One of the ways to name a node: its id, or what its key is made of."""
    if not node.key or rng.random() < 0.4:
        return id_
    parts = [_said(rng, values[name]) for name in node.key]
    if len(parts) == 1:
        return parts[0]
    spacing = (", ", ": ") if rng.random() < 0.5 else (" ,", ":")
    return parts if rng.random() < 0.5 else json.dumps(parts, ensure_ascii=rng.random() < 0.5, separators=spacing)


def _said(rng: random.Random, value: Any) -> Any:
    """A value as JSON has it, now and then in other words that mean the same."""
    if isinstance(value, datetime.datetime):
        shown = value.isoformat()
        if value.year > 1 and rng.random() < 0.5:
            return value.astimezone(datetime.timezone(datetime.timedelta(hours=2))).isoformat()
        return shown if rng.random() < 0.5 else shown.replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and rng.random() < 0.3:
        return 0.0 if value == 0 else f"{value!r}"
    return value
