"""Searches through the door that people use: options of the schema, optimize, explain, branches, updates."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.read.tables.caches import caches_of
from omnigraph.read.tables.stored import StoredTables

SCHEMA = """
node Doc {
  name: String @key
  kind: I32 @index
  text: String? @index
  stemmed: String? @index @search(stem=true, stop_words=true)
  near: Vector(4)? @index(metric="l2")
}
edge Cites: Doc -> Doc
"""
COUNT = 400


def rows(count: int = COUNT) -> list[dict]:
    made = [
        {
            "type": "Doc",
            "data": {
                "name": f"d{n:03d}",
                "kind": n % 4,
                "text": f"common word{n % 7} {'rare' if n == 11 else ''}",
                "stemmed": "the runners are running" if n % 5 == 0 else "a walk",
                "near": [float(n), 0.0, 0.0, 0.0],
            },
        }
        for n in range(count)
    ]
    edges = [{"edge": "Cites", "from": f"d{n:03d}", "to": f"d{(n + 1) % count:03d}"} for n in range(count)]
    return made + edges


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    made = og.init(tmp_path_factory.mktemp("search") / "graph", schema=SCHEMA)
    made.load(rows(), mode="append")
    made.optimize()
    return made


def names(graph, body: str, **options) -> list[str]:
    return [next(iter(row.values())) for row in graph.query(f"query q() {{ {body} }}", **options).rows()]


def shown(graph, body: str) -> str:
    return graph.explain(f"query q() {{ {body} }}", analyze=True).to_text()


def test_options_of_a_text_decide_its_tokens(graph):
    found = names(graph, 'match { $d: Doc  search($d.stemmed, "run") } return { $d.name }')
    assert len(found) == COUNT // 5
    assert names(graph, 'match { $d: Doc  search($d.stemmed, "the") } return { $d.name }') == []
    phrase = 'match { $d: Doc  match_text($d.stemmed, "runner were run") } return { $d.name }'
    assert names(graph, phrase) == found


def test_a_metric_decides_distances_and_zeros_are_a_vector_like_any_other(graph):
    body = (
        "match { $d: Doc } return { $d.name, nearest($d.near, [2.2, 0.0, 0.0, 0.0]) as far } "
        "order { nearest($d.near, [2.2, 0.0, 0.0, 0.0]) } limit 2"
    )
    found = graph.query(f"query q() {{ {body} }}").rows()
    assert [row["d.name"] for row in found] == ["d002", "d003"]
    assert [round(row["far"], 5) for row in found] == [0.2, 0.8]
    zeros = "match { $d: Doc } return { $d.name } order { nearest($d.near, [0.0, 0.0, 0.0, 0.0]) } limit 1"
    assert names(graph, zeros) == ["d000"]


def test_explain_says_which_way_was_taken(graph):
    bm25 = 'match { $d: Doc } return { $d.name } order { bm25($d.text, "rare common") } limit 1'
    assert "text index" in shown(graph, bm25)
    # Said in full, and with a search for the same words, it is the same question.
    asked = (
        'match { $d: Doc  search($d.text, "%s") } return { $d.name } order { bm25($d.text, "rare word1") desc } limit 2'
    )
    assert "text index" in shown(graph, asked % "rare word1")
    assert "text index" not in shown(graph, asked % "common")
    assert names(graph, asked % "rare word1") == ["d011", "d001"]
    near = "match { $d: Doc } return { $d.name } order { nearest($d.near, [1.0, 0.0, 0.0, 0.0]%s) } limit 1"
    assert "1 of 1 partitions probed" in shown(graph, near % "")
    assert "exact: asked for" in shown(graph, near % ", exact: true")
    filtered = near.replace("$d: Doc", "$d: Doc  $d.kind = 1") % ""
    assert "exact: 100 rows pass the filter" in shown(graph, filtered)


def test_a_plan_starts_from_a_rare_word(graph):
    body = 'match { $a: Doc { kind: 1 }  $a cites $b  search($b.text, "%s") } return { $a.name }'
    assert shown(graph, body % "rare").splitlines()[1].strip().startswith("scan $b")
    assert not shown(graph, body % "common").splitlines()[1].strip().startswith("scan $b")
    assert names(graph, body.replace("{ kind: 1 }", "{ kind: 2 }") % "rare") == ["d010"]


def test_a_fused_ranking_takes_the_top_of_both_indexes(graph):
    ranking = 'rrf(nearest($d.near, [11.0, 0.0, 0.0, 0.0]), bm25($d.text, "rare"))'
    assert names(graph, f"match {{ $d: Doc }} return {{ $d.name }} order {{ {ranking} }} limit 3") == [
        "d011",
        "d010",
        "d012",
    ]


def test_what_is_kept_survives_the_update_of_one_row(graph):
    body = 'match { $d: Doc } return { $d.name } order { bm25($d.text, "rare") } limit 5'
    with graph.branch("edit") as branch:
        assert names(branch, body) == ["d011"]
        kept = caches_of(branch._store).corpora.report()
        branch.mutate('query m() { update Doc set { text: "rare rare common" } where name = "d020" }')
        branch.mutate('query m() { update Doc set { text: "common" } where name = "d011" }')
        assert names(branch, body) == ["d020"]
        assert caches_of(branch._store).corpora.report().misses == kept.misses
    assert names(graph, body) == ["d011"]


def test_other_options_build_the_index_anew(tmp_path):
    schema = "node Doc { name: String @key  text: String @index }"
    graph = og.init(tmp_path / "graph", schema=schema)
    graph.load([{"type": "Doc", "data": {"name": f"d{n}", "text": "common"}} for n in range(9)], mode="append")
    graph.optimize()
    body = 'match { $d: Doc  search($d.text, "commons") } return { $d.name }'
    assert names(graph, body) == []
    graph.apply_schema(schema.replace("@index", "@index @search(stem=true)"))
    assert len(names(graph, body)) == 9
    ranked = 'match { $d: Doc } return { $d.name } order { bm25($d.text, "commons") } limit 1'
    assert "text index" not in shown(graph, ranked)
    graph.optimize()
    assert "text index" in shown(graph, ranked)
    assert len(names(graph, body)) == 9


@pytest.mark.parametrize(
    ("property_", "said"),
    [
        ("a: String @search(stemming=true)", "did you mean"),
        ("a: String @search(stem=1)", "`true` or `false`"),
        ('a: String @search(language="klingon")', "knows no language"),
        ("a: I64 @search(stem=true)", "is about a `String`"),
        ('a: Vector(4) @index(metric="l3")', "no metric"),
        ('a: String @index(metric="l2")', "vectors only"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, property_, said):
    with pytest.raises(OmniGraphError) as refused:
        og.init(tmp_path / "graph", schema=f"node Doc {{ name: String @key  {property_} }}")
    assert said in str(refused.value)


@pytest.mark.parametrize("ranking", ['bm25($d.text, "common word3 rare")', "nearest($d.near, [31.5, 0.0, 0.0, 0.0])"])
@pytest.mark.parametrize("where", ["", "  $d.kind >= 1"])
def test_the_best_rows_come_in_order_of_score_and_id_however_they_are_put_in_order(graph, ranking, where):
    # A second key has the rows sorted where all rows are; without one they are put in order where they are found.
    direction = "desc" if ranking.startswith("bm25") else ""
    match = f"match {{ $d: Doc{where} }} return {{ $d.name }}"
    every = names(graph, f"{match} order {{ {ranking} {direction}, $d.name }} limit {COUNT}")
    assert len(every) >= COUNT // 2
    for page in ("limit 10", "limit 7 offset 5", "limit 1", f"limit {COUNT}", "limit 3 offset 100000"):
        start = int(page.split()[3]) if "offset" in page else 0
        stop = start + int(page.split()[1])
        assert names(graph, f"{match} order {{ {ranking} }} {page}") == every[start:stop]


def test_what_is_shown_of_the_best_rows_is_read_with_them_and_is_of_today(tmp_path, monkeypatch):
    graph = og.init(tmp_path / "graph", schema=SCHEMA)
    graph.load(rows(300), mode="append")
    graph.optimize()
    looked_up: list[int] = []
    lookup = StoredTables.lookup

    def counted(self, table_key, column, values, columns):
        looked_up.append(len(values))
        return lookup(self, table_key, column, values, columns)

    monkeypatch.setattr(StoredTables, "lookup", counted)

    def best(ranking: str) -> list[dict]:
        text = f"query q() {{ match {{ $d: Doc }} return {{ $d }} order {{ {ranking} }} limit 5 }}"
        return [row["d"] for row in graph.query(text).rows()]

    near = "nearest($d.near, [40.0, 0.0, 0.0, 0.0])"
    rare = 'bm25($d.text, "rare word3")'
    assert best(rare)[0]["@id"] == "d011"
    assert [row["kind"] for row in best(near)] == [0, 3, 1, 2, 2]
    assert looked_up == []
    graph.mutate('query m() { update Doc set { kind: 77 } where name = "d011" or name = "d040" }')
    graph.load([{"type": "Doc", "data": {"name": "new", "kind": 78, "text": "rare rare"}}], mode="append")
    for ranking in (rare, near):
        found = best(ranking)
        assert found == [{k: v for k, v in graph.entity("Doc", row["@id"]).items() if v is not None} for row in found]
        assert {77, 78} & {row["kind"] for row in found}
