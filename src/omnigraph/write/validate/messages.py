"""The words of every violation, in one place: the same for each writer and each engine."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from typing import Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.schema.catalog import Cardinality, Property, Range
from omnigraph.schema.types import PropertyType

SHOWN_CHARACTERS = 60


def show(value: Any) -> str:
    """A value as a message quotes it: JSON-like, shortened."""
    if isinstance(value, bytes):
        text = f"{len(value)} bytes"
    elif isinstance(value, datetime.date | datetime.datetime):
        text = json.dumps(value.isoformat())
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except ValueError:
            text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def names(items: Iterable[str]) -> str:
    """`a`, `b`."""
    return ", ".join(f"`{item}`" for item in items)


def unknown_type(name: Any, known: Iterable[str], noun: str) -> str:
    """A record of a type that the schema does not declare."""
    hint = did_you_mean(name, known) if isinstance(name, str) else None
    return f"the schema has no {noun} type {show(name)}" + (f"; {hint}" if hint else "")


def unknown_property(name: str, known: Iterable[str]) -> str:
    """A property that the type does not declare."""
    hint = did_you_mean(name, known)
    return f"unknown property `{name}`" + (f"; {hint}" if hint else "")


def wrong_type(name: str, expected: PropertyType | str, value: Any, why: str | None = None) -> str:
    """A value that is not of the declared type."""
    return f"`{name}` must be {expected}, not {show(value)}" + (f": {why}" if why else "")


def missing_value(name: str) -> str:
    """Null or nothing where a value is required."""
    return f"`{name}` is required and has no value"


def missing_property(property_: Property) -> str:
    """The same for a property. One that is embedded may be left out where there is a provider."""
    text = missing_value(property_.name)
    if property_.embed is None:
        return text
    return (
        f"{text}: give it, or give `{property_.embed.source}` and name an embedding provider "
        "(OMNIGRAPH_EMBEDDING_PROVIDER)"
    )


def missing_key(name: str) -> str:
    """A key property without a value."""
    return f"the key property `{name}` has no value, so the row has no identity"


def key_not_canonical(given: str, derived: str) -> str:
    """An `id` in the data that is not what the key says."""
    return f"the given id {show(given)} is not the id that the key makes, {show(derived)}; leave the id out"


def not_in_enum(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Text that is not one of the enum's values."""
    hint = did_you_mean(value, allowed) if isinstance(value, str) else None
    return f"`{name}` must be one of {', '.join(allowed)}, not {show(value)}" + (f"; {hint}" if hint else "")


def out_of_range(rule: Range, value: Any) -> str:
    """A number outside `@range`."""
    low = "" if rule.low is None else rule.low
    high = "" if rule.high is None else rule.high
    return f"`{rule.property}` must lie in {low}..{high}, not {show(value)}"


def check_failed(name: str, pattern: str, value: Any) -> str:
    """Text that `@check` does not match as a whole."""
    return f"`{name}` must match {json.dumps(pattern, ensure_ascii=False)} as a whole, {show(value)} does not"


def vector_dimension(name: str, expected: int, found: int) -> str:
    """A vector with too few or too many numbers."""
    return f"`{name}` must have {expected} numbers, not {found}"


def not_finite(name: str, value: Any) -> str:
    """NaN or an infinity."""
    return f"`{name}` must be finite, not {value}"


def duplicate_id(row_id: str) -> str:
    """Two rows of one write with the same identity."""
    return f"id {show(row_id)} comes more than once in this write"


def existing_id(row_id: str) -> str:
    """An append of an id that the table has."""
    return f"id {show(row_id)} exists already; load with mode merge to update it"


def existing_row(row_id: str) -> str:
    """An insert that must make a new row, of an id that exists."""
    return f"id {show(row_id)} exists already; leave the id out, or update the row"


def not_unique(columns: Sequence[str], values: Sequence[Any], other_id: str | None) -> str:
    """A tuple that another row has too."""
    tuple_text = ", ".join(f"{column}={show(value)}" for column, value in zip(columns, values))
    with_whom = f", row {show(other_id)} has the same" if other_id is not None else ""
    return f"@unique({', '.join(columns)}) is broken by {tuple_text}{with_whom}"


def missing_endpoint(end: str, node_type: str, node_id: str | None) -> str:
    """An edge whose end does not exist after the write."""
    return f"`{end}` names {node_type} {show(node_id)}, which does not exist"


def dangling_edge(end: str, node_type: str, node_id: str) -> str:
    """An existing edge that would lose its end."""
    return f"the edge would be left dangling: its `{end}`, {node_type} {show(node_id)}, goes away"


def cardinality(rule: Cardinality, source: str, count: int) -> str:
    """A source with too many or too few edges of the type."""
    bounds = f"{rule.min}..{'' if rule.max is None else rule.max}"
    return f"node {show(source)} would have {count} of these edges, @card({bounds}) allows no such number"
