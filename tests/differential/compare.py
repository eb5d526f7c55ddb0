"""Whether two answers are the same: the same rows in the same order, values of the same kind, floats to the last bit."""

from __future__ import annotations

import struct
from typing import Any

from tests.differential.oracle import Rows
from tests.differential.product import Answer


def difference(expected: Rows, answer: Answer) -> str | None:
    """What is different, in a word that stays the same while a case is made smaller; None when nothing is."""
    if answer.rows is None:
        return f"error {str(answer.error).split(':')[0]}"
    return None if same(answer.rows, expected) else "rows"


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all through."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
