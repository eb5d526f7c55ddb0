"""A graph, the files it is loaded from and those it is exported to may lie at a path with any character."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Conflict
from omnigraph.storage.objects import open_objects
from omnigraph.storage.uri import Root, Scheme, parse_root

SCHEMA = "node P {\n    k: String @key\n    t: String? @index\n}\nedge K: P -> P\n"
ALL = "query q() { match { $p: P } return { $p.k } order { $p.k } }"
ADD = "query q($k: String) { insert P { k: $k } }"
NAMES = ["pl ain", "é", "a%20b", "100%", "a#1", "a?b", "x y+&=/é%#?z", "a*b[c]", "~x\\y:z"]


def keys(graph: og.Graph, branch: str = "main") -> list[str]:
    return [row["p.k"] for row in graph.query(ALL, branch=branch).rows()]


def live(uri: str) -> None:
    """Everything that puts files somewhere: tables, branches of branches, merges, indexes, compaction, cleanup."""
    with og.init(uri, schema=SCHEMA) as graph:
        graph.load([{"type": "P", "data": {"k": "a", "t": "x"}}], mode="append")
        graph.branch_create("one")
        graph.mutate(ADD, k="b", branch="one")
        graph.branch_create("two", from_="one")
        graph.mutate(ADD, k="c", branch="two")
        graph.mutate('query q() { delete P where k = "a" }', branch="two")
        graph.ensure_indices("two")
        assert (keys(graph), keys(graph, "one"), keys(graph, "two")) == (["a"], ["a", "b"], ["b", "c"])
        graph.branch_create("three", from_="two")
        graph.mutate(ADD, k="d", branch="three")
        graph.branch_delete("three")
        graph.merge("two")
        graph.tags.create("v/1", "two")
        graph.optimize()
        graph.cleanup(keep_versions=3, confirm=True)
        assert graph.verify().ok
    with og.open(uri, branch="two") as graph:
        assert (keys(graph, "main"), keys(graph, "one"), keys(graph, "two")) == (["b", "c"], ["a", "b"], ["b", "c"])
        graph.mutate(ADD, k="e")
        assert graph.query(ALL, at="v/1").to_arrow().num_rows == 2


@pytest.mark.parametrize("name", NAMES)
def test_on_a_local_disk(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    live(str(place))
    beside = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if place not in path.parents}
    assert beside == {str(Path(*Path(name).parts[: depth + 1])) for depth in range(len(Path(name).parts))}
    with og.open(place, read_only=True) as graph:
        assert graph.uri == str(place)


@pytest.mark.s3
@pytest.mark.parametrize("name", NAMES)
def test_on_an_object_store(name: str, s3_uri: Callable[[], str]) -> None:
    uri = f"{s3_uri()}/{name}"
    live(uri)
    root = parse_root(uri)
    whole_bucket = open_objects(Root(Scheme.S3, root.bucket)).list()
    assert whole_bucket
    assert all(entry.path.startswith(f"some/graph/{name}/") for entry in whole_bucket)


@pytest.mark.parametrize("name", NAMES)
def test_files_to_load_and_to_export(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    place.mkdir(parents=True)
    source = place / "p#1?é %25.jsonl"
    source.write_text('{"type": "P", "data": {"k": "a"}}\n')
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        for given in (source, place, f"file://{source}" if "%" not in str(source) else source):
            graph.load(given, mode="merge")
        assert keys(graph) == ["a"]
        target = place / "out?%20#.jsonl"
        graph.export(target)
        graph.export(place / "parquet", format="parquet")
        before = sorted(os.listdir(tmp_path))
        graph.load(target, mode="merge")
        graph.load(place / "parquet" / "node-P", mode="merge", type="P")
        assert keys(graph) == ["a"]
    assert sorted(os.listdir(tmp_path)) == before


def test_a_file_uri_keeps_what_comes_after_a_question_mark(tmp_path: Path) -> None:
    source = tmp_path / "a?b#c.jsonl"
    source.write_text('{"type": "P", "data": {"k": "a"}}\n')
    with og.init(f"file://{tmp_path}/g?x#y", schema=SCHEMA) as graph:
        assert graph.uri == f"{tmp_path}/g?x#y"
        graph.load(f"file://{source}", mode="append")
        graph.load(f"file://{tmp_path}/a%3Fb%23c.jsonl", mode="merge")
        assert keys(graph) == ["a"]


@pytest.mark.s3
def test_an_object_with_a_wildcard_in_its_name_is_that_object(s3_uri: Callable[[], str], tmp_path: Path) -> None:
    prefix = s3_uri()
    objects = open_objects(parse_root(prefix))
    objects.put("in/a?b[1].jsonl", b'{"type": "P", "data": {"k": "a"}}\n')
    objects.put("in/axb.jsonl", b'{"type": "P", "data": {"k": "b"}}\n')
    with og.init(tmp_path / "g", schema=SCHEMA) as graph:
        graph.load(f"{prefix}/in/a?b[1].jsonl", mode="merge")
        assert keys(graph) == ["a"]
        graph.load(f"{prefix}/in/a?b.jsonl", mode="merge")
        assert keys(graph) == ["a", "b"]
        graph.export(f"{prefix}/out/é ?#%20.jsonl")
        assert objects.exists("out/é ?#%20.jsonl")
        with pytest.raises(Conflict, match="--overwrite"):
            graph.export(f"{prefix}/out/é ?#%20.jsonl")
        with pytest.raises(Conflict, match="--overwrite"):
            graph.export(f"{prefix}/out", format="parquet")
        graph.export(f"{prefix}/out/é ?#%20.jsonl", overwrite=True)
