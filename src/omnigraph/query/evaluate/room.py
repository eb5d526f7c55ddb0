"""How much room a computed column may take.

Short texts can make long ones (`replace`, `join`, `+`, a constant for every row), so texts and lists that would not fit
are refused before they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import repeat
from operator import mul
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimit
from omnigraph.query.functions.kernels.arguments import length_of

CAPACITY = 2**31 - 2
"""The bytes that one Arrow column of texts can hold."""


_allowed: ContextVar[Callable[[], int]] = ContextVar("room", default=lambda: CAPACITY)


@contextmanager
def room_of(room: Callable[[], int]) -> Iterator[None]:
    """Within this, a computed column takes at most what `room` says when it is made."""
    token = _allowed.set(room)
    try:
        yield
    finally:
        _allowed.reset(token)


def take_room(size: int, what: str) -> None:
    """Refuse a column of `size` bytes where there is less room. `what` says what its values are."""
    room = _room()
    if size > room:
        raise ResourceLimit(
            f"{what} would take {_megabytes(size)}, and there is room for {_megabytes(room)}; make the match more "
            "selective, or the values shorter",
            limit="computed_column",
            limit_value=room,
            needed=size,
        )


def _room() -> int:
    return min(_allowed.get()(), CAPACITY)


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"


def bytes_of(value: Any, length: int) -> int:
    """What a text or a list takes in `length` rows; 0 for what is always small."""
    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        each = value.as_buffer().size if isinstance(value, pa.Scalar) and value.is_valid else 0
    elif pa.types.is_list(value.type) or pa.types.is_fixed_size_list(value.type):
        each = _of_items(value.values) if isinstance(value, pa.Scalar) and value.is_valid else 0
    else:
        return 0
    return each * length if isinstance(value, pa.Scalar) else max(int(value.nbytes), _items(value, length))


def bytes_of_call(name: str, args: Sequence[Any]) -> int:
    """What the result of a function takes; 0 where it is hardly larger than the arguments.

    It is counted only where more could come out than there is room for.
    """
    return _GROWING[name](args, length_of(args), _room()) if name in _GROWING else 0


def _of_items(items: pa.Array) -> int:
    """At least one for each item: the places in a list are 32-bit numbers, like those in a text."""
    return max(int(items.nbytes), len(items))


def _items(lists: Any, length: int) -> int:
    """How many items there are in all."""
    if isinstance(lists, pa.Scalar):
        return len(lists.values) * length if lists.is_valid else 0
    return len(lists.flatten()) if pa.types.is_list(lists.type) else 0


def _longest(texts: Any) -> int:
    found = pc.binary_length(texts) if isinstance(texts, pa.Scalar) else pc.max(pc.binary_length(texts))
    return int(found.as_py() or 0)


def _replaced(args: Sequence[Any], length: int, room: int) -> int:
    text, old, new = args
    size = bytes_of(text, length)
    if size > room or size * (1 + _longest(new)) <= room:
        return size
    rows = zip(_values(text, length), _values(old, length), _values(new, length), strict=True)
    more: int = sum(
        max(0, each.count(part) * (len(other.encode()) - len(part.encode())))
        for each, part, other in rows
        if each is not None and part and other is not None
    )
    return size + more


def _joined(args: Sequence[Any], length: int, room: int) -> int:
    items, between = args
    size = bytes_of(items, length)
    if size > room or size + _items(items, length) * _longest(between) <= room:
        return size
    gaps = (max(0, len(each) - 1) if each else 0 for each in _values(items, length))
    widths = (len(each.encode()) if each else 0 for each in _values(between, length))
    return size + int(sum(map(mul, gaps, widths)))


def _chosen(args: Sequence[Any], length: int, room: int) -> int:
    """A constant stands where the arguments before it are null."""
    first = args[0]
    missing = length if isinstance(first, pa.Scalar) else first.null_count
    return bytes_of(first, length) + sum(bytes_of(arg, missing) for arg in args[1:])


def _compared(args: Sequence[Any], length: int, room: int) -> int:
    return sum(bytes_of(arg, length) for arg in args)


def _values(arg: Any, length: int) -> Iterable[Any]:
    return repeat(arg.as_py(), length) if isinstance(arg, pa.Scalar) else arg.to_pylist()


_GROWING: Mapping[str, Callable[[Sequence[Any], int, int], int]] = {
    "replace": _replaced,
    "join": _joined,
    "coalesce": _chosen,
    "least": _compared,
    "greatest": _compared,
}
