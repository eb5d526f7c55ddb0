"""The keys of a frame write on their way from its tasks to the commit, which checks across rows.

What Spark passes from tasks to a commit goes through the memory of the driver. Few keys may; of many, the task puts
pieces below the mark of the write and tells only where they are, and which of them the committed rows leave in doubt. A
piece has its keys in parts by the hash of what a rule is about, so that the commit can look at some of them without the
others, and before them the hashes of all, which tell whether a key comes twice. They go with the mark, or by `cleanup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.load_messages import Kind, LoadContext, Message, from_bytes, to_bytes
from omnigraph.spark.load.load_tasks import key_messages
from omnigraph.spark.source.keys.key_doubts import KeyDoubts, Seen
from omnigraph.spark.source.keys.key_hashes import HashRun, hash_runs
from omnigraph.spark.source.keys.key_parts import PARTS, Doubt, rank
from omnigraph.spark.source.keys.key_rules import key_rules
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root

FEW_BYTES = 64 << 10
"""Keys of one task up to this size are told as they are."""

PIECE_BYTES = 32 << 20
"""What a task holds before it puts a piece."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of some rows. `own_ids`: the rows brought their ids, which have to be looked for."""

    table: pa.Table
    own_ids: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the keys of one part that one rule looks at lie in a piece."""

    part: int
    kind: Kind
    subject: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Keys that have been put. The entries of parts that go together lie next to each other."""

    path: str
    entries: tuple[Entry, ...]
    hashes: tuple[HashRun, ...]


@dataclass
class KeysOfTask:
    """What a task tells of its keys: few as they are, with whether ids are own ones; of the others where they are, what
    is in doubt of them, and the versions of the tables that it saw."""

    position: int = 0
    few: list[tuple[bytes, bool]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    doubts: set[Doubt] = field(default_factory=set)
    seen: Seen = field(default_factory=dict)


class StagedKeys:
    """Takes the keys of one attempt at a task. `mark` is where the mark of the write is."""

    def __init__(self, context: LoadContext, type_: GraphType, mark: str, position: int, attempt: int) -> None:
        self._context = replace(context, buckets=PARTS)
        self._type = type_
        self._place = f"{_below(mark)}/{position:06d}-{attempt}"
        self._held: list[Keys] = []
        self._bytes = 0
        self._told = KeysOfTask(position)
        self._look = KeyDoubts(context, type_)

    def put(self, keys: pa.Table, *, own_ids: bool) -> None:
        """Take the keys of some rows."""
        self._held.append(Keys(keys, own_ids))
        self._bytes += keys.nbytes
        if self._bytes >= PIECE_BYTES:
            self._put_piece()

    def finish(self) -> KeysOfTask:
        """All keys: some as they are, of the others where they have been put."""
        if self._held and not self._told.pieces and self._bytes <= FEW_BYTES:
            self._told.few = [(to_bytes(keys.table), keys.own_ids) for keys in self._held]
        elif self._held:
            self._put_piece()
        return self._told

    def _put_piece(self) -> None:
        held = list(_together(self._held))
        self._held, self._bytes = [], 0
        path = f"{self._place}-{len(self._told.pieces):04d}.keys"
        blocks: list[bytes] = []
        at, runs, entries = 0, [], []
        for run in (run for keys in held for run in hash_runs(key_rules(self._type, own_ids=keys.own_ids), keys.table)):
            assert run.held is not None
            blocks.append(run.held.tobytes())
            runs.append(replace(run, held=None, path=path, start=at))
            at += len(blocks[-1])
        messages = [message for keys in held for message in self._messages(keys)]
        messages.sort(key=lambda message: rank(message.bucket))
        for message in messages:
            blocks.append(message.payload)
            entries.append(Entry(message.bucket, message.kind, message.subject, at, at + len(message.payload)))
            at += len(message.payload)
        if blocks:
            open_objects(parse_root(self._context.uri)).put(path, b"".join(blocks))
            self._told.pieces.append(Piece(path, tuple(entries), tuple(runs)))
        for keys in held:
            self._told.doubts |= self._look.of(keys.table, own_ids=keys.own_ids)
        self._told.seen = self._look.seen

    def _messages(self, keys: Keys) -> Iterator[Message]:
        position = self._told.position
        return key_messages(self._context, self._type, keys.table, own_ids=keys.own_ids, position=position)


def few_keys(told: Iterable[KeysOfTask]) -> list[Keys]:
    """The keys that tasks told as they are, together."""
    return list(_together([Keys(from_bytes(data), own_ids) for task in told for data, own_ids in task.few]))


def few_messages(context: LoadContext, type_: GraphType, told: Iterable[KeysOfTask]) -> Iterator[Message]:
    """The keys that tasks told as they are, by their parts."""
    context = replace(context, buckets=PARTS)
    for task in told:
        for data, own_ids in task.few:
            yield from key_messages(context, type_, from_bytes(data), own_ids=own_ids, position=task.position)


def put_messages(objects: ObjectStore, task: KeysOfTask, parts: AbstractSet[Doubt]) -> Iterator[Message]:
    """The keys of some parts that a task has put."""
    for piece in task.pieces:
        chosen = [entry for entry in piece.entries if (entry.subject, entry.part) in parts]
        if chosen:
            start = chosen[0].start
            data = objects.get_range(piece.path, start, chosen[-1].end)
            for entry in chosen:
                payload = data[entry.start - start : entry.end - start]
                yield Message(entry.part, entry.kind, entry.subject, task.position, payload)


def clear_keys(objects: ObjectStore, mark: str) -> None:
    """Remove all pieces, those of attempts that did not count included."""
    objects.delete_prefix(_below(mark))


def _together(held: Sequence[Keys]) -> Iterator[Keys]:
    for own_ids in (True, False):
        tables = [keys.table for keys in held if keys.own_ids is own_ids]
        if tables:
            yield Keys(pa.concat_tables(tables).unify_dictionaries(), own_ids)


def _below(mark: str) -> str:
    return mark.removesuffix(".json")
