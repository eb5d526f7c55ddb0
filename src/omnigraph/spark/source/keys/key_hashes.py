"""Keys as numbers: whether a tuple comes twice is told by the hashes of all tuples, which are small and quick to sort.

Tuples that are equal have one hash. Others may have too, so a hash that comes twice is a doubt, which the keys
themselves settle; of hashes that all differ nothing is left to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.spark.load.known.known_ids import Hashes
from omnigraph.spark.load.load_messages import bucket_of, duckdb_connection
from omnigraph.spark.source.keys.key_parts import PARTS, RANKS
from omnigraph.spark.source.keys.key_rules import KeyRule
from omnigraph.storage.objects.objects import ObjectStore
from omnigraph.write.validate.zeros import one_zero

BYTES = 8
"""Of one hash."""


def tuple_hashes(columns: Sequence[pa.ChunkedArray]) -> Hashes:
    """A number for each row, the same for equal tuples and in every process."""
    connection = duckdb_connection()
    given = {f"c{number}": one_zero(column) for number, column in enumerate(columns)}
    connection.register("tuples", pa.table(given))
    texts = ", ".join(f"{name}::varchar" for name in given)
    found = connection.sql(f"select hash({texts}) as n from tuples").to_arrow_table()["n"]
    connection.unregister("tuples")
    return np.asarray(found.to_numpy())


@dataclass(frozen=True, slots=True)
class HashRun:
    """The hashes of some keys that one rule is about, in the order of their parts; `counts`: how many each part has.

    They are held here, or lie in an object of the store from `start` on.
    """

    subject: str
    counts: tuple[int, ...]
    held: Hashes | None = None
    path: str = ""
    start: int = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts)

    def between(self, objects: ObjectStore, first: int, last: int) -> Hashes:
        """The hashes of the parts from one place in the order up to another."""
        ends = [0, *accumulate(self.counts)]
        if self.held is not None:
            return self.held[ends[first] : ends[last]]
        if ends[first] == ends[last]:
            return np.empty(0, np.uint64)
        begin, end = (self.start + BYTES * ends[place] for place in (first, last))
        return np.frombuffer(objects.get_range(self.path, begin, end), np.uint64)


def hash_runs(rules: Iterable[KeyRule], keys: pa.Table) -> Iterator[HashRun]:
    """The hashes of keys, for each rule that counts equal tuples."""
    for rule in rules:
        rows = rule.concerns(keys)
        if rule.most is None or not rows.num_rows:
            continue
        hashes = tuple_hashes([rows[name] for name in rule.columns])
        places = RANKS[part_numbers(rows[rule.columns[0]])]
        order = np.argsort(places, kind="stable")
        counts: Any = np.bincount(places, minlength=PARTS)
        yield HashRun(rule.subject, tuple(counts.tolist()), hashes[order])


def part_numbers(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The part in which each value lies."""
    return bucket_of(column, PARTS)
