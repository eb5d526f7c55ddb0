"""The statistics that BM25 scores by: of the index where there is one, else of the whole column.

One score never mixes two sets. The statistics of an index are those by which it ranks itself: its average length is
written with it, and the rarity of a token is what its best row's score says. They are kept by the segments of the
index, so they outlive writes to the table, and they may lag as the index does. Only texts that have a token count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.read.codes.arrays import combined
from omnigraph.read.search.analyzer import analyzer
from omnigraph.read.search.searched import Searched
from omnigraph.read.search.texts import Corpus, counted, rarity, token_weight
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.storage.index_search import Coverage, TextKind, TextQuestion

BEST_ROWS = 9
"""So many rows tell the rarity of a token where a segment may not have heard of their last change; one where not."""


def corpus_of(
    reader: TableReader,
    caches: ReadCaches,
    searched: Searched,
    coverage: Coverage,
    query: str,
    tokens: Sequence[str],
) -> Corpus | None:
    """The statistics of an index for the tokens of a query; None when its files cannot be read."""
    key = (coverage.segments, searched.column)
    sizes: tuple[int, int] | None = caches.corpora.get(
        (key, "sizes"), lambda: reader.indexed_texts(searched.table_key, coverage)
    )
    if sizes is None or sizes[0] == 0 or sizes[1] == 0:
        return None
    texts, total = sizes
    words = analyzer(searched.settings).words(query)

    def rarity_of(token: str) -> float:
        found: float = caches.corpora.get(
            (key, token), lambda: _rarity(reader, searched, coverage, token, words[token], texts, total / texts)
        )
        return found

    return Corpus(total / texts, tuple(map(rarity_of, tokens)))


def _rarity(
    reader: TableReader, searched: Searched, coverage: Coverage, token: str, word: str, texts: int, average: float
) -> float:
    """The rarity of a token as the index has it: the score of its best row by what the row has of it.

    Of several rows the middle one is taken, since some may come from a segment that has not heard of their last change.
    """
    question = TextQuestion(searched.column, TextKind.ANY, word)
    asked = BEST_ROWS if coverage.may_be_stale else 1
    best = reader.ask_text(searched.table_key, question, [searched.column], None, asked)
    found = counted(combined(best.column(searched.column)), [token], searched.settings)
    having = np.flatnonzero(found.counts[0])
    if len(having) == 0:
        return rarity(texts, 0)
    weights = token_weight(found.counts[0][having], found.sizes[having], average)
    implied = np.sort(best.column("_score").to_numpy()[having] / weights)
    return float(implied[len(implied) // 2])


def whole_corpus(run: Run, searched: Searched, tokens: list[str]) -> Corpus:
    """The statistics of all texts of a column that has no index, counted in one pass."""
    key = (run.reader.state(searched.table_key), searched.column, searched.settings, tuple(tokens))
    found: Corpus = run.caches.corpora.get(key, lambda: _counted_corpus(run, searched, tokens))
    return found


def _counted_corpus(run: Run, searched: Searched, tokens: list[str]) -> Corpus:
    texts = total = 0
    having = np.zeros(len(tokens), dtype=np.int64)
    for batch in run.reader.batches(searched.table_key, [searched.column]):
        run.stop.check()
        found = counted(batch.column(0), tokens, searched.settings)
        texts += int((found.sizes > 0).sum())
        total += int(found.sizes.sum())
        having += (found.counts > 0).sum(axis=1)
    return Corpus(total / max(texts, 1) or 1.0, tuple(rarity(texts, int(each)) for each in having))
