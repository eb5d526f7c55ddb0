"""Files to load are found and read the same way on a local disk and on an object store."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from omnigraph.errors import BadRequest, NotFound
from omnigraph.ledger.store import create_store
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.decode.files import find_files, named_files
from omnigraph.write.load.input_size import input_bytes
from omnigraph.write.load.load import load

SCHEMA = "node Person { slug: String @key }"
LINES = b"".join(b'{"type": "Person", "data": {"slug": "p%d"}}\n' % n for n in range(30))
CONTENT = {
    "in/a.jsonl": b"".join(LINES.splitlines(keepends=True)[:10]),
    "in/b.jsonl.gz": gzip.compress(b'{"type": "Person", "data": {"slug": "z"}}\n'),
    "in/deep/er/c.ndjson": b'{"type": "Person", "data": {"slug": "c"}}\n',
    "in/_SUCCESS": b"",
    "in/_temporary/d.jsonl": b"broken",
    "in/notes.txt": b"not to be loaded",
    "in-other/e.jsonl": b'{"type": "Person", "data": {"slug": "e"}}\n',
}


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place with some files, on a disk or on an object store."""
    root = str(tmp_path / "files") if request.param == "disk" else request.getfixturevalue("s3_uri")()
    objects = open_objects(parse_root(root))
    for name, data in CONTENT.items():
        objects.put(name, data)
    return root


def names(place: str, wanted: str) -> list[str]:
    return [file.name.removeprefix(f"{place}/") for file in find_files(f"{place}/{wanted}")]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("in/a.jsonl", ["in/a.jsonl"]),
        ("in/notes.txt", ["in/notes.txt"]),
        ("in", ["in/a.jsonl", "in/b.jsonl.gz", "in/deep/er/c.ndjson"]),
        ("in/*.jsonl", ["in/a.jsonl"]),
        ("in/?.jsonl*", ["in/a.jsonl", "in/b.jsonl.gz"]),
        ("in/[!a].jsonl*", ["in/b.jsonl.gz"]),
        ("in/**/*.ndjson", ["in/deep/er/c.ndjson"]),
        ("in*/*.jsonl", ["in-other/e.jsonl", "in/a.jsonl"]),
    ],
)
def test_a_name_a_directory_and_a_glob_mean_the_same_everywhere(place: str, wanted: str, expected: list[str]) -> None:
    assert names(place, wanted) == expected
    assert [file.size for file in find_files(f"{place}/{wanted}")] == [len(CONTENT[name]) for name in expected]


@pytest.mark.parametrize("wanted", ["nothing.jsonl", "in/*.csv"])
def test_what_is_not_there_is_said_so(place: str, wanted: str) -> None:
    with pytest.raises(NotFound, match=wanted.replace("*", r"\*")):
        find_files(f"{place}/{wanted}")


def test_any_part_of_a_file_can_be_read(place: str) -> None:
    (file,) = find_files(f"{place}/in/a.jsonl")
    data = CONTENT["in/a.jsonl"]
    assert file.read(3, 20) == data[3:20]
    assert file.read(len(data) - 2, len(data) + 50) == data[-2:]
    assert file.read(len(data), len(data) + 1) == b""
    with file.open(5, 40) as part:
        assert part.read(10) == data[5:15]
        part.seek(-3, io.SEEK_END)
        assert (part.tell(), part.read()) == (32, data[37:40])
    with find_files(f"{place}/in/b.jsonl.gz")[0].open() as plain:
        assert plain.read().startswith(b'{"type"')


def test_a_load_in_process_takes_them(place: str, tmp_path: Path) -> None:
    table = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"slug": ["x1", "x2"]}), table)
    objects = open_objects(parse_root(place))
    objects.put("tables/one.parquet", table.getvalue())
    objects.put("tables/two.csv", b"slug\ny1\n")
    with create_store(str(tmp_path / "graph"), SCHEMA) as store:
        data = [f"{place}/in", f"{place}/in*other/*.jsonl"]
        assert load(store, data, mode="append").rows_loaded == 13
        assert load(store, f"{place}/tables", mode="append", type="Person").rows_loaded == 3
    assert input_bytes(f"{place}/in-other") == len(CONTENT["in-other/e.jsonl"])


def test_a_relative_path_is_found_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    monkeypatch.chdir(tmp_path)
    (file,) = find_files("a.jsonl")
    monkeypatch.chdir("/")
    assert file.name == "a.jsonl"
    assert file.read(0, len(LINES)) == LINES


def test_other_places_and_other_values_are_no_files() -> None:
    assert named_files([{"slug": "a"}]) is None
    assert named_files([]) is None
    with pytest.raises(BadRequest, match="read hdfs:// with Spark and load the frame"):
        find_files("hdfs://somewhere/people.jsonl")
