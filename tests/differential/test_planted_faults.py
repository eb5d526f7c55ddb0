"""The comparison can see: with a fault planted in the engine, or in its answers, it reports a difference soon."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from omnigraph.query.check.block_names import VariableNames
from omnigraph.query.check.scope import Bound
from omnigraph.query.typing import variables_of
from omnigraph.read.operators import execute
from omnigraph.read.plan.steps import CheckStep, FilterStep
from tests.differential.compare import same
from tests.differential.hunt import Coverage, Found, Options, hunt
from tests.differential.product import Answer, Product
from tests.differential.script import script
from tests.differential.shrink import shrink

CLOSING, SIBLINGS = 100, 100
"""Seeds from which each of the two faults that the planner once had is found soon."""


def first_difference(ways: tuple[str, ...] = ("csr",), start: int = 100) -> Found:
    coverage = Coverage()
    for seed in range(start, start + 20):
        for found in hunt(seed, Options(20, ways=ways), coverage):
            return found
    raise AssertionError(f"nothing found in {coverage.queries} queries")


@pytest.mark.parametrize("left_out", ["FilterStep", "InnerStep", "CheckStep"])
def test_a_step_that_the_engine_leaves_out_is_found(monkeypatch, left_out):
    step_as_it_is = execute._step

    def faulty(run: Any, step: Any, frame: Any) -> Any:
        return frame if type(step).__name__ == left_out else step_as_it_is(run, step, frame)

    monkeypatch.setattr(execute, "_step", faulty)
    assert first_difference().kind in ("rows", "error KeyError", "error BadRequest")


def test_a_filter_that_is_dropped_behind_a_closing_edge_is_found(monkeypatch):
    """A condition over an edge that closes a cycle and another variable: applied too early once, and never again."""
    step_as_it_is = execute._step
    closing: set[str] = set()

    def faulty(run: Any, step: Any, frame: Any) -> Any:
        if isinstance(step, CheckStep):
            closing.update(step.atom.binds)
        read = variables_of(step.predicate) if isinstance(step, FilterStep) else set()
        return frame if len(read) > 1 and read & closing else step_as_it_is(run, step, frame)

    monkeypatch.setattr(execute, "_step", faulty)
    # A value that has no answer in a row which should not be there is a difference too.
    assert first_difference(start=CLOSING).kind in ("rows", "error BadRequest")


def test_one_name_for_two_things_in_sibling_blocks_is_found(monkeypatch):
    """Names of variables that are not made unique by block: what one block binds, another one reads."""

    def faulty(self: VariableNames, written: str) -> Bound:
        self.anonymous += written == "_"
        bound = Bound(f"$_{self.anonymous}" if written == "_" else written)
        self.variables.append(bound)
        return bound

    monkeypatch.setattr(VariableNames, "bind", faulty)
    assert first_difference(start=SIBLINGS).kind.split()[0] in ("rows", "error")


def test_a_difference_is_made_small_and_printed_as_a_program(monkeypatch):
    step_as_it_is = execute._step

    def faulty(run: Any, step: Any, frame: Any) -> Any:
        return frame if type(step).__name__ == "InnerStep" else step_as_it_is(run, step, frame)

    monkeypatch.setattr(execute, "_step", faulty)
    small = shrink(first_difference(), 6)
    assert len(small.query.clauses) <= 4
    assert "not {" in script(small) or "exists {" in script(small)
    namespace: dict[str, Any] = {}
    with pytest.raises(AssertionError):
        exec(script(small), namespace)
    monkeypatch.undo()
    exec(script(small), namespace)


@pytest.mark.parametrize("change", ["a row less", "two rows turned", "a row twice"])
def test_a_change_of_the_rows_is_found(monkeypatch, change):
    ask_as_it_is = Product.ask

    def faulty(self: Product, read: Any, way: str) -> Answer:
        rows = list(ask_as_it_is(self, read, way).rows or [])
        if change == "a row less":
            rows = rows[:-1]
        elif change == "a row twice":
            rows = rows + rows[:1]
        else:
            rows = [*rows[1::-1], *rows[2:]]
        return Answer(rows)

    monkeypatch.setattr(Product, "ask", faulty)
    assert first_difference().kind == "rows"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.1 + 0.2, 0.3),
        (0.0, -0.0),
        (None, 0),
        (datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        (2**53 + 1, 2**53),
    ],
)
def test_values_that_differ_a_little_differ(one, other):
    assert same(one, one)
    assert not same(one, other)
