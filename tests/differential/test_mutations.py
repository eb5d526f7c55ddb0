"""Random mutations leave the rows that the model says, count them right, and are refused where they must be."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.mutating import hunt_mutations

PER_GRAPH = 20


@pytest.mark.slow
def test_the_product_and_the_model_agree_on_mutations():
    made: Counter[str] = Counter()
    for seed in range(1, 5):
        found = next(hunt_mutations(seed, PER_GRAPH, frozenset(), made), None)
        assert found is None, str(found)
    assert made["different"] >= 30
    assert made["refused"]
