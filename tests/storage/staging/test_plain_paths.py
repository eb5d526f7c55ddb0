"""Small writes leave next to nothing to the garbage collector, and the descriptions of their files are Lance's."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import pytest
from lance.fragment import DataFile, FragmentMetadata, write_fragments

import omnigraph as og
from omnigraph.storage.staging.plain_paths import with_plain_paths
from tests.storage.conftest import PEOPLE, people

WRITES = 40


@pytest.mark.parametrize(
    "text",
    [
        "query q($s: String) { insert Person { slug: $s } }",
        'query q($s: String) { update Person set { name: $s } where slug = "first" }',
    ],
    ids=["inserts", "updates"],
)
def test_what_writes_leave_goes_without_the_collector(tmp_path: Path, text: str) -> None:
    with og.init(tmp_path / "graph", schema="node Person { slug: String @key  name: String? }") as graph:
        graph.mutate('query q() { insert Person { slug: "first" } }')
        for number in range(5):
            graph.mutate(text, s=f"warm {number}")
        gc.collect()
        gc.disable()
        try:
            for number in range(WRITES):
                graph.mutate(text, s=str(number))
            left = gc.collect()
        finally:
            gc.enable()
    assert left / WRITES < 10, "one class for each path that was asked for made 60"


def test_a_file_with_a_plain_path_is_the_same_file(tmp_path: Path) -> None:
    (fragment,) = write_fragments(people("a"), str(tmp_path / "t"), schema=PEOPLE)
    before = fragment.to_json()
    path = str(fragment.files[0].path)
    with_plain_paths([fragment])
    (file,) = fragment.files
    assert (type(file.path), file.path, isinstance(file, DataFile)) == (str, path, True)
    assert fragment.to_json() == before
    again: FragmentMetadata = pickle.loads(pickle.dumps(fragment))
    assert again.files == fragment.files
