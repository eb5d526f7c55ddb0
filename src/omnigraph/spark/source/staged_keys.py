"""The keys of a frame write on their way from its tasks to the commit, which checks across rows.

What Spark passes from tasks to a commit goes through the memory of the driver. Few keys may; of many, the task puts
pieces below the mark of the write and tells only where they are. A piece has its keys in parts by the hash of what a
rule is about, so that the commit can look at some of them without the others. They go with the mark, or by `cleanup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.load_messages import Kind, LoadContext, Message, from_bytes, to_bytes
from omnigraph.spark.load.load_tasks import key_messages
from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.uri import parse_root

FEW_BYTES = 64 << 10
"""Keys of one task up to this size are told as they are."""

PIECE_BYTES = 32 << 20
"""What a task holds before it puts a piece."""

PARTS = 256
"""In how many parts the keys of a piece lie; a commit takes as many of them together as it has memory for."""


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

    @property
    def size(self) -> int:
        """Bytes of it."""
        return self.entries[-1].end if self.entries else 0


@dataclass
class KeysOfTask:
    """What a task tells of its keys: few as they are, with whether ids are own ones; of the others where they are."""

    position: int = 0
    few: list[tuple[bytes, bool]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(len(data) for data, _ in self.few) + sum(piece.size for piece in self.pieces)


class StagedKeys:
    """Takes the keys of one attempt at a task. `mark` is where the mark of the write is."""

    def __init__(self, context: LoadContext, type_: GraphType, mark: str, position: int, attempt: int) -> None:
        self._context = replace(context, buckets=PARTS)
        self._type = type_
        self._place = f"{_below(mark)}/{position:06d}-{attempt}"
        self._held: list[Keys] = []
        self._bytes = 0
        self._told = KeysOfTask(position)

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
        messages = [message for keys in _together(self._held) for message in self._messages(keys)]
        messages.sort(key=lambda message: _rank(message.bucket))
        entries, at = [], 0
        for message in messages:
            end = at + len(message.payload)
            entries.append(Entry(message.bucket, message.kind, message.subject, at, end))
            at = end
        if entries:
            path = f"{self._place}-{len(self._told.pieces):04d}.keys"
            open_objects(parse_root(self._context.uri)).put(path, b"".join(message.payload for message in messages))
            self._told.pieces.append(Piece(path, tuple(entries)))
        self._held, self._bytes = [], 0

    def _messages(self, keys: Keys) -> Iterator[Message]:
        position = self._told.position
        return key_messages(self._context, self._type, keys.table, own_ids=keys.own_ids, position=position)


def few_messages(context: LoadContext, type_: GraphType, told: Iterable[KeysOfTask]) -> Iterator[Message]:
    """The keys that tasks told as they are, by the buckets of a commit."""
    for task in told:
        for data, own_ids in task.few:
            yield from key_messages(context, type_, from_bytes(data), own_ids=own_ids, position=task.position)


def put_messages(objects: ObjectStore, told: Iterable[KeysOfTask], buckets: int, bucket: int) -> Iterator[Message]:
    """The keys of one of `buckets` that tasks have put. Their number is a power of two, as that of the parts is."""
    for task in told:
        for piece in task.pieces:
            chosen = [entry for entry in piece.entries if entry.part % buckets == bucket]
            if chosen:
                start = chosen[0].start
                data = objects.get_range(piece.path, start, chosen[-1].end)
                for entry in chosen:
                    payload = data[entry.start - start : entry.end - start]
                    yield Message(bucket, entry.kind, entry.subject, task.position, payload)


def clear_keys(objects: ObjectStore, mark: str) -> None:
    """Remove all pieces, those of attempts that did not count included."""
    for entry in objects.list(_below(mark)):
        objects.delete(entry.path)


def _together(held: Sequence[Keys]) -> Iterator[Keys]:
    for own_ids in (True, False):
        tables = [keys.table for keys in held if keys.own_ids is own_ids]
        if tables:
            yield Keys(pa.concat_tables(tables).unify_dictionaries(), own_ids)


def _rank(part: int) -> int:
    """The bits of a part's number turned round: parts that are equal modulo a power of two come one after the other."""
    width = PARTS.bit_length() - 1
    return int(f"{part:0{width}b}"[::-1], 2)


def _below(mark: str) -> str:
    return mark.removesuffix(".json")
