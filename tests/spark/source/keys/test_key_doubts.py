"""What tasks of a frame write have looked at is not looked at again, unless a table has moved since."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.ledger.store import GraphStore, create_store, open_store
from omnigraph.spark.load.known import all_committed
from omnigraph.spark.load.load_tasks import TaskReport
from omnigraph.spark.source.datasource import register
from omnigraph.spark.source.keys import committed_hashes, key_check, key_hashes, repeated_keys, staged_keys
from omnigraph.spark.source.keys.key_check import check_keys
from omnigraph.write.load.load import load
from omnigraph.write.mutate.mutate import mutate
from tests.spark.source.keys.test_staged_keys import context_of, people, staged

SCHEMA = """
node Person { slug: String @key  mail: String? @unique }
edge Knows: Person -> Person { @unique(src, dst) }
edge Likes: Person -> Person
edge Owns: Person -> Person @card(0..2)
edge Pairs: Person -> Person @card(2..3)
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GraphStore:
    monkeypatch.setattr(staged_keys, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(staged_keys, "FEW_BYTES", 2_000)
    made = create_store(str(tmp_path / "graph.omni"), SCHEMA)
    load(made, [{"slug": f"p{n}", "mail": f"p{n}@x"} for n in range(200)], mode="append", type="Person")
    return made


def counted(reports: list[TaskReport]) -> Counter[str]:
    found: Counter[str] = Counter()
    for report in reports:
        found.update(report.violations.counts)
    return found


def edges(count: int) -> list[dict[str, Any]]:
    return [{"src": f"p{n % 200}", "dst": f"p{n // 200}"} for n in range(count)]


def delete(store: GraphStore, slug: str) -> None:
    mutate(store, f'query q() {{ delete Person where slug = "{slug}" }}')


@pytest.mark.parametrize("held", [True, False], ids=["ids held", "ids looked up"])
@pytest.mark.parametrize(
    ("table_key", "rows"),
    [("edge:Likes", edges(3000)), ("edge:Knows", edges(3000)), ("node:Person", people(range(3000)))],
)
def test_what_all_tasks_found_right_is_not_checked_again(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch, table_key: str, rows: list[dict[str, Any]], held: bool
) -> None:
    if not held:
        monkeypatch.setattr(all_committed, "MOST_NODES", 10)
        monkeypatch.setattr(committed_hashes, "MOST_ROWS", 10)
    context, type_ = context_of(store, table_key)
    own_ids = table_key == "node:Person"
    told = staged(context, type_, [rows[:1500], rows[1500:2990], rows[2990:]], own_ids)
    assert [bool(task.few) for task in told] == [False, False, True]
    monkeypatch.setattr(key_check, "check_bucket", lambda *_: pytest.fail("checked again"))
    (report,) = check_keys(store.objects, context, type_, told)
    assert not report.violations
    assert report.reads >= {table_key, "node:Person"} - ({table_key} if table_key == "edge:Likes" else set())


def test_a_node_that_went_after_the_tasks_looked_is_missed_at_the_commit(store: GraphStore) -> None:
    context, type_ = context_of(store, "edge:Likes")
    told = staged(context, type_, [edges(1500), edges(1500)], False)
    assert not any(task.doubts for task in told)
    delete(store, "p7")
    reports = check_keys(store.objects, context_of(store, "edge:Likes")[0], type_, told)
    # Of each 1 500 edges, 8 come from p7 and 100 lead there.
    assert counted(reports) == {"missing_endpoint": 2 * (8 + 100)}
    assert all("p7" in one.message for report in reports for one in report.violations.violations)


def test_a_node_that_came_after_the_tasks_looked_is_found_at_the_commit(store: GraphStore) -> None:
    context, type_ = context_of(store, "edge:Likes")
    rows = [*edges(1500), {"src": "late", "dst": "p1"}]
    told = staged(context, type_, [rows], False)
    assert told[0].doubts
    assert counted(check_keys(store.objects, context, type_, told)) == {"missing_endpoint": 1}
    load(store, [{"slug": "late"}], mode="append", type="Person")
    assert not counted(check_keys(store.objects, context_of(store, "edge:Likes")[0], type_, told))


def test_ids_and_tuples_that_another_writer_took_after_the_tasks_looked_are_found(store: GraphStore) -> None:
    context, type_ = context_of(store, "node:Person")
    told = staged(context, type_, [people(range(1500)), people(range(1500, 3000))])
    load(store, [{"slug": "q9", "mail": "else"}, {"slug": "r", "mail": "q2999@x"}], mode="append", type="Person")
    reports = check_keys(store.objects, context_of(store, "node:Person")[0], type_, told)
    assert counted(reports) == {"existing_id": 1, "unique": 1}


def test_edges_of_replaced_nodes_are_looked_at_with_all_that_stays(store: GraphStore) -> None:
    load(store, edges(200), mode="append", type="Likes")
    context, type_ = context_of(store, "node:Person", "overwrite")
    stays = [{"id": f"p{n}"} for n in range(150)]
    told = staged(context, type_, [[*stays[:70], *people(range(1500))], stays[70:]])
    reports = check_keys(store.objects, context, type_, told)
    assert counted(reports) == {"dangling_edge": 50}
    assert frozenset().union(*(report.reads for report in reports)) >= {"edge:Likes", "edge:Owns"}


@pytest.mark.parametrize("clash", [False, True], ids=["hashes differ", "hashes clash"])
@pytest.mark.parametrize("table_key", ["edge:Owns", "edge:Pairs"])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_edges_are_those_of_a_plain_count(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch, table_key: str, seed: int, clash: bool
) -> None:
    if clash:
        _let_hashes_clash(monkeypatch)
    draw = random.Random(seed)
    least, most = (0, 2) if table_key == "edge:Owns" else (2, 3)
    before = [{"src": f"p{n}", "dst": "p0"} for n in range(20) for _ in range(most)]
    load(store, before, mode="append", type=table_key.removeprefix("edge:"))
    rows = [{"src": f"p{n}", "dst": f"p{draw.randrange(200)}"} for n in range(20, 199) for _ in range(most)]
    rows += [{"src": f"p{draw.randrange(200)}", "dst": "p1"} for _ in range(draw.choice([0, 5]))]
    if draw.random() < 0.5:
        rows.append({"src": "p199", "dst": "p3"})
    draw.shuffle(rows)
    context, type_ = context_of(store, table_key)
    told = staged(context, type_, [rows[:300], rows[300:310], rows[310:]], False)
    sources = Counter(row["src"] for row in [*before, *rows])
    touched = {row["src"] for row in rows}
    wanted = sum(not least <= number <= most for name, number in sources.items() if name in touched)
    assert counted(check_keys(store.objects, context, type_, told)) == +Counter(cardinality=wanted)


def test_hashes_that_clash_change_nothing_of_what_is_found(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    _let_hashes_clash(monkeypatch)
    monkeypatch.setattr(repeated_keys, "STRETCH_BYTES", 1_000)
    context, type_ = context_of(store, "node:Person")
    assert not counted(check_keys(store.objects, context, type_, staged(context, type_, [people(range(3000))])))
    twice = [people(range(1500)), [*people(range(1500, 3000)), {"id": "q3", "mail": "m"}, {"id": "p3", "mail": "n"}]]
    found = counted(check_keys(store.objects, context, type_, staged(context, type_, twice)))
    assert found == {"duplicate_id": 1, "existing_id": 1}


def _let_hashes_clash(monkeypatch: pytest.MonkeyPatch) -> None:
    real = key_hashes.tuple_hashes

    def few(columns: list[pa.ChunkedArray]) -> Any:
        return real(columns) % np.uint64(20)

    for module in (key_hashes, committed_hashes):
        monkeypatch.setattr(module, "tuple_hashes", few)


@pytest.mark.spark
@pytest.mark.parametrize("count", [20, 8000], ids=["few keys", "many keys"])
def test_a_write_during_which_a_node_goes_is_refused(spark: Any, tmp_path: Path, count: int) -> None:
    register(spark)
    store = create_store(str(tmp_path / "moved.omni"), SCHEMA)
    names = [f"someone-with-a-long-name-{n}" for n in range(8000)]
    load(store, [{"slug": name} for name in names], mode="append", type="Person")
    frame = spark.createDataFrame([(name, name) for name in names[:count]], "src string, dst string")
    head = store.snapshot().pin("edge:Likes")

    going = frame.repartition(1).mapInArrow(_with(store.uri, names[5]), "src string, dst string")
    with pytest.raises(Exception, match=r"missing_endpoint[\s\S]*someone-with-a-long-name-5\b"):
        going.write.format("omnigraph").option("type", "Likes").mode("append").save(store.uri)
    assert store.snapshot().pin("edge:Likes") == head
    assert store.snapshot().pin("node:Person").row_count == 7999, "the node went while the frame was written"


def _with(uri: str, gone: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows as they are, with a node that goes before the first of them: after the writer has seen the graph."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omnigraph.write.mutate.mutate import mutate as change

        with open_store(uri) as opened:
            change(opened, f'query q() {{ delete Person where slug = "{gone}" }}')
        yield from batches

    return run
