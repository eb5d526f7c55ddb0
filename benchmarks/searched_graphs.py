"""The graphs that searches are measured on: texts, vectors, edges, from seeded generators.

With `OMNIGRAPH_BENCH_GRAPHS=DIRECTORY` a graph that was made once is kept there and found again, so that the making of
large ones need not stand beside the measuring: `python -m benchmarks.searched_graphs` makes them all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph as og

TEXTS = int(os.environ.get("OMNIGRAPH_BENCH_TEXTS", 100_000))
VECTORS = int(os.environ.get("OMNIGRAPH_BENCH_VECTORS", 100_000))
EDGES = int(os.environ.get("OMNIGRAPH_BENCH_EDGES", 2_000_000))
RECALL_VECTORS = int(os.environ.get("OMNIGRAPH_BENCH_RECALL_VECTORS", 20_000))
DIM = 256
RECALL_DIMS = (64, 256, 768)
RECALL_KINDS = ("clustered", "uniform")
VOCABULARY = 50_000
WORDS = 40
BLOCK = 50_000

TEXT_SCHEMA = """
node Doc { name: String @key  kind: I32 @index  text: String @index }
node Note { name: String @key }
edge Cites: Doc -> Doc
"""


EDGE_SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person
"""


def vector_schema(dim: int) -> str:
    """One type with a vector and something to filter by."""
    return f"node Item {{ name: String @key  kind: I32 @index  spot: Vector({dim}) }}"


def texts(count: int) -> Iterator[pa.Table]:
    """Texts of forty words whose frequencies fall off as those of a language do."""
    random = np.random.default_rng(1)
    words = pa.array([f"w{number}" for number in range(VOCABULARY)])
    weights = 1 / np.arange(1, VOCABULARY + 1)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        picks = random.choice(VOCABULARY, size=(size, WORDS), p=weights / weights.sum())
        rows = pa.ListArray.from_arrays(
            np.arange(0, (size + 1) * WORDS, WORDS), words.take(pa.array(picks.reshape(-1)))
        )
        yield pa.table(
            {
                "name": [f"d{number:08d}" for number in range(start, start + size)],
                "kind": pa.array(random.integers(0, 25, size), pa.int32()),
                "text": pc.binary_join(rows, " "),
            }
        )


def vectors(count: int, dim: int, kind: str, seed: int = 3) -> np.ndarray:
    """Vectors around five hundred centres, or anywhere in a cube."""
    random = np.random.default_rng(seed)
    if kind == "uniform":
        return random.uniform(-1, 1, (count, dim)).astype(np.float32)
    centres = np.random.default_rng(dim).normal(size=(500, dim))
    return (centres[random.integers(0, 500, count)] + 0.35 * random.normal(size=(count, dim))).astype(np.float32)


def items(made: np.ndarray, start: int = 0) -> pa.Table:
    """Vectors as rows, numbered from `start`."""
    count, dim = made.shape
    return pa.table(
        {
            "name": [f"i{number:08d}" for number in range(start, start + count)],
            "kind": pa.array(np.arange(start, start + count) % 25, pa.int32()),
            "spot": pa.FixedSizeListArray.from_arrays(pa.array(made.reshape(-1)), dim),
        }
    )


def item_blocks(count: int, dim: int, kind: str) -> Iterator[pa.Table]:
    """So many vectors as rows, a block at a time."""
    for start in range(0, count, BLOCK):
        yield items(vectors(min(BLOCK, count - start), dim, kind, seed=start + 3), start)


def load_vectors(graph: Any, count: int, dim: int, kind: str) -> None:
    """Append vectors, a block at a time."""
    for block in item_blocks(count, dim, kind):
        graph.load(block, mode="append", type="Item")


def bare_table(graph: Any, key: str) -> lance.LanceDataset:
    """The Lance table behind a type."""
    pin = graph.snapshot().tables[key]
    return lance.dataset(f"{graph.uri}/{pin.location}", version=pin.version)


@contextmanager
def kept_graphs() -> Iterator[Path]:
    """The directory of the setting, which stays, or one for this run alone."""
    kept = os.environ.get("OMNIGRAPH_BENCH_GRAPHS")
    if kept is not None:
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@contextmanager
def made_once(name: str, make: Callable[[Path], None]) -> Iterator[Path]:
    """The graph of this name, made unless an earlier run has left it whole."""
    with kept_graphs() as directory:
        path, whole = directory / name, directory / f"{name}.made"
        if not whole.exists():
            make(path)
            whole.touch()
        yield path


@contextmanager
def text_graph() -> Iterator[Path]:
    """Texts with an edge for each, indexed."""
    with made_once(f"texts-{TEXTS}", _make_texts) as path:
        yield path


@contextmanager
def vector_graph(count: int, dim: int, kind: str) -> Iterator[Path]:
    """Vectors of a kind, indexed."""

    def make(path: Path) -> None:
        graph = og.init(path, schema=vector_schema(dim))
        load_vectors(graph, count, dim, kind)
        graph.optimize()

    with made_once(f"vectors-{count}-{dim}-{kind}", make) as path:
        yield path


def _make_texts(path: Path) -> None:
    graph = og.init(path, schema=TEXT_SCHEMA)
    for table in texts(TEXTS):
        graph.load(table, mode="append", type="Doc")
    random = np.random.default_rng(5)
    ends = [[f"d{number:08d}" for number in random.integers(0, TEXTS, TEXTS)] for _ in range(2)]
    graph.load(pa.table({"src": ends[0], "dst": ends[1]}), mode="append", type="Cites", src="src", dst="dst")
    graph.load([{"type": "Note", "data": {"name": "one"}}], mode="append")
    graph.optimize()


@contextmanager
def edge_graph() -> Iterator[Path]:
    """Edges between a tenth as many nodes, indexed."""
    with made_once(f"edges-{EDGES}", _make_edges) as path:
        yield path


def _make_edges(path: Path) -> None:
    graph = og.init(path, schema=EDGE_SCHEMA)
    people = EDGES // 10
    names = np.char.add("person-", np.arange(people).astype(str))
    graph.load(pa.table({"name": names}), mode="append", type="Person", engine="local")
    random = np.random.default_rng(7)
    block = 5_000_000
    for start in range(0, EDGES, block):
        size = min(block, EDGES - start)
        ends = {end: pa.array(names).take(pa.array(random.integers(0, people, size))) for end in ("src", "dst")}
        graph.load(pa.table(ends), mode="append", type="Knows", src="src", dst="dst", engine="local")
    graph.optimize(engine="local")


def main() -> None:
    """Make every graph of the search suites."""
    with text_graph(), vector_graph(VECTORS, DIM, "clustered"), edge_graph():
        pass
    for dim in RECALL_DIMS:
        for kind in RECALL_KINDS:
            with vector_graph(RECALL_VECTORS, dim, kind):
                pass


if __name__ == "__main__":
    main()
