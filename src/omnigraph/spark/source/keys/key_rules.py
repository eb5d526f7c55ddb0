"""The rules across the rows of one type, as the tasks of a frame write and its commit need to know them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import EdgeType, GraphType


@dataclass(frozen=True, slots=True)
class KeyRule:
    """One rule. `subject` is that of its messages; their keys lie in parts by the first of `columns`."""

    subject: str
    columns: tuple[str, ...]
    table_key: str
    """The table that is written to."""
    most: int | None = None
    """Of how many rows that share the tuple of `columns`, committed ones included, the rule can tell nothing wrong."""
    node: str | None = None
    """The table that has to have the value as an id."""
    needs_all: bool = False
    """Whether rows that are too few break it, so that nothing less than all keys tells."""

    @property
    def leans_on(self) -> frozenset[str]:
        """The tables whose committed rows it looks at."""
        own = {self.table_key} if self.most is not None or self.needs_all else set()
        return frozenset(own | ({self.node} if self.node is not None else set()))

    def concerns(self, keys: pa.Table) -> pa.Table:
        """The rows that it is about: those with no null in the tuple."""
        for name in self.columns:
            keys = keys.filter(pc.is_valid(keys[name])) if keys[name].null_count else keys
        return keys


def key_rules(type_: GraphType, *, own_ids: bool = True) -> Iterator[KeyRule]:
    """The rules of a type. `own_ids`: the rows brought their ids, which have to be looked for."""
    key = type_.table_key
    if own_ids:
        yield KeyRule(f"{key}/own", ("id",), key, most=1)
    for number, unique in enumerate(type_.uniques):
        yield KeyRule(f"{key}/{number}", tuple(unique), key, most=1)
    if isinstance(type_, EdgeType):
        card = type_.card
        yield KeyRule(f"{key}/src", ("src",), key, card.max, f"node:{type_.source}", needs_all=card.min > 1)
        yield KeyRule(f"{key}/dst", ("dst",), key, node=f"node:{type_.target}")
