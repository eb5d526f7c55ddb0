"""What planning a scan needs to know of a table version, as a small value that travels with the frame.

Spark plans a read of a Python data source in processes of their own, several for each query. With this none of them
has to open the table: loading Lance and what it needs would take longer than most reads.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pyarrow as pa

from omnigraph.spark.fragment_groups import fragment_groups
from omnigraph.spark.source.spark_filters import can_be_filtered, from_json, to_json
from omnigraph.storage.reading.filters import Filter
from omnigraph.storage.values import FragmentInfo, TableVersion


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one task reads: some fragments, or only `limit` of their rows after the first `offset`."""

    fragments: tuple[int, ...]
    offset: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A table version, the columns that a filter can be pushed down to, its fragments with their rows, and the
    condition that its rows are read under."""

    table: TableVersion
    filterable: pa.Schema
    fragments: tuple[tuple[int, int], ...]
    condition: Filter | None = None

    @property
    def rows(self) -> int:
        """All rows of the table version."""
        return sum(rows for _, rows in self.fragments)

    def stretches(self, rows: int, *, filtered: bool) -> list[Stretch]:
        """Equal parts of at most `rows` rows. With a filter, whole fragments of about that many together.

        Which rows a filter leaves is not known before it has run, so parts of a filtered fragment cannot be named.
        """
        if filtered:
            known = [FragmentInfo(number, size, size, 0) for number, size in self.fragments]
            return [Stretch(tuple(group)) for group in fragment_groups(known, rows)]
        parts = max(1, -(-self.rows // rows))
        size = -(-self.rows // parts)
        return [self._stretch(start, min(start + size, self.rows)) for start in range(0, self.rows, size or 1)]

    def _stretch(self, start: int, end: int) -> Stretch:
        """The rows from `start` to `end`, counted through all fragments."""
        chosen: list[int] = []
        first = before = 0
        for number, rows in self.fragments:
            if before < end and before + rows > start:
                first = first if chosen else before
                chosen.append(number)
            before += rows
        held = sum(rows for number, rows in self.fragments if number in chosen)
        if (start, end) == (first, first + held):
            return Stretch(tuple(chosen))
        return Stretch(tuple(chosen), start - first, end - start)

    def to_text(self) -> str:
        """A text that fits into an option of a frame."""
        schema = base64.b64encode(self.filterable.serialize().to_pybytes()).decode()
        condition = None if self.condition is None else to_json(self.condition)
        plan = {"table": asdict(self.table), "filterable": schema, "fragments": self.fragments, "condition": condition}
        return json.dumps(plan)


def scan_plan(table: TableVersion, schema: pa.Schema, fragments: Iterable[FragmentInfo]) -> ScanPlan:
    """The plan for a table with this schema and these fragments."""
    filterable = pa.schema([pa.field(field.name, field.type) for field in schema if can_be_filtered(field.type)])
    return ScanPlan(table, filterable, tuple((fragment.id, fragment.rows) for fragment in fragments))


def plan_from_text(text: str) -> ScanPlan:
    """The plan that `to_text` wrote."""
    given = json.loads(text)
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(given["filterable"])))
    fragments = tuple((number, rows) for number, rows in given["fragments"])
    condition = None if given["condition"] is None else from_json(given["condition"])
    return ScanPlan(TableVersion(**given["table"]), schema, fragments, condition)
