"""Numbers as floats of a property's width: the nearest value, or refused; never another number in silence.

A decimal is rounded to the nearest float, as everywhere. A whole number is exact or refused: whoever writes one means
that one. What would become zero without being zero, or has no finite float at all, is refused too.
"""

from __future__ import annotations

import math
import re
import struct

from omnigraph.schema.types import Scalar


class NoFloat(ValueError):
    """A number that the type cannot hold; the text says why."""


class Underflow(float):
    """A decimal that is not zero and whose nearest float is."""


_MANTISSA = re.compile(r"[1-9]")


def parse_float(text: str) -> float:
    """The nearest float of a decimal text. One that is too small to be told from zero is marked as `Underflow`."""
    number = float(text)
    if number == 0 and _MANTISSA.search(re.split("[eE]", text, maxsplit=1)[0]):
        return Underflow(number)
    return number


def as_float(value: int | float, scalar: Scalar) -> float:
    """The number as a value of `F32` or `F64`. NaN and infinities stay what they are. Raises NoFloat."""
    if isinstance(value, Underflow):
        raise NoFloat("it is too small: it would become 0")
    try:
        number = float(value)
    except OverflowError:
        raise NoFloat("it is too large") from None
    if scalar is Scalar.F32 and math.isfinite(number):
        try:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            raise NoFloat("it is too large for 32 bits") from None
        if number == 0 and value != 0:
            raise NoFloat("it is too small for 32 bits: it would become 0")
    if isinstance(value, int) and int(number) != value:
        raise NoFloat(f"no {scalar.value} is exactly this whole number")
    return number
