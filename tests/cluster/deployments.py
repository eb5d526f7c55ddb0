"""A small deployment on disk: two graphs, a query, a policy, a provider; and ways to change it."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og
from omnigraph.cluster.folder.read_folder import read_folder
from omnigraph.cluster.state.cluster_store import ClusterStore

CLUSTER = """\
version: 1
metadata: { name: brain }
storage: STORAGE
providers:
  embedding:
    default: { kind: mock }
graphs:
  notes:
    schema: notes.pg
    queries: queries/
    embedding_provider: default
  people:
    schema: people.pg
policies:
  base: { file: base.policy.yaml, applies_to: [notes, cluster] }
"""

FILES = {
    "notes.pg": "node Note {\n    slug: String @key\n    text: String?\n}\n",
    "people.pg": "node Person {\n    slug: String @key\n    age: I32?\n}\n",
    "queries/notes.gq": "query all_notes() { match { $n: Note } return { $n.slug, $n.text } order { $n.slug } }\n",
    "base.policy.yaml": """\
version: 1
groups: { team: [act-ada] }
protected_branches: [main]
rules:
  - { id: team, allow: { actors: { group: team }, actions: [read, change, admin, invoke_query] } }
  - { id: lists, allow: { actors: { group: team }, actions: [graph_list] } }
""",
}


def write(folder: Path, storage: str | None = None) -> Path:
    """The deployment, in a folder. It is stored beside its files unless told otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    text = CLUSTER.replace("STORAGE", storage) if storage else CLUSTER.replace("storage: STORAGE\n", "")
    (folder / "cluster.yaml").write_text(text)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def change(folder: Path, file: str, old: str, new: str) -> None:
    """Replace a part of a file that is there."""
    path = folder / file
    text = path.read_text()
    assert old in text, (file, old)
    path.write_text(text.replace(old, new))


def without_people(folder: Path) -> None:
    """Take the graph `people` out."""
    change(folder, "cluster.yaml", "  people:\n    schema: people.pg\n", "")


def load_people(folder: Path, *slugs: str) -> None:
    """People with an age, in the graph `people`."""
    with og.open(ClusterStore(read_folder(folder).storage).graph_uri("people")) as graph:
        graph.load([{"type": "Person", "data": {"slug": slug, "age": 30}} for slug in slugs], mode="append")
