"""`contains` and `in`, and tests of text against a part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query import ir
from omnigraph.query.evaluate.comparisons import compare, is_numeric, same_type
from omnigraph.query.evaluate.numbers import members_like
from omnigraph.query.functions.kernels.arguments import CannotCompute
from omnigraph.schema.patterns import BadPattern, anchored_pattern


def contains(haystack: Any, needle: Any) -> Any:
    """Membership in a list, or a part of a text."""
    if not pa.types.is_list(haystack.type) and not pa.types.is_large_list(haystack.type):
        return on_text(haystack, needle, pc.match_substring, str.__contains__)
    if isinstance(haystack, pa.Scalar):
        return _in_constant(needle, haystack)
    return _in_lists(needle, haystack)


def on_text(text: Any, pattern: Any, kernel: Callable[..., Any], test: Callable[[str, str], bool]) -> Any:
    """A test of a text against a pattern; by Arrow's kernel when the pattern is the same for all rows."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.scalar(None, pa.bool_()) if isinstance(text, pa.Scalar) else pa.nulls(len(text), pa.bool_())
        if not isinstance(text, pa.Scalar):
            return kernel(text, pattern=pattern.as_py())
        found = test(text.as_py(), pattern.as_py()) if text.is_valid else None
        return pa.scalar(found, pa.bool_())
    texts = [text.as_py()] * len(pattern) if isinstance(text, pa.Scalar) else text.to_pylist()
    pairs = zip(texts, pattern.to_pylist(), strict=True)
    results = [None if one is None or other is None else test(one, other) for one, other in pairs]
    return pa.array(results, pa.bool_())


def _in_constant(item: Any, items: pa.Scalar) -> Any:
    """Membership in a list that is the same for all rows."""
    if not items.is_valid:
        return pa.scalar(None, pa.bool_()) if isinstance(item, pa.Scalar) else pa.nulls(len(item), pa.bool_())
    members = items.values
    if isinstance(item, pa.Scalar):
        return _in_lists(pa.repeat(item, 1), pa.array([items.as_py()], items.type))[0]
    known = members.drop_null()
    if pa.types.is_floating(item.type) and item.type == known.type:
        # `is_in` tells -0.0 from 0.0; adding zero makes them one.
        zero = pa.scalar(0.0, item.type)
        found = pc.is_in(pc.add(item, zero), value_set=pc.add(known, zero))
        return _unless_null(found, item, members)
    if item.type != known.type:
        if not (is_numeric(item.type) and is_numeric(known.type)):
            item, known = same_type(item, known)
        elif pa.types.is_integer(item.type) and pa.types.is_integer(known.type):
            item, known = members_like(item, known)
        else:
            # Python compares integers and floats by their exact value.
            wanted = set(known.to_pylist())
            found = pa.array([None if each is None else each in wanted for each in item.to_pylist()], pa.bool_())
            return _unless_null(found, item, members)
    return _unless_null(pc.is_in(item, value_set=known), item, members)


def _unless_null(found: pa.Array, item: pa.Array, members: pa.Array) -> pa.Array:
    """Unknown for a null item, and for an item that is not found while the list holds a null."""
    unknown = pc.is_null(item)
    if members.null_count:
        unknown = pc.or_(unknown, pc.invert(pc.fill_null(found, False)))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _in_lists(item: Any, lists: Any) -> pa.Array:
    """Membership where each row has a list of its own."""
    import numpy as np

    parents = pc.list_parent_indices(lists)
    members = pc.list_flatten(lists)
    wanted = item if isinstance(item, pa.Scalar) else pc.take(item, parents)
    equal = compare(ir.CompareOp.EQ, members, wanted) if len(members) else pa.array([], pa.bool_())
    found = np.zeros(len(lists), dtype=bool)
    unclear = np.zeros(len(lists), dtype=bool)
    rows = parents.to_numpy(zero_copy_only=False).astype(np.int64)
    found[rows[pc.fill_null(equal, False).to_numpy(zero_copy_only=False).astype(bool)]] = True
    unclear[rows[pc.is_null(equal).to_numpy(zero_copy_only=False).astype(bool)]] = True
    missing = pc.is_null(lists).to_numpy(zero_copy_only=False).astype(bool)
    if isinstance(item, pa.Scalar):
        missing |= not item.is_valid
    else:
        missing |= pc.is_null(item).to_numpy(zero_copy_only=False).astype(bool)
    return pa.array(found, mask=missing | (unclear & ~found))


def matches(text: Any, pattern: Any) -> Any:
    """Whether the whole text matches a regular expression of the dialect. Raises `CannotCompute` for a bad pattern."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.scalar(None, pa.bool_())
        return pc.match_substring_regex(text, _anchored(pattern.as_py()))
    texts = pa.repeat(text, len(pattern)) if isinstance(text, pa.Scalar) and text.is_valid else text
    if isinstance(texts, pa.Scalar):
        return pa.scalar(None, pa.bool_())
    found = pa.nulls(len(pattern), pa.bool_())
    for each in pc.unique(pattern.drop_null()).to_pylist():
        here = pc.fill_null(pc.equal(pattern, each), False)
        found = pc.if_else(here, pc.match_substring_regex(texts, _anchored(each)), found)
    return found


def _anchored(pattern: str) -> str:
    try:
        return anchored_pattern(pattern)
    except BadPattern as problem:
        raise CannotCompute(f"a pattern that is not in the dialect ({problem})") from None
