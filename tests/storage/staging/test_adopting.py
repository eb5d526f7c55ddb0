"""Files that one line takes from another: copies made by the store itself."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from omnigraph.storage.objects.object_errors import ObjectNotFound
from omnigraph.storage.objects.objects import ObjectStore


def test_a_copy_stays_when_the_original_goes(objects: ObjectStore) -> None:
    objects.put("a/file", b"rows")
    objects.copy("a/file", "b/c/other")
    assert objects.get("b/c/other")[0] == b"rows"
    objects.delete("a/file")
    assert objects.get("b/c/other")[0] == b"rows"


def test_a_copy_of_nothing_is_an_error(objects: ObjectStore) -> None:
    objects.put("there", b"")
    with pytest.raises(ObjectNotFound):
        objects.copy("missing", "b")


def test_a_copy_counts_as_written_now(objects: ObjectStore) -> None:
    objects.put("old", b"rows")
    if objects.root.is_local:
        long_ago = time.time() - 90 * 86400
        os.utime(Path(objects.root.path, "old"), (long_ago, long_ago))
    objects.copy("old", "new")
    made = objects.head("new")
    assert made is not None
    assert time.time() - made.modified.timestamp() < 3600, "cleanup would take it for a leftover"
