"""Where the rows of a merge or a difference are compared and written: here, or in parts on other processes.

The functions that compare and write are the same; a placement only cuts the ids into parts and runs a function over
them. Parts follow the order of ids, so results put together part by part are in that order too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from omnigraph.merge.compare.schema_view import TableView
    from omnigraph.storage.values import TableVersion

ROWS_PER_PART = 100_000
COMPARING, WRITING = "comparing rows", "writing rows"


@dataclass(frozen=True, slots=True)
class Placement:
    """`run` maps a picklable function over picklable items; None keeps everything in this process.

    `run_all` is told what the function does, in words for whoever watches the jobs.
    """

    engine: str = "local"
    run_all: Callable[[Callable[[Any], Any], Sequence[Any], str], list[Any]] | None = None
    least_rows: int = 0

    def spreads(self, rows: int) -> bool:
        """Whether work on that many rows leaves this process."""
        return self.run_all is not None and rows >= max(1, self.least_rows)

    def parts(self, ids: pa.Array, least: int = 2) -> list[pa.Array]:
        """The ids in parts of a size that one task handles well; `least` parts when there are that many ids."""
        count = max(min(least, len(ids)), math.ceil(len(ids) / ROWS_PER_PART))
        size = math.ceil(len(ids) / count)
        # A slice would travel with the whole array behind it.
        return [pa.concat_arrays([ids.slice(start, size)]) for start in range(0, len(ids), size)]

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], doing: str) -> list[Any]:
        """The answers, in the order of the items. `doing`: what the function does."""
        return [function(item) for item in items] if self.run_all is None else self.run_all(function, items, doing)


IN_PROCESS = Placement()


def tables_only(uri: str, views: Mapping[TableVersion, TableView] | None = None) -> Any:
    """What the comparing functions need of a graph in another process: its tables, and nothing that is published.

    Tables that have another schema than the one that rows are compared in are read through `views`.
    """
    from omnigraph.merge.compare.schema_view import ViewedTables
    from omnigraph.storage.tables import TableStore
    from omnigraph.storage.uri import parse_root

    tables = TableStore(parse_root(uri))
    return SimpleNamespace(uri=uri, tables=ViewedTables(tables, views) if views else tables)
