"""A frame write in flight is marked, so that the sweep of a failed load leaves its files alone."""

from __future__ import annotations

from pathlib import Path

from omnigraph.config import override
from omnigraph.ledger.commit.staging_marks import MARKS, any_marked, put_mark, remove_dead_marks, remove_mark
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root


def test_a_mark_counts_until_it_is_removed_or_old(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    assert not any_marked(objects)
    mark = put_mark(objects, "frame write")
    assert any_marked(objects)
    with override(cleanup_grace=0.0):
        assert not any_marked(objects)
    remove_mark(objects, mark)
    assert not any_marked(objects)


def test_only_marks_that_count_no_more_are_removed(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    put_mark(objects, "frame write")
    assert remove_dead_marks(objects) == 0
    assert any_marked(objects)
    with override(cleanup_grace=0.0):
        assert remove_dead_marks(objects) == 1
    assert not any_marked(objects)


def test_what_a_writer_that_died_has_put_beside_its_mark_goes_with_its_folder(tmp_path: Path) -> None:
    objects = open_objects(parse_root(tmp_path))
    mark = put_mark(objects, "frame write")
    objects.put(f"{mark.removesuffix('.json')}/000000-0.keys", b"keys")
    (tmp_path / MARKS / "left" / "empty").mkdir(parents=True)
    with override(cleanup_grace=0.0):
        assert remove_dead_marks(objects) == 2
    assert not (tmp_path / MARKS).exists()
