"""Values and handles between processes: everything public pickles, and a forked child is told at once."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import diagnostics, errors

SCHEMA = "node P {\n    k: String @key\n    n: I32?\n}\nedge K: P -> P\n"
ALL = "query q() { match { $p: P } return { $p.k } order { $p.k } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "g.omni", schema=SCHEMA, actor="act-ada")
    made.load([{"type": "P", "data": {"k": k}} for k in "ab"], mode="append")
    made.branch_create("review")
    made.mutate('query q() { insert P { k: "c" } }', branch="review")
    return made


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_every_error_pickles() -> None:
    violation = errors.Violation("kind", "node:P", "message", row_id="é")
    mismatch = errors.ExpectedVersionMismatch("node:P", 1, 2)
    finding = diagnostics.Diagnostic("S1", "message", diagnostics.Span(0, 1, 1, 1))
    special: dict[type[BaseException], tuple[Any, ...]] = {
        errors.ValidationFailed: ([violation], {"kind": 12}),
        errors.MergeConflicts: ([violation],),
        errors.TableMoved: (mismatch,),
        errors.RecoveryRequired: ("01OPERATION",),
        errors.StorageError: (errors.StorageKind.TRANSIENT,),
    }
    family: list[type[Any]] = [errors.OmniGraphError]
    for kind in family:
        family += [child for child in kind.__subclasses__() if child not in family]
    for kind in family:
        if issubclass(kind, errors.LanguageError):
            error = kind([finding], "text", "file.pg")
        else:
            base = next((known for known in special if issubclass(kind, known)), None)
            error = kind("what happened", *(special[base] if base else ()))
        error.details["more"] = [1]
        copy = again(error)
        assert type(copy) is kind
        assert (str(copy), copy.__dict__, copy.outcome) == (str(error), error.__dict__, error.outcome)
        assert copy.to_json() == error.to_json()


def test_every_value_pickles(graph: og.Graph) -> None:
    result = graph.query(ALL)
    assert again(result).rows() == result.rows() == [{"p.k": "a"}, {"p.k": "b"}]
    difference = graph.diff("main", "review")
    assert [change.id for change in again(difference)] == ["c"]
    assert again(difference).summary() == difference.summary()
    page = graph.changes("review")
    assert [[c.id for c in block.changes] for block in again(page).blocks] == [[], ["a", "b"], ["c"]]
    rehearsal = graph.merge("review", dry_run=True)
    assert [change.id for change in again(rehearsal).changes] == ["c"]
    merged = graph.merge("review")
    plain = [
        graph.head(),
        graph.log(),
        graph.snapshot(),
        graph.catalog(),
        graph.branches.list(),
        graph.tags.create("v1"),
        merged,
        graph.plan_schema(SCHEMA),
        graph.explain(ALL, analyze=True),
        graph.entity("P", "a"),
        graph.optimize(),
        graph.repair(),
        graph.cleanup(keep_versions=3),
        graph.verify(),
        graph.load([{"type": "P", "data": {"k": "d"}}], mode="append"),
        graph.mutate('query q() { delete P where k = "d" }'),
        graph.export(Path(graph.uri).parent / "out.jsonl"),
        graph.refresh(),
        graph.recoveries(),
    ]
    for value in plain:
        assert again(value) == value, value


def test_a_graph_pickles_as_its_address(graph: og.Graph) -> None:
    with again(graph) as copy:
        assert (copy.uri, copy.branch_name, copy.head()) == (graph.uri, "main", graph.head())
        assert copy.mutate('query q() { insert P { k: "z" } }').commit.actor_id == "act-ada"
    reader = og.open(graph.uri, read_only=True, branch="review")
    assert repr(again(reader)) == repr(reader)


def count(graph: og.Graph) -> int:
    return len(graph.query(ALL))


def test_a_graph_can_be_sent_to_a_spawned_process(graph: og.Graph) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(count, (graph,)) == 2


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import omnigraph as og
g = og.open(sys.argv[1])
g.query(sys.argv[2]).rows()
child = os.fork()
if not child:
    for call in (lambda: g.query(sys.argv[2]), lambda: g.head(), lambda: g.branches.list(), lambda: g.tags.list(),
                 lambda: og.open(sys.argv[1]), lambda: og.init(sys.argv[1] + "x", schema="node P { k: String @key }")):
        try:
            call()
            os._exit(3)
        except og.errors.BadRequest as error:
            if "spawn" not in str(error):
                os._exit(4)
    repr(g)
    g.close()
    os._exit(7)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("parent", len(g.query(sys.argv[2])))
"""


def test_a_forked_child_is_told_at_once(graph: og.Graph) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, graph.uri, ALL], capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert done.stdout == "child 7\nparent 2\n", done.stderr
