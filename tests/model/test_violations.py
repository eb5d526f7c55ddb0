"""Random loads and mutations, good and bad: what is refused, and with exactly which violations, the model says."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BadRequest, ValidationFailed
from omnigraph.handle.writes import read_match
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from omnigraph.write.validate.collector import Kind
from tests.model.spoiled_writes import POSSIBLE, spoiled, spoiled_rows
from tests.model.write_frames import as_table
from tests.model.write_model import Disagree, Graph, Row
from tests.model.write_operations import MODEL, SCHEMA, Writes, is_json, mutation

OPERATIONS = 900


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return list(map(plain, value)) if isinstance(value, list) else value


class Both:
    """A store and the model of it, given the same writes."""

    def __init__(self, store: GraphStore) -> None:
        self.store = store
        self.graph = MODEL.empty()
        self.refused = self.done = self.unchanged = self.disagreed = self.framed = 0
        self.kinds: dict[str, Counter[str]] = {way: Counter() for way in POSSIBLE}

    def lacks(self, way: str) -> bool:
        """Whether a kind of violation that this way of writing can meet has not come up yet."""
        return set(self.kinds[way]) != POSSIBLE[way]

    def wanted(self, way: str, writes: Writes) -> str:
        """A kind of violation that this way of writing has not met yet, or any."""
        return writes.random.choice(sorted(POSSIBLE[way] - set(self.kinds[way]) or POSSIBLE[way]))

    def write(self, way: str, what: str, expected: Counter[tuple[str, str]], after: Graph, run: Any) -> Any:
        """Run a write: it is refused with what was expected, or makes the graph that was expected."""
        expected = Counter({key: count for key, count in expected.items() if count})
        error: ValidationFailed | None = None
        try:
            result = run()
        except ValidationFailed as refusal:
            error = refusal
        if error is not None:
            found = Counter((v.kind, v.table_key) for v in error.violations)
            shown = Counter({key: min(count, 10) for key, count in expected.items()})
            assert found == shown, f"{what}\nrefused with {found},\nexpected {expected}\non {self.graph}"
            kinds: Counter[str] = Counter()
            for (kind, _), count in expected.items():
                kinds[kind] += count
            assert error.counts == kinds, what
            alone = set(kinds) == {"existing_id"}
            assert (error.kind, error.outcome.exit_code) == (("key_conflict", 3) if alone else ("validation_failed", 1))
            self.refused += 1
            self.kinds[way] += kinds
            return None
        assert not expected, f"{what}\nwas taken, expected {expected}"
        # An overwrite replaces, also by the same rows.
        assert (result.commit is None) == (after == self.graph and way != "overwrite"), f"{what}\nmade {result.commit}"
        self.done += result.commit is not None
        self.unchanged += result.commit is None
        self.graph = self._as_stored(what, after)
        return result

    def _as_stored(self, what: str, after: Graph) -> Graph:
        """The tables of the store, which are as expected; ids that were made up are taken over."""
        snapshot = self.store.snapshot()
        stored: Graph = {}
        for table, wanted in after.items():
            if wanted == self.graph[table]:
                stored[table] = wanted
                continue
            rows: dict[str, Row] = {}
            pin = snapshot.pin(table)
            for row in self.store.tables.scan_table(table_of(pin)).to_pylist():
                rows[row["id"]] = {name: plain(value) for name, value in row.items() if name != "id"}
            assert pin.row_count == len(rows), what
            named = {id_: row for id_, row in wanted.items() if not id_.startswith("?")}
            fresh = [row for id_, row in wanted.items() if id_.startswith("?")]
            made = {id_: row for id_, row in rows.items() if id_ not in named}
            assert {id_: rows.get(id_) for id_ in named} == named, f"{what}\n{table} has {rows}"
            assert sorted(made.values(), key=repr) == sorted(_ordered(made, fresh), key=repr), f"{what}\n{table}"
            stored[table] = rows
        return stored


def _ordered(made: dict[str, Row], fresh: list[Row]) -> list[Row]:
    names = list(next(iter(made.values()), {}))
    return [{name: row[name] for name in names} for row in fresh] if made else fresh


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_writes_are_taken_or_refused_as_the_model_says(tmp_path: Path, seed: int):
    writes = Writes(seed)
    with create_store(tmp_path / "graph", SCHEMA) as store:
        both = Both(store)
        for number in range(OPERATIONS):
            if number >= OPERATIONS // 3 and not any(map(both.lacks, POSSIBLE)):
                break
            bad = writes.random.choice([0.0, 0.0, 0.2, 0.6])
            kind = writes.random.choice(
                ["append", "merge", "merge", "overwrite", "insert", "insert", "delete", "new", "matched", "matched"]
            )
            if kind in ("append", "merge", "overwrite"):
                table = writes.random.choice(list(MODEL.types))
                whole = kind == "overwrite" or writes.chance(0.3)
                records = writes.only(both.graph, table, bad) if whole else writes.records(both.graph, bad)
                framed = writes.chance(0.3)
                if framed:
                    records = writes.alike(both.graph, table, bad)
                elif kind == "overwrite" and writes.chance(0.3):
                    other = writes.random.choice(list(MODEL.types))
                    records = [*records, *writes.only(both.graph, other, bad)]
                elif writes.chance(0.6 if both.lacks(kind) else 0.1):
                    records = [
                        *(records if kind != "overwrite" else ()),
                        *spoiled(writes, both.graph, both.wanted(kind, writes)),
                    ]
                expected, after = MODEL.load(both.graph, kind, records)
                as_text = "".join(json.dumps(record) + "\n" for record in records).encode()
                paths = all(isinstance(record, str) for record in records)  # which a list of texts names
                data = as_text if paths or (writes.chance(0.5) and all(map(is_json, records))) else records
                frame = as_table(records) if framed or writes.chance(0.3) else None
                named, data = frame if frame is not None else (None, data)
                both.framed += frame is not None
                what = f"{seed}/{number} {kind} {records!r}{' as a table' if frame else ''}"

                def run(data: Any = data, kind: Any = kind, named: str | None = named) -> Any:
                    return load(store, data, mode=kind, type=named)

                both.write(kind, what, expected, after, run)
                continue
            if kind == "matched":
                body, statements = writes.matched(both.graph)
                text, params = f"query q() {{ {body} }}", {}
            else:
                made = {"insert": writes.inserts, "new": writes.new_and_rows, "delete": lambda g, _: writes.deletes(g)}
                statements = made[kind](both.graph, bad)
                if kind == "new" and writes.chance(0.7 if both.lacks("mutation") else 0.2):
                    statements = spoiled_rows(writes, both.graph, both.wanted("mutation", writes))
                text, params = mutation(statements)
            what = f"{seed}/{number} {text} {params!r}"
            try:
                expected, after, affected = MODEL.mutate(both.graph, [_plain_where(s) for s in statements])
            except Disagree:
                with pytest.raises(BadRequest, match="two bindings of the match"):
                    mutate(store, text, params=params, read=read_match)
                both.disagreed += 1
                continue
            result = both.write(
                "mutation",
                what,
                expected,
                after,
                lambda text=text, params=params: mutate(store, text, params=params, read=read_match),
            )
            if result is not None:
                assert (result.affected_nodes, result.affected_edges) == affected, what
        assert both.done > 60
        assert both.refused > 60
        assert both.framed > 10
        # Every kind that there is came up, in every way of writing that can meet it, and nowhere else.
        assert {way: set(found) for way, found in both.kinds.items()} == POSSIBLE


def test_the_model_knows_every_kind_of_violation():
    assert set().union(*POSSIBLE.values()) == {kind.value for kind in Kind}


def _plain_where(statement: Any) -> Any:
    """The model wants the condition as a function."""
    return tuple(part[0] if isinstance(part, tuple) else part for part in statement)
