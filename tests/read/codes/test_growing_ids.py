"""Ids as a query meets them: one code for each, whatever comes first, twice or again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.read.codes.ids import GrowingIds


@pytest.mark.parametrize("met", [["ba", "ab", "ca"], ["aab", "b"], ["", "a", "aba"], ["abc", "cab"]])
def test_each_id_has_one_code_and_the_code_leads_back_to_it(met: list[str]) -> None:
    known = GrowingIds()
    code_of: dict[str, int] = {}
    for batch in met:
        codes = known.encode(pa.array(list(batch), pa.large_string()))
        assert codes.tolist() == [code_of.setdefault(each, len(code_of)) for each in batch]
        assert known.at(codes).to_pylist() == list(batch)
    assert len(known) == len(code_of)
    every = np.arange(len(known))
    assert known.at(every).to_pylist() == list(code_of)
    assert known.at(every[::-1]).to_pylist() == list(code_of)[::-1]
    assert known.order_of(every).tolist() == [sorted(code_of).index(each) for each in code_of]
