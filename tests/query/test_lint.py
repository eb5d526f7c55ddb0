"""Lint: the status, one result per query, findings with their places. Only errors fail."""

from __future__ import annotations

import json

from omnigraph.diagnostics import Severity
from omnigraph.query.lint import LintReport, lint
from tests.query.sample import SCHEMA

SMALL = """
interface Aged { age: I32? }
node Person implements Aged {
    name: String @key
    bio: String?
    taste: Vector(2)? @embed("bio")
}
edge Knows: Person -> Person { since: Date? }
"""
READ = "query people($least: I32?) { match { $p: Person $p.age > $least } return { $p.name, $p.age as years } }"
UPDATE = "query change($name: String, $age: I32?) { update Person set { age: $age } where name = $name }"


def findings(report: LintReport) -> list[tuple[str, str, str, str | None]]:
    return [(f.diagnostic.severity.value, f.diagnostic.code, f.diagnostic.message, f.query) for f in report.findings]


def test_a_query_has_its_parameters_columns_and_tables() -> None:
    report = lint(SMALL, {"a.gq": READ})
    [result] = report.queries
    assert result.to_json() == {
        "name": "people",
        "file": "a.gq",
        "kind": "read",
        "status": "ok",
        "error": None,
        "warnings": [],
        "parameters": [{"name": "least", "type": "I32", "nullable": True}],
        "columns": [
            {"name": "p.name", "type": "String", "nullable": False},
            {"name": "years", "type": "I32", "nullable": True},
        ],
        "reads": ["node:Person"],
        "writes": [],
    }


def test_a_mutation_says_what_it_writes() -> None:
    report = lint(SMALL, {"a.gq": UPDATE})
    [result] = report.queries
    assert (result.kind, result.status, result.reads, result.writes) == (
        "mutation",
        "ok",
        ("node:Person",),
        ("node:Person",),
    )


def test_L202_a_mutation_without_parameters_is_a_warning() -> None:
    report = lint(SMALL, {"a.gq": 'query add { insert Person { name: "a" } }'})
    assert findings(report)[0] == (
        "warning",
        "L202",
        "mutation `add` has no parameters, so it does the same each time",
        "add",
    )
    assert report.findings[0].diagnostic.span.column == 7
    assert report.queries[0].status == "warning"
    assert report.queries[0].warnings == ("mutation `add` has no parameters, so it does the same each time",)
    assert (report.status, report.ok) == ("warning", True)


def test_L201_a_nullable_property_that_no_update_sets() -> None:
    report = lint(SMALL, {"a.gq": READ, "b.gq": UPDATE})
    assert findings(report) == [
        ("warning", "L201", "`Person.bio` is nullable and no update sets it", None),
        ("info", "L201", "`Knows.since` is nullable and no update sets it", None),
    ]
    places = [(f.file, f.diagnostic.span.line, f.diagnostic.span.column) for f in report.findings]
    assert places == [("schema.pg", 5, 5), ("schema.pg", 8, 32)]


def test_L201_points_into_the_interface_that_declares_the_property() -> None:
    report = lint(SMALL, {"a.gq": "query q($n: String?) { update Person set { bio: $n } where true }"})
    [age] = [f for f in report.findings if "age" in f.diagnostic.message]
    assert (age.diagnostic.span.line, age.diagnostic.span.column) == (2, 18)


def test_L201_waits_until_every_mutation_can_be_read() -> None:
    broken = UPDATE.replace("Person", "Persn")
    assert [f.diagnostic.code for f in lint(SMALL, {"a.gq": broken}).findings] == ["T10"]


def test_L203_a_ranking_sorted_the_wrong_way() -> None:
    query = 'query q { match { $p: Person } return { $p } order { bm25($p.bio, "x") asc } }'
    report = lint(SMALL, {"a.gq": query})
    assert findings(report)[0] == (
        "warning",
        "L203",
        "`bm25` is higher for better matches, so `asc` sorts the worst first",
        "q",
    )
    assert "L203" not in {f.diagnostic.code for f in lint(SMALL, {"a.gq": query.replace('"x")', '"x") desc')}).findings}


def test_errors_fail_and_do_not_hide_other_queries() -> None:
    source = (
        "query broken { match { } }\n"
        "query wrong { match { $p: Persn } return { $q } }\n"
        "query right { match { $p: Person } return { $p.name } }\n"
    )
    report = lint(SMALL, {"a.gq": source})
    assert (report.status, report.ok) == ("error", False)
    assert [(query.name, query.kind, query.status) for query in report.queries] == [
        ("broken", None, "error"),
        ("wrong", "read", "error"),
        ("right", "read", "ok"),
    ]
    assert report.queries[0].error == "expected `delete`, `insert`, `return`, `update` or `with`, found `}`"
    assert report.queries[1].error == "unknown node type `Persn`"
    assert [finding.diagnostic.code for finding in report.findings if finding.query] == ["Q000", "T1", "T6"]


def test_an_empty_text_is_an_error() -> None:
    report = lint(SMALL, {"a.gq": "// nothing here"})
    assert [(f.diagnostic.code, f.file) for f in report.findings if f.diagnostic.severity is Severity.ERROR] == [
        ("Q000", "a.gq")
    ]
    assert not report.ok


def test_a_broken_schema_is_reported_and_queries_are_still_parsed() -> None:
    report = lint("node Person { name: Strng }", {"a.gq": READ, "b.gq": "query"}, schema_filename="s.pg")
    assert not report.ok
    assert report.findings[0].file == "s.pg"
    assert [(query.status, query.error) for query in report.queries] == [
        ("error", "the schema has errors"),
        ("error", "the query ends too early: expected the name of the query"),
    ]


def test_a_schema_alone_can_be_checked() -> None:
    assert lint(SMALL, {}).status == "ok"
    assert lint(SMALL, {}).findings == ()


def test_json_is_plain_and_complete() -> None:
    report = lint(SCHEMA, {"a.gq": "query q { match { $p: Persn } return { $p } }"})
    data = json.loads(json.dumps(report.to_json()))
    assert (data["status"], data["errors"], data["warnings"]) == ("error", 1, 0)
    [error] = [finding for finding in data["findings"] if finding["severity"] == "error"]
    assert error == {
        "code": "T1",
        "severity": "error",
        "message": "unknown node type `Persn`",
        "line": 1,
        "column": 23,
        "start": 22,
        "end": 27,
        "hint": "did you mean `Person`?",
        "file": "a.gq",
        "query": "q",
    }


def test_the_report_as_text() -> None:
    text = lint(SMALL, {"a.gq": READ + "\n" + UPDATE + "\nquery bad { match { $p: Persn } return { $p } }"}).render()
    assert "error[T1]: unknown node type `Persn`\n --> a.gq:3:25" in text
    assert "info[L201]: `Knows.since` is nullable and no update sets it (schema.pg:8:32)" in text
    assert text.endswith(
        "ok       people($least: I32?) -> p.name: String, years: I32?\n"
        "ok       change($name: String, $age: I32?) writes node:Person\n"
        "error    bad: unknown node type `Persn`\n"
        "3 queries, 1 error, 1 warning"
    )
