"""A text has one score, to the last bit, whether it is scored alone, among a few or among many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.search.texts import FEW, Corpus, bm25, counted, scored
from omnigraph.schema.search_settings import TextSettings

TOKENS = ["graph", "night", "ecole"]
WORDS = ["graph", "Night", "École", "and", "  ", "a-b", "ͺ"]
TEXTS = st.lists(st.none() | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=20)
RARITIES = st.tuples(*[st.floats(0.01, 20.0)] * len(TOKENS))


@given(TEXTS, st.floats(0.5, 90.0), RARITIES, st.sampled_from([TextSettings(), TextSettings(stop_words=True)]))
def test_a_few_texts_have_the_scores_of_many(
    texts: list[str | None], average: float, rarities: tuple[float, ...], settings: TextSettings
) -> None:
    corpus = Corpus(average, rarities)
    many = pa.array((texts * (FEW + 1))[: FEW + len(texts)], pa.large_string())
    few = scored(many[: len(texts)], TOKENS, settings, corpus)
    assert len(many) > FEW
    assert few.tobytes() == scored(many, TOKENS, settings, corpus)[: len(texts)].tobytes()
    assert few.tobytes() == bm25(counted(many, TOKENS, settings), corpus)[: len(texts)].tobytes()
    assert [bool(each) for each in np.isnan(few)] == [not _matches(text) for text in texts]


def _matches(text: str | None) -> bool:
    return any(word in ("graph", "Night", "École") for word in (text or "").split(" "))
