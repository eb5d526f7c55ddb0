"""An index makes a search fast, never different: the same rows at every state of the indexes."""

from __future__ import annotations

import math
import os
import random

import pytest

from tests.read.search.corpus import QUERIES, Corpus, bm25, matches, nearest

PREDICATES = ("search", "match_all", "match_text", "fuzzy")
EXPLORE = bool(os.environ.get("OMNIGRAPH_EXPLORE"))


def judge(corpus: Corpus, rng: random.Random, exact_scores: bool) -> None:
    """Every kind of search at this state, against a plain reading of the rows."""
    for query in rng.sample(QUERIES, 20 if EXPLORE else 5):
        for predicate in PREDICATES:
            expected = sorted(name for name, row in corpus.rows.items() if matches(predicate, row["text"], query))
            body = f"match {{ $d: Doc  {predicate}($d.text, $q) }} return {{ $d.name }}"
            assert [name for (name,) in corpus.ask(body, q=query)] == expected, (predicate, query)
            inside = f"match {{ $d: Doc  $d.kind = 1 or {predicate}($d.text, $q) }} return {{ $d.name }}"
            either = sorted({*expected, *(name for name, row in corpus.rows.items() if row["kind"] == 1)})
            assert [name for (name,) in corpus.ask(inside, q=query)] == either, (predicate, query)
        kept = [name for name in matching(corpus, "search", query) if corpus.rows[name]["kind"] < 2]
        body = "match { $d: Doc  search($d.text, $q)  $d.kind < 2 } return { $d.name }"
        assert [name for (name,) in corpus.ask(body, q=query)] == kept
        judge_ranking(corpus, query, exact_scores)
    for _ in range(3):
        judge_nearest(corpus, [rng.choice([-1.0, 0.25, 1.0]) for _ in range(4)])


def matching(corpus: Corpus, predicate: str, query: str) -> list[str]:
    return sorted(name for name, row in corpus.rows.items() if matches(predicate, row["text"], query))


def judge_ranking(corpus: Corpus, query: str, exact_scores: bool) -> None:
    ranked = "return { $d.name, bm25($d.text, $q) as s } order { bm25($d.text, $q) } limit"
    everything = corpus.ask(f"match {{ $d: Doc }} {ranked} 5000", q=query)
    assert sorted(name for name, _ in everything) == matching(corpus, "search", query), query
    assert everything == sorted(everything, key=lambda row: (-row[1], row[0])), query
    assert corpus.ask(f"match {{ $d: Doc }} {ranked} 3", q=query) == everything[:3], query
    few = [row for row in everything if corpus.rows[row[0]]["kind"] == 2]
    assert corpus.ask(f"match {{ $d: Doc  $d.kind = 2 }} {ranked} 2", q=query) == few[:2], query
    # Bound another way, a row has the same score.
    unindexed = f'match {{ $d: Doc  $d.name ends_with "3" }} {ranked} 5000'
    assert corpus.ask(unindexed, q=query) == [row for row in everything if row[0].endswith("3")], query
    # A search for the same words says that there is a score; one for others does not.
    asked = "return { $d.name, bm25($d.text, $q) as s } order { s desc } limit"
    assert corpus.ask(f"match {{ $d: Doc  search($d.text, $q) }} {asked} 3", q=query) == everything[:3], query
    scores = dict(everything)
    others = [(name, scores.get(name)) for name in matching(corpus, "search", "night light")]
    best = sorted(others, key=lambda row: (math.inf if row[1] is None else -row[1], row[0]))
    unlike = f'match {{ $d: Doc  search($d.text, "night light") }} {asked} 4'
    assert corpus.ask(unlike, q=query) == best[:4], query
    if exact_scores:
        expected = bm25(corpus.rows, query)
        assert all(abs(score - expected[name]) < 1e-6 * score + 1e-9 for name, score in everything), query


def judge_nearest(corpus: Corpus, query: list[float]) -> None:
    ranked = "return { $d.name } order { nearest($d.spot, $v) } limit"
    expected = nearest(corpus.rows, query)
    for limit in (1, 7, 5000):
        assert [n for (n,) in corpus.ask(f"match {{ $d: Doc }} {ranked} {limit}", v=query)] == expected[:limit]
    kept = [name for name in expected if corpus.rows[name]["kind"] == 3]
    assert [n for (n,) in corpus.ask(f"match {{ $d: Doc  $d.kind = 3 }} {ranked} 5", v=query)] == kept[:5]
    exact = "return { $d.name } order { nearest($d.spot, $v, exact: true) } limit 5"
    assert [n for (n,) in corpus.ask(f"match {{ $d: Doc }} {exact}", v=query)] == expected[:5]


@pytest.mark.parametrize("seed", range(12 if EXPLORE else 2))
def test_the_same_rows_at_every_state_of_the_indexes(tmp_path, seed):
    rng = random.Random(seed)
    corpus = Corpus(tmp_path, rng)
    corpus.write([f"d{number:03d}" for number in range(330)])
    judge(corpus, rng, exact_scores=True)  # no index
    corpus.index()
    judge(corpus, rng, exact_scores=True)  # all covered
    corpus.write([f"e{number:03d}" for number in range(40)])
    judge(corpus, rng, exact_scores=False)  # some fragments covered
    corpus.write(rng.sample(sorted(corpus.rows), 30))
    corpus.delete(rng.sample(sorted(corpus.rows), 30))
    judge(corpus, rng, exact_scores=False)  # stale texts and vectors in the index
    before = (dict(corpus.rows), corpus.head)
    corpus.index()
    judge(corpus, rng, exact_scores=False)  # two segments, deleted rows in them
    corpus.fork("f1")
    corpus.write(rng.sample(sorted(corpus.rows), 20))
    judge(corpus, rng, exact_scores=False)  # a fork with the index of its parent
    corpus.compact()
    judge(corpus, rng, exact_scores=False)  # a fork that was compacted, whose index may be lost
    corpus.rows, corpus.head = before
    judge(corpus, rng, exact_scores=False)  # an old state, after all that
    corpus.head = corpus.tables.head(corpus.head.location, None)
    corpus.compact()
    judge(corpus, rng, exact_scores=False)  # the main line compacted
