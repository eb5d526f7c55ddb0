"""Agents write to branches of one shared memory; somebody reviews, merges, and settles what collides.

python examples/agent_memory.py [PATH]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import omnigraph as og
from omnigraph.errors import MergeConflicts

SCHEMA = """
node Topic {
    name: String @key
}

node Note {
    slug: String @key
    text: String @index
    confidence: F32?
    @range(confidence, 0..1)
}

edge About: Note -> Topic {
    @key(src, dst)
}
"""

QUERIES = """
query write_note($slug: String, $text: String, $confidence: F32, $topic: String) {
  insert Topic { name: $topic }
  insert Note { slug: $slug, text: $text, confidence: $confidence }
  insert About { from: $slug, to: $topic }
}

query recall($topic: String, $words: String) {
  match {
    $n: Note
    $n about $t
    $t.name = $topic
    search($n.text, $words)
  }
  return { $n.slug, $n.text, $n.confidence }
  order { bm25($n.text, $words) desc }
  limit 5
}
"""


def note(graph: og.Graph, slug: str, text: str, confidence: float, topic: str) -> None:
    """Write one note on the branch that the handle is bound to."""
    graph.mutate(QUERIES, "write_note", slug=slug, text=text, confidence=confidence, topic=topic)


def main(path: Path) -> None:
    """Two agents, one memory."""
    with og.init(path, schema=SCHEMA, actor="curator") as memory:
        note(memory, "n1", "Lance tables keep every version", 0.9, "storage")
        with memory.branch("agent/a", actor="agent-a") as a:
            note(a, "n2", "branches of a table share their files", 0.8, "storage")
            note(a, "n1", "Lance tables keep every version until cleanup", 0.95, "storage")
        with memory.branch("agent/b", actor="agent-b") as b:
            note(b, "n3", "a merge compares rows with the common ancestor", 0.7, "merging")
            note(b, "n1", "Lance tables keep old versions", 0.5, "storage")
        for change in memory.diff("main", "agent/a"):
            print(f"agent/a: {change.op} {change.type} {change.id} {change.changed_fields}")
        memory.merge("agent/a", delete_source=True)
        try:
            memory.merge("agent/b")
        except MergeConflicts as refused:
            for conflict in refused.conflicts:
                print(f"conflict: {conflict.message}")
        memory.merge("agent/b", resolutions={("node:Note", "n1"): "ours"}, delete_source=True)
        print(memory.query(QUERIES, "recall", topic="storage", words="table version files"))
        for commit in memory.log():
            print(commit.graph_commit_id, commit.kind.value, commit.actor_id)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory) / "memory.omni")
