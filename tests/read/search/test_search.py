"""The rules of search on page 02, one test for each."""

from __future__ import annotations

import pytest

from omnigraph.embed.mock import MockEmbeddings
from omnigraph.errors import BadRequest
from tests.read.asking import ask, graph, person, run, values

TEXTS = graph(
    [
        person("a", bio="The quick brown Fox"),
        person("b", bio="brown and quick"),
        person("c", bio="a fix, foxes!"),
        person("d"),
        person("e", bio=""),
    ],
    "ab ac",
)


def matching(predicate: str) -> list[str]:
    return values(ask(TEXTS, f"match {{ $p: Person  {predicate} }} return {{ $p.name }}"))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ('search($p.bio, "fox lion")', ["a"]),
        ('search($p.bio, "QUICK")', ["a", "b"]),
        ('search($p.bio, "qui")', []),
        ('search($p.bio, "")', []),
        ('search($p.bio, "!!")', []),
        ('match_text($p.bio, "quick brown")', ["a"]),
        ('match_text($p.bio, "brown quick")', []),
        ('match_text($p.bio, "brown, AND... quick")', ["b"]),
        ('match_text($p.bio, "fox the")', []),
        ('match_text($p.bio, "")', []),
        ('fuzzy($p.bio, "fox")', ["a", "c"]),
        ('fuzzy($p.bio, "fox", 0)', ["a"]),
        ('fuzzy($p.bio, "qick")', ["a", "b"]),
        ('fuzzy($p.bio, "foxxes", 1)', ["c"]),
        ('fuzzy($p.bio, "an")', []),
    ],
)
def test_text_predicates(predicate, expected):
    assert matching(predicate) == expected


def test_tokens_are_folded_and_split_at_everything_but_letters_and_digits():
    people = graph([person("a", bio="ﬁne_Tuning: №9/Größe"), person("b", bio="e\u0301cole"), person("c", bio="École")])
    found = {
        word: values(ask(people, f'match {{ $p: Person  search($p.bio, "{word}") }} return {{ $p.name }}'))
        for word in ("fine", "tuning", "9", "GROSSE", "größe", "école", "cole")
    }
    assert found == {
        "fine": ["a"],
        "tuning": ["a"],
        "9": ["a"],
        "GROSSE": ["a"],
        "größe": ["a"],
        "école": ["c"],
        "cole": ["b"],
    }


def test_text_predicates_hold_on_a_variable_reached_by_a_traversal():
    text = 'match { $p: Person { name: "a" }  $p knows $q  search($q.bio, "brown") } return { $q.name }'
    assert values(ask(TEXTS, text)) == ["b"]


def test_text_predicates_inside_not():
    text = 'match { $p: Person  not { $p knows $q  search($q.bio, "brown") } } return { $p.name }'
    assert values(ask(TEXTS, text)) == ["b", "c", "d", "e"]


def test_bm25_ranks_rarer_and_more_frequent_tokens_higher_and_leaves_the_rest_null():
    people = graph([person("a", bio="cat cat dog"), person("b", bio="cat dog"), person("c", bio="dog"), person("d")])
    rows = ask(people, 'match { $p: Person } return { $p.name, bm25($p.bio, "cat") as s } order { s desc }')
    assert [row["p.name"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[0]["s"] > rows[1]["s"] > 0
    assert rows[2]["s"] is None
    assert rows[3]["s"] is None


SPOTS = graph(
    [
        person("far", spot=[-1.0, 0.0], age=1),
        person("mid", spot=[0.0, 3.0], age=1),
        person("near", spot=[5.0, 0.0], age=2),
        person("zero", spot=[0.0, 0.0], age=1),
        person("none", age=1),
    ],
    [("none", "far"), ("none", "mid")],
)
NEAREST = "order { nearest($p.spot, [1.0, 0.0]) } limit %d"


def test_a_bare_nearest_sorts_best_first_and_keeps_the_rows_that_have_a_direction():
    rows = ask(SPOTS, f"match {{ $p: Person }} return {{ $p.name }} {NEAREST % 9}")
    assert values(rows) == ["near", "mid", "far"]


def test_a_bare_bm25_sorts_best_first_and_keeps_the_rows_that_match():
    people = graph([person("a", bio="dog"), person("b", bio="cat dog"), person("c", bio="cat cat dog"), person("d")])
    text = 'match { $p: Person } return { $p.name } order { bm25($p.bio, "cat")%s } limit 9'
    assert values(ask(people, text % "")) == ["c", "b"]
    assert values(ask(people, text % " desc")) == ["c", "b", "a", "d"]
    assert values(ask(people, text % " asc")) == ["a", "d", "b", "c"]


def test_a_bare_ranking_is_best_first_also_as_a_second_key_and_over_groups():
    people = graph([person("a", bio="cat", age=2), person("b", bio="cat cat", age=2), person("c", bio="cat", age=1)])
    people["node:Person"].append(person("d", bio="dog", age=0))
    text = 'match { $p: Person } return { $p.name } order { $p.age, bm25($p.bio, "cat") } limit 9'
    assert values(ask(people, text)) == ["c", "b", "a"]
    grouped = 'match { $p: Person } return { bm25($p.bio, "cat") as s, count($p) as n } order { bm25($p.bio, "cat") }'
    assert [row["n"] for row in ask(people, grouped + " limit 9")] == [1, 2]


def test_a_query_vector_of_zeros_is_refused():
    for order in ("nearest($p.spot, [0.0, 0.0])", 'rrf(nearest($p.spot, [0.0, 0.0]), bm25($p.bio, "cat"))'):
        with pytest.raises(BadRequest, match=r"nearest\(\) on `spot` got a vector of zeros"):
            ask(SPOTS, f"match {{ $p: Person }} return {{ $p.name }} order {{ {order} }} limit 1")


def test_nearest_is_a_distance_between_zero_and_two():
    text = "match { $p: Person } return { nearest($p.spot, [1.0, 0.0]) as d } order { d desc } limit 9"
    assert values(ask(SPOTS, text)) == [2.0, 1.0, 0.0, None, None]


def test_filters_apply_before_the_ranking():
    rows = ask(SPOTS, f"match {{ $p: Person  $p.age = 1 }} return {{ $p.name }} {NEAREST % 1}")
    assert values(rows) == ["mid"]


def test_fewer_rows_than_the_limit_are_all_returned():
    rows = ask(SPOTS, f"match {{ $p: Person  $p.age = 2 }} return {{ $p.name }} {NEAREST % 10}")
    assert values(rows) == ["near"]


def test_nearest_on_a_variable_reached_by_a_traversal():
    text = 'match { $x: Person { name: "none" }  $x knows $p } return { $p.name } ' + NEAREST % 1
    assert values(ask(SPOTS, text)) == ["mid"]


def test_ties_of_a_ranking_are_broken_by_id():
    people = graph([person(name, spot=[size, 0.0]) for name, size in (("c", 1.0), ("a", 3.0), ("b", 0.1))])
    text = "match { $p: Person } return { $p.name } order { nearest($p.spot, [1.0, 0.7]) } limit 3"
    assert values(ask(people, text)) == ["a", "b", "c"]


def test_rrf_adds_reciprocal_ranks_and_sorts_best_first():
    people = graph(
        [
            person("a", spot=[1.0, 0.0], bio="dog"),
            person("b", spot=[0.0, 1.0], bio="cat"),
            person("c", spot=[1.0, 1.0], bio="cat cat"),
            person("d"),
        ]
    )
    text = (
        'match { $p: Person } return { $p.name, rrf(nearest($p.spot, [1.0, 0.0]), bm25($p.bio, "cat")) as s } '
        'order { rrf(nearest($p.spot, [1.0, 0.0]), bm25($p.bio, "cat")) } limit 4'
    )
    assert values(ask(people, text)) == [
        ("c", 1 / 62 + 1 / 61),
        ("b", 1 / 63 + 1 / 62),
        ("a", 1 / 61),
    ]


def test_rrf_takes_its_constant_from_the_query():
    people = graph([person("a", spot=[1.0, 0.0], bio="cat")])
    text = (
        'match { $p: Person } return { rrf(nearest($p.spot, [1.0, 0.0]), bm25($p.bio, "cat"), 1) as s } '
        "order { s } limit 1"
    )
    assert values(ask(people, text)) == [1.0]


def test_query_text_is_embedded_by_the_provider():
    mock = MockEmbeddings()
    word = mock.embed(["cat"], dim=2)[0]
    people = graph([person("a", spot=[-word[0], -word[1]]), person("b", spot=word)])
    text = 'match { $p: Person } return { $p.name } order { nearest($p.spot, "cat") } limit 1'
    assert values(ask(people, text)) == ["b"]


def test_query_text_without_a_provider_is_refused_and_says_what_to_do():
    with pytest.raises(BadRequest, match="provider"):
        run(SPOTS, 'match { $p: Person } return { $p.name } order { nearest($p.spot, "cat") } limit 1')


def test_mock_embeddings_are_equal_for_equal_texts_and_near_for_shared_words():
    cat, cats, dog = MockEmbeddings().embed(["a cat", "a cat here", "dog"], dim=64)
    assert MockEmbeddings().embed(["a cat"], dim=64)[0] == cat
    dot = lambda one, two: sum(x * y for x, y in zip(one, two, strict=True))  # noqa: E731
    assert dot(cat, cats) > 0.5 > abs(dot(cat, dog))
