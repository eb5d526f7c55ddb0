"""Whether two answers are the same: the same rows in the same order, values of the same kind, floats to the last bit.

A query that computes with floats (a mean, a root) may be off in the last place: the page does not say how often such a
value is rounded on its way. Sums, and values that are stored, may not.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

from tests.differential.oracle import Rows
from tests.differential.product import Answer


def difference(expected: Rows, answer: Answer, places: int = 0) -> str | None:
    """What is different, in a word that stays the same while a case is made smaller; None when nothing is."""
    if answer.rows is None:
        code = re.search(r"\b[TQ]\d+\b", str(answer.error))
        return f"error {str(answer.error).split(':')[0]}" + (f" {code[0]}" if code else "")
    named = [list(row) for row in answer.rows] == [list(row) for row in expected]
    return None if named and same(answer.rows, expected, places) else "rows"


def same(one: Any, other: Any, places: int = 0) -> bool:
    """Equal, and of the same types all through; floats may be so many steps apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        near = abs(one - other) <= places * math.ulp(max(abs(one), abs(other))) if places else False
        return near or struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], places) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*pair, places) for pair in zip(one, other, strict=True))
    return bool(one == other)
