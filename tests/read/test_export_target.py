"""What stands in the way of an export on an object store. Local paths are tested where exports are."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.read import export_target
from omnigraph.read.export_target import refuse_occupied


def test_an_object_that_is_there_is_overwritten_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[tuple[str, str]] = []

    def objects(root: object) -> object:
        def exists(name: str) -> bool:
            looked_for.append((str(root), name))
            return name == "old.jsonl"

        return SimpleNamespace(exists=exists)

    monkeypatch.setattr(export_target, "open_objects", objects)
    refuse_occupied("s3://bucket/out/new.jsonl", as_file=True, overwrite=False)
    refuse_occupied("s3://bucket/out/old.jsonl", as_file=True, overwrite=True)
    with pytest.raises(OmniGraphError, match="old"):
        refuse_occupied("s3://bucket/out/old.jsonl", as_file=True, overwrite=False)
    assert [name for _, name in looked_for] == ["new.jsonl", "old.jsonl"]
    with pytest.raises(BadRequest, match="gs://"):
        refuse_occupied("gs://bucket/old.jsonl", as_file=True, overwrite=True)
