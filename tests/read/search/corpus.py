"""Random texts and vectors on disk, moved through states of their indexes, and a plain reading of the same rows.

The plain reading shares nothing with what it judges but Lance's tokenizer, which page 10 makes the definition.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.ledger.values import TablePin
from omnigraph.query.lower.compile import compile_query
from omnigraph.read.run import run_on
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.stored import StoredTables
from omnigraph.schema import compile_schema
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.layout.indexes import IndexKind
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import parse_root

CATALOG = compile_schema(
    """
    node Doc {
      name: String @key
      text: String? @index
      kind: I64
      spot: Vector(4)?
    }
    """
)
WORDS = [
    *("graph", "graphs", "grapf", "grape", "engine", "engines", "night", "light", "knight"),
    *("日本", "日", "школа", "école", "ecole", "straße", "한국", "a", "b", "ab", "1", "12"),
]
ODD = "aAbB éß_-.\u0301İ日語한🙂👩‍👩‍👧1²ͺ⒜ﷺ'\n\x00\x1f\x1e\u200b"
QUERIES = [
    *WORDS[:9],
    "GRAPH engine",
    "night light",
    "日本 graph",
    "École",
    "strasse",
    "grpah",
    "🙂",
    "",
    "a b ab",
    "ﷺ",
    "İ",
]


def random_text(rng: random.Random) -> str | None:
    """Words, odd characters, nothing, very much."""
    chance = rng.random()
    if chance < 0.06:
        return None
    if chance < 0.1:
        return ""
    if chance < 0.12:
        return "graph " * rng.randint(1, 3000) + "x" * rng.randint(0, 70_000)
    if chance < 0.2:
        return "".join(chr(rng.choice([rng.randrange(32, 0x3000), rng.randrange(0x10000, 0x11000)])) for _ in range(20))
    if chance < 0.4:
        return "".join(rng.choice(ODD) for _ in range(rng.randint(1, 25)))
    return rng.choice([" ", ", ", "-"]).join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))


class Corpus:
    """Rows by name, and a table that holds them."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.rng = rng
        self.tables = TableStore(parse_root(str(path)))
        self.rows: dict[str, dict[str, Any]] = {}
        self.schema = table_schema(CATALOG.table("node:Doc"))
        self.head = self.tables.create("docs", self.schema)
        self.caches = ReadCaches()

    def row(self, name: str) -> dict[str, Any]:
        rng = self.rng
        spot = None if rng.random() < 0.05 else [rng.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(4)]
        return {"id": name, "name": name, "text": random_text(rng), "kind": rng.randrange(5), "spot": spot}

    def write(self, names: list[str]) -> None:
        """New rows, or new values of old ones."""
        made = [self.row(name) for name in names]
        self.rows.update({row["id"]: row for row in made})
        self.commit(self.tables.stage_upsert(self.head, pa.Table.from_pylist(made, schema=self.schema)))

    def delete(self, names: list[str]) -> None:
        for name in names:
            self.rows.pop(name, None)
        self.commit(self.tables.stage_delete(self.head, names))

    def index(self) -> None:
        """Extend both indexes over everything."""
        for column, kind in (("text", IndexKind.TEXT), ("spot", IndexKind.VECTOR), ("kind", IndexKind.BTREE)):
            staged = self.tables.stage_index(self.head, column, kind)
            if staged is not None:
                self.commit(staged)

    def compact(self) -> None:
        staged = self.tables.stage_compaction(self.head)
        if staged is not None:
            self.head = self.tables.commit_compaction(staged)

    def fork(self, name: str) -> None:
        self.head = self.tables.create_fork(self.head, name)

    def commit(self, staged: Any) -> None:
        self.head = self.tables.commit_staged(staged, "test")

    def ask(self, body: str, **params: Any) -> list[tuple]:
        """The rows of a query at the head."""
        kinds = {"q": "String", "v": "Vector(4)", "n": "I64"}
        declared = ", ".join(f"${name}: {kinds[name]}" for name in params)
        compiled = compile_query(f"query q({declared}) {{ {body} }}", CATALOG)
        pin = TablePin(
            "node:Doc", "docs", self.head.location, self.head.branch, self.head.version, len(self.rows), "main"
        )
        reader = StoredTables(self.tables, {"node:Doc": pin}, self.caches)
        return [tuple(row.values()) for row in run_on(reader, CATALOG, self.caches, compiled, params).rows()]


def tokens(text: str) -> list[str]:
    """What Lance makes of a text with the settings that page 10 gives as usual."""
    return [
        token.text
        for token in lance.tokenize(
            text,
            base_tokenizer="simple",
            lower_case=True,
            stem=False,
            remove_stop_words=False,
            ascii_folding=True,
            max_token_length=None,
        )
    ]


def matches(predicate: str, text: str | None, query: str) -> bool:
    """Page 02, word for word."""
    words, wanted = tokens(text or ""), tokens(query)
    if not wanted:
        return False
    if predicate == "search":
        return any(token in words for token in wanted)
    if predicate == "match_all":
        return all(token in words for token in wanted)
    if predicate == "match_text":
        return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
    allowed = {token: 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2 for token in wanted}
    return any(near(token, word, allowed[token]) for token in wanted for word in {*words})


def near(one: str, other: str, most: int) -> bool:
    """Whether letters inserted, deleted or replaced, at most so many, make one of the other."""
    if abs(len(one) - len(other)) > most:
        return False
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, start=1):
        before, row = row, [i]
        for j, y in enumerate(other, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
    return row[-1] <= most


def bm25(rows: dict[str, dict[str, Any]], query: str) -> dict[str, float]:
    """The scores of the rows that have one, by the statistics of exactly these rows."""
    texts = {name: words for name, row in rows.items() if (words := tokens(row["text"] or ""))}
    average = sum(map(len, texts.values())) / max(len(texts), 1)
    scores: dict[str, float] = {}
    for token in dict.fromkeys(tokens(query)):
        having = [name for name, words in texts.items() if token in words]
        rarity = math.log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            count, size = texts[name].count(token), len(texts[name])
            scores[name] = scores.get(name, 0.0) + rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * size / average))
    return scores


def nearest(rows: dict[str, dict[str, Any]], query: list[float]) -> list[str]:
    """The names of the rows with a direction, nearest first, equal ones by name."""
    size = math.sqrt(sum(x * x for x in query))
    found = []
    for name, row in rows.items():
        own = math.sqrt(sum(x * x for x in row["spot"])) if row["spot"] else 0.0
        if own:
            product = sum(x * y for x, y in zip(row["spot"], query, strict=True))
            found.append((round(1 - max(-1.0, min(1.0, product / (own * size))), 6), name))
    return [name for _, name in sorted(found)]
