"""Values put in between others and left out among others, in both ways of doing it."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.read.codes import arrays


@pytest.mark.parametrize("few", [0, 1000])
def test_values_come_before_their_places(few, monkeypatch):
    monkeypatch.setattr(arrays, "FEW_PLACES", few)
    values = np.array([5, 6, 7], dtype=np.int64)
    for places in ([], [0], [3], [1, 1], [0, 2, 3, 3]):
        added = -np.arange(1, len(places) + 1, dtype=np.int64)
        found = arrays.inserted(values, np.array(places, dtype=np.int64), added)
        expected = list(values)
        for place, value in reversed(list(zip(places, added, strict=True))):
            expected.insert(place, value)
        assert found.tolist() == expected


@pytest.mark.parametrize("few", [0, 1000])
def test_values_at_places_are_left_out(few, monkeypatch):
    monkeypatch.setattr(arrays, "FEW_PLACES", few)
    values = np.array([5, 6, 7, 8], dtype=np.int64)
    for places in ([], [0], [3], [1, 2], [0, 1, 2, 3], [0, 3]):
        found = arrays.removed(values, np.array(places, dtype=np.int64))
        assert found.tolist() == [value for at, value in enumerate(values.tolist()) if at not in places]
