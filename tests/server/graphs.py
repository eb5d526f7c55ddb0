"""The graph that server tests use, and the actors that may use it."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og

SCHEMA = """\
node Person {
    slug: String @key
    age: I32?
    born: Date?
    photo: Blob?
}
node Company {
    slug: String @key
}
edge WorksAt: Person -> Company @card(0..1)
"""

RECORDS = [
    {"type": "Person", "data": {"slug": "ada", "age": 36, "born": "1815-12-10"}},
    {"type": "Person", "data": {"slug": "bob", "age": 20}},
    {"type": "Company", "data": {"slug": "acme"}},
    {"edge": "WorksAt", "from": "ada", "to": "acme"},
]

QUERIES = """\
query people($least: I32) @description("People of an age.") @instruction("Use it to find people.") {
    match { $p: Person  $p.age >= $least }
    return { $p.slug, $p.age }
    order { $p.slug }
}

query hire($slug: String, $age: I32? = 30) {
    insert Person { slug: $slug, age: $age }
}
"""

SECRET = "query secret() { match { $p: Person } return { count($p) as people } }\n"

ALL_PEOPLE = "query q() { match { $p: Person } return { $p.slug, $p.age, $p.born } order { $p.slug } }"

TOKENS = {"act-ada": "token-of-ada-123456", "act-bob": "token-of-bob-654321", "act-eve": "token-of-eve-000000"}

POLICY = """\
version: 1
groups:
  admins: [act-ada]
  team: [act-ada, act-bob]
protected_branches: [main]
rules:
  - { id: admins-do-all, allow: { actors: { group: admins }, actions: [read, export, change, schema_apply,
      branch_create, branch_delete, branch_merge, invoke_query, admin] } }
  - { id: admins-list, allow: { actors: { group: admins }, actions: [graph_list] } }
  - { id: team-reads, allow: { actors: { group: team }, actions: [read] } }
  - { id: team-works, allow: { actors: { group: team }, actions: [change], branch_scope: unprotected } }
  - { id: team-branches, allow: { actors: { group: team }, actions: [branch_create],
      target_branch_scope: unprotected } }
"""


def make(folder: Path) -> str:
    """The graph, with its queries and its policy beside it."""
    uri = str(folder / "g.omni")
    with og.init(uri, schema=SCHEMA) as graph:
        graph.load(RECORDS, mode="append")
    queries = folder / "queries"
    queries.mkdir()
    (queries / "people.gq").write_text(QUERIES)
    (queries / "secret.gq").write_text(SECRET)
    (folder / "queries.yaml").write_text(
        "people: { file: queries/people.gq, tool_name: find_people }\n"
        "hire: queries/people.gq\n"
        "secret: { file: queries/secret.gq, expose: false }\n"
    )
    (folder / "policy.yaml").write_text(POLICY)
    return uri
