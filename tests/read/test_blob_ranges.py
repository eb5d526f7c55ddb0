"""Ranges of the bytes of a blob, by their definition: what `bytes[start:end]` gives, and nothing backwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omnigraph.errors import BadRequest
from omnigraph.read.entity_blobs import read_range

DATA = b"abcdef"


def test_every_range_of_a_small_blob() -> None:
    blob: Any = SimpleNamespace(name="City.map of rome", size=len(DATA), read=lambda start, stop: DATA[start:stop])
    for start in range(9):
        assert read_range(blob, start) == DATA[start:]
        for end in range(start, 9):
            assert read_range(blob, start, end) == DATA[start:end]
    for start, end in ((-1, None), (-1, 2), (3, 2), (3, -1)):
        with pytest.raises(BadRequest, match="no range"):
            read_range(blob, start, end)
