"""Random sequences of mutations, loads, reopenings and faults: after each step the store equals the model."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from omnigraph.errors import KeyConflict, ValidationFailed
from omnigraph.failpoints import FailpointError, active
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.model.graph_model import PEOPLE, PLACES, SCHEMA, TABLES, GraphModel, Refused, Row

FAULTS = (
    "write.premises_hold",
    "write.sidecar_put",
    "write.table_committed",
    "write.tables_committed",
    "write.published",
    "write.sidecar_deleted",
    "storage.commit.before",
    "storage.commit.after",
)

_people, _places = st.sampled_from(PEOPLE), st.sampled_from(PLACES)
_person = st.fixed_dictionaries(
    {"slug": _people},
    optional={
        "age": st.none() | st.integers(-1, 100) | st.integers(0, 3),
        "mail": st.none() | st.sampled_from(["m1", "m2", "m3"]),
        "nick": st.sampled_from(["n1", "n2"]),
    },
)
_place = st.fixed_dictionaries({"name": _places})
_knows = st.fixed_dictionaries({"src": _people, "dst": _people}, optional={"since": st.none() | st.integers(0, 3)})
_lives = st.fixed_dictionaries({"src": _people, "dst": _places}, optional={"rooms": st.none() | st.integers(0, 3)})
_rows = st.one_of(
    st.tuples(st.just("node:Person"), _person),
    st.tuples(st.just("node:Place"), _place),
    st.tuples(st.just("edge:Knows"), _knows),
    st.tuples(st.just("edge:LivesIn"), _lives),
)


def record(table: str, row: Row) -> Row:
    """A row as a record of a load."""
    kind, name = table.split(":")
    if kind == "node":
        return {"type": name, "data": row}
    data = {key: value for key, value in row.items() if key not in ("src", "dst")}
    return {"edge": name, "from": row["src"], "to": row["dst"], "data": data}


def insert(table: str, row: Row) -> str:
    """A row as a statement of a mutation."""
    names = {"src": "from", "dst": "to"} if table.startswith("edge:") else {}
    values = ", ".join(f"{names.get(key, key)}: {_literal(value)}" for key, value in row.items())
    return f"insert {table.split(':')[1]} {{ {values} }}"


def _literal(value: Any) -> str:
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


class WritesMachine(RuleBasedStateMachine):
    """A store and a model, given the same writes."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="omnigraph-model-")
        self.store: GraphStore = create_store(f"{self.directory}/graph", SCHEMA)
        self.model = GraphModel()
        self.fault: tuple[str, str] | None = None

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def both(self, on_model: Any, on_store: Any) -> None:
        """Do a write on both. It lands on both, or on neither, and for the same reason."""
        expected = self.model.copy()
        refusal: Refused | None = None
        try:
            on_model(expected)
            expected.check()
        except Refused as reason:
            refusal = reason
        fault, self.fault = self.fault, None
        store_refusal: Exception | None = None
        try:
            if fault is None:
                on_store()
            else:
                with active(*fault):
                    on_store()
        except (ValidationFailed, KeyConflict) as error:
            store_refusal = error
        except FailpointError:
            # All of it or nothing: a fault may also fall behind the point where the write is done.
            if refusal is None and not self._equals(self.model):
                self.model = expected
            return
        if store_refusal is not None:
            assert refusal is not None, f"the store refused what the model takes: {store_refusal}"
            return
        assert refusal is None, f"the store took what the model refuses: {refusal}"
        self.model = expected

    @rule(fault=st.sampled_from(FAULTS), hit=st.integers(1, 3))
    def let_the_next_write_fail(self, fault: str, hit: int) -> None:
        self.fault = (fault, f"raise:{hit}")

    @rule(rows=st.lists(_rows, min_size=1, max_size=4))
    def insert(self, rows: list[tuple[str, Row]]) -> None:
        # A mutation of LivesIn always adds an edge, so only those that are new keep the model's key.
        fresh = self.model.copy()
        rows = [(table, row) for table, row in rows if table != "edge:LivesIn" or _is_first(fresh, table, row)]
        if not rows:
            return

        def on_model(model: GraphModel) -> None:
            for table, row in rows:
                model.upsert(table, row)

        text = "query q() { " + "\n".join(insert(table, row) for table, row in rows) + " }"
        self.both(on_model, lambda: mutate(self.store, text))

    @rule(rows=st.lists(_rows, min_size=1, max_size=6))
    def load_merge(self, rows: list[tuple[str, Row]]) -> None:
        def on_model(model: GraphModel) -> None:
            for table, row in rows:
                model.upsert(table, row)

        self.both(on_model, lambda: load(self.store, [record(*row) for row in rows], mode="merge"))

    @rule(rows=st.lists(_rows, min_size=1, max_size=4))
    def load_append(self, rows: list[tuple[str, Row]]) -> None:
        def on_model(model: GraphModel) -> None:
            for table, row in rows:
                model.append(table, row)

        self.both(on_model, lambda: load(self.store, [record(*row) for row in rows], mode="append"))

    @rule(rows=st.lists(_rows, min_size=1, max_size=6))
    def load_overwrite(self, rows: list[tuple[str, Row]]) -> None:
        def on_model(model: GraphModel) -> None:
            for table in {table for table, _ in rows}:
                model.tables[table] = {}
            for table, row in rows:
                model.append(table, row)

        self.both(on_model, lambda: load(self.store, [record(*row) for row in rows], mode="overwrite"))

    @rule(age=st.integers(0, 3), least=st.integers(0, 3), mail=st.none() | st.sampled_from(["m1", "m2"]))
    def update_people(self, age: int, least: int, mail: str | None) -> None:
        text = f"query q() {{ update Person set {{ age: {age}, mail: {_literal(mail)} }} where age >= {least} }}"
        self.both(
            lambda model: model.update(
                "node:Person", lambda row: row["age"] is not None and row["age"] >= least, age=age, mail=mail
            ),
            lambda: mutate(self.store, text),
        )

    @rule(source=_people, since=st.integers(0, 3))
    def update_edges(self, source: str, since: int) -> None:
        text = f'query q() {{ update Knows set {{ since: {since} }} where from = "{source}" or since = null }}'
        self.both(
            lambda model: model.update(
                "edge:Knows", lambda row: row["src"] == source or row["since"] is None, since=since
            ),
            lambda: mutate(self.store, text),
        )

    @rule(who=st.lists(_people, min_size=1, max_size=2), place=_places)
    def delete(self, who: list[str], place: str) -> None:
        names = ", ".join(f'"{name}"' for name in who)
        text = f'query q() {{ delete Person where slug in [{names}] delete Place where name = "{place}" }}'

        def on_model(model: GraphModel) -> None:
            model.delete("node:Person", lambda row: row["slug"] in who)
            model.delete("node:Place", lambda row: row["name"] == place)

        self.both(on_model, lambda: mutate(self.store, text))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = open_store(f"{self.directory}/graph")

    @invariant()
    def the_store_equals_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self._equals(self.model)

    def _equals(self, model: GraphModel) -> bool:
        snapshot = self.store.snapshot()
        for table in TABLES:
            pin = snapshot.pin(table)
            found = self.store.tables.scan_table(table_of(pin)).drop_columns(["id"]).to_pylist()
            assert pin.row_count == len(found), (
                f"the pin of {table} counts {pin.row_count} rows, there are {len(found)}"
            )
            wanted = [dict(sorted(row.items())) for row in model.tables[table].values()]
            if sorted((dict(sorted(row.items())) for row in found), key=str) != sorted(wanted, key=str):
                return False
        return True


def _is_first(model: GraphModel, table: str, row: Row) -> bool:
    if (row["src"], row["dst"]) in model.tables[table]:
        return False
    model.upsert(table, row)
    return True


TestWrites = pytest.mark.slow(WritesMachine.TestCase)
TestWrites.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
