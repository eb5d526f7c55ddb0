"""The product, through its public API: a graph brought into a state, and its answers in every way it can run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.config import override
from tests.differential import tree
from tests.differential.printing import arguments, deletion, query
from tests.differential.rows import Branch, Compact, Delete, Index, Load, Step, World

WAYS = ("csr", "indexed")


@dataclass(frozen=True)
class Answer:
    """Rows, or the kind of error and its words."""

    rows: list[dict[str, Any]] | None
    error: str | None = None


class Product:
    """A graph in a directory of its own."""

    def __init__(self, world: World, root: Path) -> None:
        self.schema = world.schema
        self.graph = og.init(root / "graph.omni", schema=world.schema.text())
        self.branch = "main"
        self.done = 0
        self.commits: dict[int, str] = {}
        self.at: str | None = None
        """The commit whose state is asked, instead of the newest one."""
        self.reach(world)

    def reach(self, world: World) -> None:
        """Take the steps that were not taken yet."""
        for step in world.steps[self.done :]:
            self.take(step)
        self.done = len(world.steps)
        self.commits[self.done] = self.graph.head(self.branch).graph_commit_id

    def look_back(self, world: World) -> None:
        """Ask a state that it went through, from now on."""
        self.at = self.commits[len(world.steps)]

    def take(self, step: Step) -> None:
        """Take one step."""
        match step:
            case Load(rows):
                if rows:
                    records = [row.record(self.schema) for row in rows]
                    self.graph.load(records, mode="merge", branch=self.branch, engine="local")
            case Delete(kind, id_):
                self.graph.mutate(deletion(kind, id_), branch=self.branch)
            case Index():
                self.graph.ensure_indices(self.branch)
            case Compact():
                self.graph.optimize(self.branch)
            case Branch(name):
                self.graph.branch_create(name, from_=self.branch)
                self.branch = name

    def ask(self, read: tree.Query, way: str) -> Answer:
        """The answer of one way to run: `csr` and `indexed` are the forms of expansion, `spark` the other engine."""
        engine = "spark" if way == "spark" else "local"
        try:
            with override(traversal_mode=None if way in ("spark", "auto") else way):
                where = {"at": self.at} if self.at else {"branch": self.branch}
                result = self.graph.query(query(read), params=arguments(read), engine=engine, **where)
                return Answer(result.rows())
        except Exception as error:
            return Answer(None, f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Let go of the graph."""
        self.graph.close()


@contextmanager
def running(world: World) -> Iterator[Product]:
    """A graph in that state, deleted at the end."""
    root = Path(tempfile.mkdtemp(prefix="differential-"))
    try:
        product = Product(world, root)
        try:
            yield product
        finally:
            product.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)
