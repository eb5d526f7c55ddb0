"""Loads give the same rows, the same result, the same commit and the same violations on both engines."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.snapshots import table_of
from omnigraph.ledger.store import GraphStore, create_store
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.load.load import load as load_in_process
from omnigraph.write.results import LoadResult

pytestmark = pytest.mark.spark

SCHEMA = """
node Person {
    slug: String @key
    name: String
    age: I32?
    mood: enum(calm, glad)?
    level: I64 @default(3)
    tags: [String]?
    face: Vector(2)?
    photo: Blob?
    @unique(name)
    @range(age, 0..150)
    @check(slug, "[a-z0-9-]+")
}
node Note { text: String? }
edge Knows: Person -> Person { since: Date?  @unique(src, dst) }
edge Likes: Person -> Person @card(0..3) { weight: F64? }
edge Wrote: Person -> Note @card(1..) { @key(src, dst) }
node Day { day: DateTime @key  id: String?  src: F32?  dst: F64? @unique }
node Pair { a: String  day: Date  @key(a, day) }
edge On: Pair -> Day { id: I64?  src: Date?  n: I32? @unique }
"""


def person(slug: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"slug": slug, "name": f"Name of {slug}", **more}}


def knows(a: str, b: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": a, "to": b, "data": data}


def likes(a: str, b: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Likes", "from": a, "to": b, "data": data}


PEOPLE = [person(f"p{n:02d}", age=n, mood="calm" if n % 2 else None, tags=["a"], face=[n, 0.5]) for n in range(40)]
FRIENDS = [knows(f"p{n:02d}", f"p{(n * 7) % 40:02d}", since="2024-01-02") for n in range(40)]
LIKES = [likes(f"p{n % 40:02d}", f"p{(n * 3) % 40:02d}", weight=n / 4) for n in range(80)]
NOTES = [{"type": "Note", "data": {"id": f"n{n}", "text": f"note {n}"}} for n in range(5)]
WROTE = [{"edge": "Wrote", "from": f"p{n:02d}", "to": f"n{n}"} for n in range(5)]
BASE = [*PEOPLE, *NOTES, *FRIENDS[:5]]
EVERYTHING = [*PEOPLE, *FRIENDS, *NOTES, *LIKES, *WROTE]


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


DAYS = [
    {"type": "Day", "data": {"day": "2026-01-02T03:04:05Z", "id": "own", "src": 0.5}},
    {"type": "Day", "data": {"day": "0001-01-01T00:00:00.000001Z", "dst": 2**53}},
    {"type": "Pair", "data": {"a": "a", "day": "2026-01-02"}},
]

CASES: dict[str, tuple[str, list[Any], list[Any]]] = {
    # name: mode, records that are there, records of the load
    "append to nothing": ("append", [], EVERYTHING),
    "append more": ("append", PEOPLE[:20], [*PEOPLE[20:], *FRIENDS]),
    "append an id that exists": ("append", BASE, [*PEOPLE[18:22], person("new")]),
    "append a duplicate": (
        "append",
        [],
        [*PEOPLE, PEOPLE[3], {"type": "Note", "data": {"id": "n"}}, NOTES[1], NOTES[1]],
    ),
    "merge into nothing": ("merge", [], EVERYTHING),
    "merge keeps what is not mentioned": (
        "merge",
        [*BASE, *WROTE],
        [
            person("p03", age=99),
            {"type": "Person", "data": {"slug": "p04", "mood": None}} | {},
            person("p41"),
            *FRIENDS[2:9],
        ],
    ),
    "merge records of one row": (
        "merge",
        BASE,
        [
            person("p01", age=1),
            person("x1", age=5),
            person("p01", mood="glad"),
            person("x1", level=9),
            person("p01", age=2),
        ],
    ),
    "merge edges by tuple": (
        "merge",
        BASE,
        [*FRIENDS[:10], knows("p00", "p01", since="2025-05-05"), knows("p00", "p01")],
    ),
    "merge that changes nothing": ("merge", BASE, BASE),
    "merge swaps a unique value": (
        "merge",
        BASE,
        [
            {"type": "Person", "data": {"slug": "p01", "name": "Name of p02"}},
            {"type": "Person", "data": {"slug": "p02", "name": "Name of p01"}},
        ],
    ),
    "merge breaks a unique value": (
        "merge",
        BASE,
        [{"type": "Person", "data": {"slug": "p01", "name": "Name of p02"}}],
    ),
    "merge a new row without a required value": ("merge", BASE, [{"type": "Person", "data": {"slug": "zz", "age": 3}}]),
    "merge edges with ids": (
        "merge",
        [*PEOPLE, knows("p00", "p01", id="e1")],
        [knows("p02", "p03", id="e1"), knows("p00", "p01"), knows("p04", "p05", id="e2"), knows("p06", "p07", id="e2")],
    ),
    "overwrite one type": ("overwrite", [*PEOPLE, *LIKES], LIKES[:7]),
    "overwrite leaves edges dangling": ("overwrite", [*PEOPLE, *FRIENDS], PEOPLE[:30]),
    "overwrite everything": ("overwrite", EVERYTHING, [*PEOPLE[:9], *FRIENDS[:1], *NOTES[:2], *WROTE[:2], LIKES[0]]),
    "rows break rules of their own": (
        "append",
        [],
        [
            *PEOPLE[:30],
            person("UPPER"),
            person("old", age=151),
            person("odd", mood="angry"),
            person("flat", face=[1.0]),
            person("text", age="7"),
            person("extra", nickname="x"),
            {"type": "Person", "data": {"name": "nobody"}},
            {"type": "Person", "data": {"slug": "noname"}},
            {"type": "Persn", "data": {}},
            {"edge": "Knows", "from": "p00"},
            [1, 2],
        ],
    ),
    "ends that do not exist": ("append", PEOPLE[:20], [*FRIENDS[:35], likes("ghost", "p01"), likes("p01", "ghost")]),
    "tuples within the load": ("append", PEOPLE, [*FRIENDS, *FRIENDS[4:6], person("p70", name="Name of p01")]),
    "tuples against committed rows": ("append", [*PEOPLE, *FRIENDS], [*FRIENDS[:12], person("q", name="Name of p05")]),
    "too many edges": (
        "append",
        [*PEOPLE, *LIKES],
        [likes("p01", f"p{n:02d}") for n in range(4)] + [likes("p02", "p03")],
    ),
    "too many edges in one load": ("append", PEOPLE, [likes("p01", f"p{n:02d}") for n in range(4)] + LIKES[4:9]),
    "nothing at all": ("append", BASE, []),
    "ids by the value of the key": (
        "merge",
        DAYS,
        [
            *DAYS,
            {"edge": "On", "from": '[ "a" , "2026-01-02" ]', "to": "2026-01-02T05:04:05+02:00", "data": {"id": 5}},
            {"edge": "On", "from": ["a", "2026-01-02"], "to": "2026-01-02T03:04:05Z", "data": {"src": "0001-01-01"}},
            {"edge": "On", "from": ["a", "2026-01-02"], "to": "2026-01-02T03:04:05Z", "data": {"n": 1}},
        ],
    ),
    "ids that are none": (
        "append",
        DAYS,
        [{"edge": "On", "from": ["a"], "to": 5}, {"edge": "On", "from": "x", "to": "2026-01-02T03:04:05Z"}],
    ),
    "values that a type cannot hold": (
        "append",
        [],
        [
            {"type": "Day", "id": "x", "data": {"day": "2026-01-02T03:04:05Z", "id": "own", "src": 1e-60}},
            {"type": "Day", "data": {"day": "2026-01-02T03:04:05.0000001Z", "dst": 2**53 + 1}},
            {"type": "Day", "data": {"day": "2026-01-03T00:00:00Z", "src": 2**24 + 1, "dst": 2**54}},
            {"type": "Person", "data": {"slug": "b", "name": "b", "photo": "base64:AAE="}},
        ],
    ),
}


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny splits and several buckets, so that every rule is checked across tasks."""
    from omnigraph.spark.load import load_input, load_splits

    monkeypatch.setattr(load_splits, "SMALLEST_SPLIT", 2500)
    monkeypatch.setattr(load_splits, "LARGEST_SPLIT", 5000)
    monkeypatch.setattr(load_splits, "_HEAD", 256)
    monkeypatch.setattr(load_input, "BUCKET_BYTES", 6000)


Outcome = tuple[Any, Any, Any]
Loader = Callable[..., LoadResult]


def run(loader: Loader, path: Path, existing: list[Any], data: Any, **options: Any) -> Outcome:
    store = create_store(str(path), SCHEMA)
    if existing:
        load_in_process(store, lines(existing), mode="append")
    before = len(list(history(store)))
    try:
        result: Any = loader(store, data, **options)
        told = {**result.to_json(), "uri": None, "engine": None}
        told.pop("metrics", None)  # what a job of Spark measured is its own
        commit = told.pop("commit")
        told["commit kind"] = commit and (commit["kind"], commit["changes_data"], commit["actor_id"], commit["branch"])
    except OmniGraphError as error:
        told = (type(error).__name__, error.message, error.details)
    return told, len(list(history(store))) - before, content(store, options.get("branch", "main"))


def history(store: GraphStore) -> Iterator[Any]:
    commit = store.snapshot().head
    while commit is not None:
        yield commit
        commit = store.commits.get(commit.parent_commit_id) if commit.parent_commit_id else None


def content(store: GraphStore, branch: str = "main") -> dict[str, list[Any]]:
    """Every row of every table. Ids of edges that were made up are left out."""
    found = {}
    try:
        snapshot = store.snapshot(branch=branch)
    except OmniGraphError:
        return {}
    for key, pin in snapshot.tables.items():
        rows = store.tables.scan_table(table_of(pin), blobs="bytes").to_pylist()
        assert len(rows) == pin.row_count == len({row["id"] for row in rows})
        for row in rows:
            if len(row["id"]) == 26:
                del row["id"]
        found[key] = sorted(rows, key=repr)
    return found


ULID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


def comparable(outcome: Outcome) -> Outcome:
    """Ids that were made up differ from run to run, and those of a refused load are nobody's."""
    told, commits, rows = outcome
    if isinstance(told, tuple):
        for violation in told[2].get("violations", []):
            violation["message"] = ULID.sub("<made up>", violation["message"])
            if ULID.fullmatch(violation.get("row_id") or "") or violation.get("row_id") is None:
                violation.pop("row_id", None)
        told = (told[0], ULID.sub("<made up>", told[1]), told[2])
    return told, commits, rows


def on_spark(spark: Any) -> Loader:
    from omnigraph.spark.load.load import load

    return lambda store, data, **options: load(spark, store, data, **options)


def same(spark: Any, tmp_path: Path, existing: list[Any], data: Any, **options: Any) -> Outcome:
    in_process = comparable(run(load_in_process, tmp_path / "local", existing, data, **options))
    spark_outcome = comparable(run(on_spark(spark), tmp_path / "spark", existing, data, **options))
    assert spark_outcome[0] == in_process[0]
    assert spark_outcome[1:] == in_process[1:]
    return spark_outcome


@pytest.mark.parametrize("name", ["append to nothing", "merge keeps what is not mentioned", "tuples within the load"])
def test_the_same_in_one_piece(spark: Any, tmp_path: Path, name: str) -> None:
    mode, existing, records = CASES[name]
    file = tmp_path / "data.jsonl"
    file.write_bytes(lines(records))
    same(spark, tmp_path, existing, str(file), mode=mode)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_same_rows_errors_and_commits(spark: Any, tmp_path: Path, cut: None, name: str) -> None:
    mode, existing, records = CASES[name]
    file = tmp_path / "data.jsonl"
    file.write_bytes(lines(records))
    same(spark, tmp_path, existing, str(file), mode=mode)


@pytest.mark.parametrize("kind", ["plain", "gz", "zst", "pretty", "directory", "glob", "mixed"])
def test_the_same_from_files_of_json(spark: Any, tmp_path: Path, cut: None, kind: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    data: Any = str(folder / "all.jsonl")
    if kind == "gz":
        (folder / "all.jsonl").write_bytes(gzip.compress(lines(EVERYTHING)))
    elif kind == "zst":
        with pa.CompressedOutputStream(str(folder / "all.jsonl"), "zstd") as out:
            out.write(lines(EVERYTHING))
    elif kind == "pretty":
        (folder / "all.jsonl").write_text("\n".join(json.dumps(record, indent=2) for record in EVERYTHING))
    elif kind == "mixed":
        text = [json.dumps(record, indent=2 if n > 60 else None) for n, record in enumerate(EVERYTHING)]
        (folder / "all.jsonl").write_text("\n".join(text))
    elif kind == "plain":
        (folder / "all.jsonl").write_bytes(lines(EVERYTHING))
    else:
        (folder / "b.jsonl").write_bytes(lines(PEOPLE))
        (folder / "a.jsonl").write_bytes(lines([*FRIENDS, *NOTES]))
        (folder / "c.jsonl.gz").write_bytes(gzip.compress(lines([*LIKES, *WROTE])))
        data = str(folder) if kind == "directory" else str(folder / "*.jsonl*")
    told, commits, rows = same(spark, tmp_path, [], data, mode="append")
    assert commits == 1
    assert (len(rows["node:Person"]), len(rows["edge:Likes"])) == (40, 80)
    assert told["tables"]


@pytest.mark.s3
@pytest.mark.parametrize("wanted", ["in", "in/**/*.jsonl*"])
def test_the_same_from_an_object_store(
    spark: Any, tmp_path: Path, cut: None, s3_uri: Callable[[], str], monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    place = s3_uri()
    for name in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])
    objects = open_objects(parse_root(place))
    objects.put("in/people.jsonl", lines([*PEOPLE, person("UPPER")]))
    objects.put("in/more/edges.jsonl.gz", gzip.compress(lines([*FRIENDS, *NOTES])))
    objects.put("in/_SUCCESS", b"")
    told, _, _ = same(spark, tmp_path / "bad", [], f"{place}/{wanted}", mode="append")
    assert told[2]["violations"][0]["source"] == f"{place}/in/people.jsonl"
    objects.put("in/people.jsonl", lines(PEOPLE))
    _, commits, rows = same(spark, tmp_path / "good", [], f"{place}/{wanted}", mode="append")
    assert commits == 1
    assert (len(rows["node:Person"]), len(rows["edge:Knows"])) == (40, 40)


COLUMNS = {
    "slug": ["a", "b", "c"],
    "full_name": ["A", "B", "C"],
    "age": [1, None, 3],
    "level": [4, 5, 6],
    "face": [[1.0, 2.0], None, [0.0, 0.5]],
}


@pytest.mark.parametrize("kind", ["arrow", "rows", "parquet", "csv", "frame", "header", "lines"])
def test_the_same_for_an_overwrite_of_nothing(spark: Any, tmp_path: Path, kind: str) -> None:
    table = pa.table({"from": pa.array([], pa.string()), "to": pa.array([], pa.string())})
    data: Any = {"arrow": table, "rows": []}.get(kind)
    if kind == "parquet":
        data = str(tmp_path / "none.parquet")
        pyarrow.parquet.write_table(table, data)
    elif kind in ("csv", "header"):
        data = str(tmp_path / "none.csv")
        Path(data).write_text("from,to\n" if kind == "csv" else "p00,p01\n")
    elif kind == "lines":
        data = str(tmp_path / "none.jsonl")
        Path(data).write_text("\n")
    options: dict[str, Any] = {"mode": "overwrite"} | ({} if kind == "lines" else {"type": "Likes"})
    if kind == "frame":
        told, commits, rows = comparable(run(load_in_process, tmp_path / "local", [*PEOPLE, *LIKES], table, **options))
        frame = spark.createDataFrame([], "`from` string, `to` string")
        other = comparable(run(on_spark(spark), tmp_path / "spark", [*PEOPLE, *LIKES], frame, **options))
        assert other == (told, commits, rows)
    else:
        told, commits, rows = same(spark, tmp_path, [*PEOPLE, *LIKES], data, **options)
    if kind in ("header", "lines"):
        assert (told[0], commits, len(rows["edge:Likes"])) == ("BadRequest", 0, 80)
        return
    assert (commits, rows["edge:Likes"]) == (1, [])
    told, commits, _ = same(spark, tmp_path / "nodes", [*PEOPLE, *LIKES], [], mode="overwrite", type="Person")
    assert (told[2]["violation_counts"], commits) == ({"dangling_edge": 160}, 0)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "rows", "parquet", "csv", "ipc", "bytes", "stream"])
def test_the_same_from_columns_and_rows(spark: Any, tmp_path: Path, kind: str) -> None:
    mode = "merge"
    table = pa.table(COLUMNS)
    options: dict[str, Any] = {"mode": mode, "type": "Person", "columns": {"full_name": "name"}}
    data: Any = table
    if kind == "pandas":
        data = table.drop_columns(["face"]).to_pandas(types_mapper=None)
        data["age"] = data["age"].astype("Int64")
    elif kind == "polars":
        import polars

        data = polars.from_arrow(table)
    elif kind == "rows":
        data = table.to_pylist()
    elif kind == "parquet":
        data = str(tmp_path / "rows.parquet")
        pyarrow.parquet.write_table(table, data, row_group_size=1)
    elif kind == "csv":
        data = str(tmp_path / "rows.csv")
        pa.csv.write_csv(table.drop_columns(["face"]), data)
    elif kind == "ipc":
        data = str(tmp_path / "rows.arrow")
        with pa.ipc.new_file(data, table.schema) as writer:
            writer.write_table(table)
    elif kind in ("bytes", "stream"):
        options = {"mode": mode}
        data = lines(BASE)
        if kind == "stream":
            path = tmp_path / "stream.jsonl"
            path.write_bytes(data)
            with path.open("rb") as one, path.open("rb") as other:
                told = [
                    run(loader, tmp_path / name, [], stream, **options)
                    for loader, name, stream in ((load_in_process, "local", one), (on_spark(spark), "spark", other))
                ]
            assert told[0] == told[1]
            assert told[0][1] == 1
            return
    same(spark, tmp_path, [person("c", age=50)], data, **options)


def test_the_same_for_bad_columns(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"slug": ["ok", "NO", "ok"], "name": ["1", "2", None], "age": [1, 999, 3]})
    told, commits, _ = same(spark, tmp_path, [], table, mode="append", type="Person")
    assert told[0] == "ValidationFailed"
    assert commits == 0
    same(spark, tmp_path / "again", [], pa.table({"nme": ["x"]}), mode="append", type="Person")


@pytest.mark.parametrize("type", ["Knows", "Likes", "Wrote"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_the_same_for_edges_alone(spark: Any, tmp_path: Path, mode: str, type: str) -> None:
    """Whose ends are looked up by the tasks that read them, where no number of edges is asked for."""
    there = [*PEOPLE[:10], *NOTES, *FRIENDS[:1]]
    ends = [note["data"]["id"] for note in NOTES] if type == "Wrote" else ["p05", "p06", "p07", "p08", "p09"]
    good = pa.table({"src": ["p01", "p02", "p03", "p04", "p05"], "dst": ends})
    told, commits, _ = same(spark, tmp_path / "good", there, good, mode=mode, type=type)
    assert commits == 1, told
    bad = pa.table({"src": ["p01", "nobody", None, "p04", "p05", "nobody"], "dst": [*ends[:4], "none", None]})
    told, commits, _ = same(spark, tmp_path / "bad", there, bad, mode=mode, type=type)
    assert told[0] == "ValidationFailed"
    assert commits == 0


@pytest.mark.parametrize("type", ["Knows", "Likes"])
def test_the_same_for_edges_without_an_end_in_a_merge(spark: Any, tmp_path: Path, type: str) -> None:
    bad = pa.table({"src": ["p01", "nobody", None, "p04", None], "dst": ["p05", "p06", "p07", None, "nowhere"]})
    told, commits, _ = same(spark, tmp_path, PEOPLE[:10], bad, mode="merge", type=type)
    assert told[0] == "ValidationFailed"
    assert commits == 0


@pytest.mark.parametrize(
    ("type", "message"), [(None, "have no type of their own"), ("Person", "the column `nme` is no property of Person")]
)
def test_the_same_mistakes_with_a_file_of_columns(spark: Any, tmp_path: Path, type: str | None, message: str) -> None:
    file = tmp_path / "people.csv"
    file.write_text("slug,nme\na,Ada\n")
    told, commits, _ = same(spark, tmp_path, [], str(file), mode="append", type=type)
    assert told[0] == "BadRequest"
    assert message in told[1]
    assert commits == 0


def test_the_same_onto_a_branch(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "more.jsonl"
    file.write_bytes(lines([person("z1"), person("p03", age=77), *FRIENDS[:15]]))
    for engine in (load_in_process, on_spark(spark)):
        store = create_store(str(tmp_path / f"graph{id(engine)}"), SCHEMA)
        load_in_process(store, lines(BASE), mode="append")
        before = content(store)
        result = engine(store, str(file), mode="merge", branch="review/1", from_="main", actor="act-ada")
        assert result.branch_created
        assert result.commit is not None
        assert result.commit.actor_id == "act-ada"
        assert content(store) == before
        assert len(content(store, "review/1")["node:Person"]) == 41
        forks = {key: pin.lance_branch for key, pin in store.snapshot(branch="review/1").tables.items()}
        assert {key for key, fork in forks.items() if fork} == {"node:Person", "edge:Knows"}
        create_branch(store, "other", "main")
        with pytest.raises(OmniGraphError):
            engine(store, lines([person("UPPER")]), mode="append", branch="gone", from_="main")
        assert store.refs.get("gone") is None
