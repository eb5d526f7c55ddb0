"""Every writer a user can call, each as a top-level function that a child process can run on a prepared graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import omnigraph as og
from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.ledger.store import GraphStore
from tests.write.together import in_line

SCHEMA = """
node Person {
    slug: String @key
    age: I32? @index
}

node Company {
    slug: String @key
}

edge Knows: Person -> Person {
    @key(src, dst)
}

edge WorksAt: Person -> Company {
    @key(src, dst)
}
"""

NEXT_SCHEMA = """
node Human @rename_from("Person") {
    slug: String @key
    age: I32? @index
    mood: String @default("calm")
}

node Company {
    slug: String @key
}

node Place {
    slug: String @key
}

edge Knows: Human -> Human {
    @key(src, dst)
}

edge WorksAt: Human -> Company {
    @key(src, dst)
}
"""


def person(slug: str, age: int = 1) -> dict[str, Any]:
    """A record of a person."""
    return {"type": "Person", "data": {"slug": slug, "age": age}}


def edge(kind: str, source: str, target: str) -> dict[str, Any]:
    """A record of an edge."""
    return {"edge": kind, "from": source, "to": target}


def build(uri: str) -> None:
    """A graph with some history on main, a branch `review` that changed things, and `other` to be left alone."""
    graph = og.init(uri, schema=SCHEMA, actor="act-setup")
    companies = [{"type": "Company", "data": {"slug": name}} for name in ("acme", "initech")]
    people = [person(name, 30) for name in ("ada", "grace", "alan", "edsger")]
    graph.load([*people, *companies, edge("Knows", "ada", "grace"), edge("WorksAt", "ada", "acme")], mode="append")
    graph.load([person("barbara", 40), edge("Knows", "barbara", "ada")], mode="append")
    graph.branch_create("review")
    graph.load([person("carl", 50), edge("Knows", "carl", "ada"), person("ada", 31)], mode="merge", branch="review")
    graph.branch_create("other")
    graph.load([person("olga", 60)], mode="append", branch="other")
    graph.load([person("donald", 70), edge("WorksAt", "donald", "acme")], mode="append")


def insert(uri: str, branch: str) -> None:
    """Insert a node and two edges."""
    og.open(uri, branch=branch, actor="act-ada").mutate(
        'query q() { insert Person { slug: "bob", age: 7 } insert Knows { from: "bob", to: "ada" } '
        'insert WorksAt { from: "bob", to: "initech" } }'
    )


def combined(uri: str, branch: str) -> None:
    """Several mutations by several people in one commit; one of them fails."""
    graph = og.open(uri, branch=branch, combine=True)
    bodies = [
        'insert Person { slug: "bob", age: 7 }',
        'insert Knows { from: "bob", to: "ada" }',
        'insert Knows { from: "bob", to: "nobody" }',
        'update Person set { age: 8 } where slug = "bob"',
        'delete Person where slug = "alan"',
    ]
    calls = [
        partial(graph.mutate, f"query q() {{ {body} }}", actor=f"act-{number}") for number, body in enumerate(bodies)
    ]
    results = in_line(graph._store, calls, branch)
    assert [isinstance(result, Exception) for result in results] == [False, False, True, False, False], results


def delete(uri: str, branch: str) -> None:
    """Delete a node with its edges."""
    og.open(uri, branch=branch, actor="act-ada").mutate('query q() { delete Person where slug = "ada" }')


def append(uri: str, branch: str) -> None:
    """Load new records."""
    rows = [person(f"n{number}") for number in range(20)]
    og.open(uri, branch=branch, actor="act-ada").load([*rows, edge("Knows", "n1", "n2")], mode="append")


def merge_load(uri: str, branch: str) -> None:
    """Load records that exist and new ones."""
    rows = [person("ada", 99), person("new", 1), edge("Knows", "new", "ada"), edge("Knows", "ada", "grace")]
    og.open(uri, branch=branch, actor="act-ada").load(rows, mode="merge")


def overwrite(uri: str, branch: str) -> None:
    """Replace the content of a type."""
    rows = [edge("Knows", "grace", "alan"), edge("Knows", "alan", "grace")]
    og.open(uri, branch=branch, actor="act-ada").load(rows, mode="overwrite")


def merge_branch(uri: str, branch: str) -> None:
    """Merge `review` into main, which has moved on."""
    og.open(uri, actor="act-ada").merge("review", into=branch)


def apply_schema(uri: str, branch: str) -> None:
    """Rename a type, add a property and a type."""
    og.open(uri, branch=branch, actor="act-ada").apply_schema(NEXT_SCHEMA)


def other_schema_on_review(uri: str) -> None:
    """`review` has another schema than `main`, with rows of it; `main` has got a property of its own."""
    graph = og.open(uri)
    graph.apply_schema(NEXT_SCHEMA, branch="review")
    human = {"type": "Human", "data": {"slug": "ada", "age": 32, "mood": "glad"}}
    graph.load([human, {"type": "Place", "data": {"slug": "here"}}], mode="merge", branch="review")
    graph.apply_schema(SCHEMA.replace("age: I32? @index", "age: I64? @index\n    tag: String?"))


def merge_schemas(uri: str, branch: str) -> None:
    """Merge a branch with another schema: columns and rows of one table, a rename, a new type with rows."""
    og.open(uri, actor="act-ada").merge("review", into=branch)


DROPPING_SCHEMA = """
node Person {
    slug: String @key
}

edge Knows: Person -> Person {
    @key(src, dst)
}
"""


def drop_for_good(uri: str, branch: str) -> None:
    """Drop a property and two types, and remove their old versions."""
    og.open(uri, branch=branch, actor="act-ada").apply_schema(DROPPING_SCHEMA, allow_data_loss=True)


def merge_with_answers(uri: str, branch: str) -> None:
    """Merge `review` while some rows are settled by hand: one is given, one is deleted."""
    answers = {("node:Person", "ada"): {"age": 77}, ("node:Person", "edsger"): None}
    og.open(uri, actor="act-ada").merge("review", into=branch, resolutions=answers)


def _nth(graph: og.Graph, back: int) -> str:
    """A commit of the handle's branch, so many before its head."""
    return graph.log()[back].graph_commit_id


def revert(uri: str, branch: str) -> None:
    """Take back the load before the last commit, or on a branch the last."""
    graph = og.open(uri, branch=branch, actor="act-ada")
    graph.revert(_nth(graph, 1 if branch == "main" else 0))


def cherry_pick(uri: str, branch: str) -> None:
    """Bring what `review` did to another branch."""
    graph = og.open(uri, branch=branch, actor="act-ada")
    graph.cherry_pick("review")


def restore(uri: str, branch: str) -> None:
    """Go back to the state after the first load."""
    graph = og.open(uri, branch=branch, actor="act-ada")
    graph.restore(_nth(graph, 2))


def write_on_review(uri: str) -> None:
    """Two more commits on `review`, so that its own lines have a past."""
    graph = og.open(uri, branch="review")
    for age in (51, 52):
        graph.load([person("carl", age), person("grace", age)], mode="merge")


def restore_to_another(uri: str, branch: str) -> None:
    """Make the state of `review` that of a branch: rows are written to `main`, other branches fork."""
    og.open(uri, branch=branch, actor="act-ada").restore("review")


def restore_schema(uri: str, branch: str) -> None:
    """Take back a schema apply, and the rows that were written since."""
    graph = og.open(uri, branch=branch, actor="act-ada")
    graph.restore(_nth(graph, 2))


def restore_other_schema(uri: str, branch: str) -> None:
    """Make the state of `review`, which has another schema, that of `main`: tables are made with its rows."""
    og.open(uri, branch=branch, actor="act-ada").restore("review")


DROPPED_SCHEMA = """
node Person {
    slug: String @key
}

node Company {
    slug: String @key
    size: I32 @default(1)
}

edge Knows: Person -> Person {
    @key(src, dst)
}
"""


def drop_and_write(uri: str) -> None:
    """The schema of main lost a property and a type, and another type has got a property; people came since."""
    graph = og.open(uri)
    graph.apply_schema(DROPPED_SCHEMA)
    graph.load([{"type": "Person", "data": {"slug": "zed"}}], mode="append")


def revert_schema(uri: str, branch: str) -> None:
    """Take a schema change back: columns with rows on top, a table put back as it was, one made with its rows."""
    graph = og.open(uri, branch=branch, actor="act-ada")
    graph.revert(_nth(graph, 1))


def after_schema_change(uri: str) -> None:
    """A graph whose schema was changed, with rows of the new one."""
    only_main(uri)
    apply_schema(uri, "main")
    og.open(uri).load([{"type": "Human", "data": {"slug": "zed"}}], mode="append")


def optimize(uri: str, branch: str) -> None:
    """Compact and index."""
    og.open(uri, actor="act-ada").optimize(branch=branch)


def build_indexes(uri: str, branch: str) -> None:
    """Build the indexes that the schema asks for."""
    og.open(uri, actor="act-ada").ensure_indices(branch=branch)


def texts_to_embed(uri: str) -> None:
    """People of `review` have texts, and vectors that are to be made of them."""
    graph = og.open(uri, branch="review")
    text = 'age: I32? @index\n    bio: String?\n    vector: Vector(16)? @embed("bio")'
    graph.apply_schema(SCHEMA.replace("age: I32? @index", text))
    people = [{"type": "Person", "data": {"slug": name, "bio": f"{name} lives"}} for name in ("ada", "grace")]
    graph.load(people, mode="merge")


def embed(uri: str, branch: str) -> None:
    """Make the vectors of stored texts."""
    og.open(uri, branch=branch, actor="act-ada", embedding=EmbeddingSettings("mock")).embed()


def create_branch(uri: str, branch: str) -> None:
    """Make a branch."""
    og.open(uri, actor="act-ada").branch_create("fresh", branch)


def delete_branch(uri: str, branch: str) -> None:
    """Delete a branch that owns forks."""
    og.open(uri, actor="act-ada").branch_delete("review")


def only_main(uri: str) -> None:
    """Delete all branches, as a schema apply wants it."""
    graph = og.open(uri)
    for name in ("other", "review"):
        graph.branch_delete(name)


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer to be killed, the branch it works on, and what has to be done to the prepared graph before it."""

    work: Callable[[str, str], None]
    branch: str = "main"
    first: Callable[[str], None] | None = None

    @property
    def name(self) -> str:
        """For the test's id."""
        return f"{self.work.__name__} on {self.branch}"


WRITERS = [
    Writer(insert),
    Writer(insert, "review"),
    Writer(combined),
    Writer(combined, "review"),
    Writer(delete),
    Writer(delete, "review"),
    Writer(append),
    Writer(append, "review"),
    Writer(merge_load),
    Writer(merge_load, "review"),
    Writer(overwrite),
    Writer(overwrite, "review"),
    Writer(merge_branch),
    Writer(merge_branch, "other"),
    Writer(merge_with_answers),
    Writer(merge_with_answers, "other"),
    Writer(apply_schema),
    Writer(apply_schema, "review"),
    Writer(merge_schemas, first=other_schema_on_review),
    Writer(merge_schemas, "other", first=other_schema_on_review),
    Writer(drop_for_good, first=only_main),
    Writer(revert),
    Writer(revert, "review"),
    Writer(cherry_pick, "other"),
    Writer(restore),
    Writer(restore, "review", first=write_on_review),
    Writer(restore_to_another),
    Writer(restore_to_another, "other"),
    Writer(restore_schema, first=after_schema_change),
    Writer(embed, "review", first=texts_to_embed),
    Writer(restore_other_schema, first=other_schema_on_review),
    Writer(revert_schema, first=drop_and_write),
    Writer(optimize),
    Writer(build_indexes),
    Writer(build_indexes, "review"),
    Writer(create_branch),
    Writer(delete_branch),
]


def write_next(branch: str) -> Callable[[GraphStore], object]:
    """A later write to tables that all of these writers touch."""

    def write(store: GraphStore) -> None:
        name = "Human" if "node:Human" in store.snapshot(branch=branch).tables else "Person"
        rows = [{"type": name, "data": {"slug": "zoe"}}, edge("Knows", "zoe", "grace")]
        og.Graph(store, branch=branch).load(rows, mode="append")

    return write
