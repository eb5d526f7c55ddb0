"""Which small fragments hold an id, known without reading them again.

Every small write leaves a small fragment that no index covers until the next optimize, and Lance reads all of them to
look up one id. What a data file holds never changes, so the ids of small files are kept: a look-up then goes to the
fragments that can have the row, and nowhere when the id is new. Deleted rows count as held, since an older version, or
another branch, may still have them; Lance leaves them out when it reads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.storage.constants import ID_COLUMN
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.values import TableVersion

SMALL_FRAGMENT_ROWS = 16_384
"""Fragments up to this size are known by their ids; larger ones are worth an index."""

MOST_FRAGMENTS = 1_024
"""A table in more pieces than this is not looked through piece by piece: it needs an optimize."""

MOST_IDS_WANTED = 1_000
"""Look-ups of more ids than this touch most fragments anyway."""

KEPT_IDS = 250_000
"""Ids that are kept per graph and process: about 25 MB. What is looked up least recently is dropped."""

MOST_FILES = 8_192
"""Files whose ids are kept: as many as eight tables in pieces can have. Every small write leaves one, and those that a
compaction put together are looked into no more."""

IDS_OF_A_FILE = 4
"""A file takes up as much as so many ids beside those that it holds: files of one row are what small writes leave."""

IDS_READ_FOR_ONE = 16_384
"""Ids that are read, once, so that the look-up of one knows where it is. For more of them an index is quicker."""

MOST_IDS_TOLD = 256
"""Ids of one commit that are told to other processes; more of them are read as quickly."""

KEPT_VERSIONS = 32
"""Versions of tables whose fragments are kept: a write looks several times into the one it is prepared on."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Where wanted ids can be.

    `candidates` are all fragments that can hold one. For who only asks whether ids exist: `present` are there for
    certain, and `fragments` are where the others may be.
    """

    candidates: tuple[int, ...]
    present: frozenset[str]
    fragments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the row of one id can be in a version of a table.

    `content` tells what these fragments consist of. Files never change, so a place with the same content, in whichever
    version, has the same row.
    """

    fragments: tuple[int, ...]
    content: Hashable


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The fragments of one version, of the small ones the file that has their ids, and the columns with their ids."""

    fragments: Sequence[FragmentMetadata]
    small: Mapping[int, str]
    columns: tuple[tuple[str, int], ...]


class FragmentIds:
    """The ids of small data files of one graph. Safe to share between threads."""

    def __init__(self, kept: int = KEPT_IDS) -> None:
        self._most = kept
        self._held = self._room = 0
        self._files: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._last: OrderedDict[TableVersion, _Pieces | None] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, handle: LanceDataset, fragments: Sequence[FragmentMetadata], rows: object) -> None:
        """Keep the ids of rows that were just written to one small fragment."""
        if len(fragments) != 1 or not isinstance(rows, pa.Table) or rows.num_rows > SMALL_FRAGMENT_ROWS:
            return
        path = _id_file(fragments[0], _id_field(handle))
        if path is not None and ID_COLUMN in rows.column_names:
            self._keep({path: frozenset(rows[ID_COLUMN].to_pylist())})

    def narrow(
        self, handle: LanceDataset, table: TableVersion, wanted: pa.Array, most_read: int | None = None
    ) -> Narrowed | None:
        """The fragments of a table that can hold one of these ids; None when that is not worth knowing, or more than
        `most_read` ids would have to be read for it."""
        if len(wanted) > MOST_IDS_WANTED:
            return None
        pieces = self._pieces(handle, table)
        if pieces is None:
            return None
        fragments, small = pieces.fragments, pieces.small
        most = self._most // 2 if most_read is None else most_read
        known = self._known(handle, table, [f for f in fragments if f.id in small], small, most)
        if known is None:
            return None
        ids = frozenset(wanted.to_pylist())
        present: set[str] = set()
        elsewhere: list[int] = []
        candidates: list[int] = []
        for fragment in fragments:
            path = small.get(fragment.id)
            found = ids & known[path] if path is not None else ids
            if not found:
                continue
            candidates.append(fragment.id)
            if path is None or fragment.num_deletions:
                elsewhere.append(fragment.id)
            else:
                present |= found
        return Narrowed(tuple(candidates), frozenset(present), () if present == ids else tuple(elsewhere))

    def place(self, handle: LanceDataset, table: TableVersion, wanted: str) -> Place | None:
        """Where the row with an id can be; None when that is not worth knowing."""
        narrowed = self.narrow(handle, table, pa.array([wanted], pa.string()), IDS_READ_FOR_ONE)
        pieces = self._pieces(handle, table)
        if narrowed is None or pieces is None:
            return None
        held = [fragment for fragment in pieces.fragments if fragment.id in narrowed.candidates]
        if any(fragment.overlays for fragment in held):
            return None
        return Place(narrowed.candidates, (pieces.columns, tuple(_content(fragment) for fragment in held)))

    def knows_all(self, handle: LanceDataset, table: TableVersion) -> bool:
        """Whether `place` finds every id of a table in one small fragment."""
        pieces = self._pieces(handle, table)
        if pieces is None or len(pieces.small) < len(pieces.fragments):
            return False
        with self._lock:
            unknown = [f.physical_rows for f in pieces.fragments if pieces.small[f.id] not in self._files]
        return int(sum(unknown)) <= IDS_READ_FOR_ONE

    def _pieces(self, handle: LanceDataset, table: TableVersion) -> _Pieces | None:
        """The fragments of a version; None when there are too many or none is small. The last few are kept."""
        with self._lock:
            if table in self._last:
                return self._last[table]
        columns = _columns(handle)
        found: _Pieces | None = None
        if ID_COLUMN in dict(columns) and len(handle.fragment_ids()) <= MOST_FRAGMENTS:
            with lance_errors("reading the fragments of", table):
                found = _pieces_of([fragment.metadata for fragment in handle.get_fragments()], columns)
        self._keep_pieces(table, found)
        return found

    def _keep_pieces(self, table: TableVersion, pieces: _Pieces | None) -> None:
        with self._lock:
            self._last[table] = pieces
            while len(self._last) > KEPT_VERSIONS:
                self._last.popitem(last=False)

    def landed(
        self, base: TableVersion, after: TableVersion, handle: LanceDataset, operation: LanceOperation.BaseOperation
    ) -> None:
        """Know the fragments of a version that was just committed from those of the one before it."""
        with self._lock:
            before = self._last.get(base)
        if before is None or not isinstance(operation, LanceOperation.Update):
            return
        changed = {fragment.id for fragment in operation.updated_fragments}
        kept = {fragment.id: fragment for fragment in before.fragments if fragment.id not in changed}
        fragments: list[FragmentMetadata] = []
        for number in handle.fragment_ids():
            known = kept.get(number)
            if known is None:
                fragment = handle.get_fragment(number)
                if fragment is None:
                    return
                known = fragment.metadata
            fragments.append(known)
        self._keep_pieces(after, _pieces_of(fragments, before.columns))

    def of_files(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """What is known of the ids of some files, by their names, as far as that is little enough to tell others."""
        names = [path.rpartition("/")[2] for path in paths]
        with self._lock:
            found = {name: sorted(self._files[name]) for name in names if name in self._files}
        return found if sum(len(ids) for ids in found.values()) <= MOST_IDS_TOLD else {}

    def keep(self, files: Mapping[str, Iterable[str]]) -> None:
        """Keep the ids of files that somebody else has written. Names of data files are never used again."""
        self._keep({name: frozenset(ids) for name, ids in files.items()})

    def kept(self) -> int:
        """How many ids are held."""
        return self._held

    def _known(
        self,
        handle: LanceDataset,
        table: TableVersion,
        fragments: Sequence[FragmentMetadata],
        small: Mapping[int, str],
        most: int,
    ) -> dict[str, frozenset[str]] | None:
        known: dict[str, frozenset[str]] = {}
        with self._lock:
            for path in small.values():
                if path in self._files:
                    self._files.move_to_end(path)
                    known[path] = self._files[path]
        unknown = [fragment for fragment in fragments if small[fragment.id] not in known]
        if sum(fragment.physical_rows for fragment in unknown) > most:
            return None
        if unknown:
            learned = _read_ids(handle, table, unknown)
            if learned is None:
                return None
            fresh = {small[number]: ids for number, ids in learned.items()}
            self._keep(fresh)
            known |= fresh
        return known

    def _keep(self, files: Mapping[str, frozenset[str]]) -> None:
        with self._lock:
            for path, ids in files.items():
                if path not in self._files:
                    self._files[path] = ids
                    self._held += len(ids)
                    self._room += len(ids) + IDS_OF_A_FILE
            while (self._room > self._most or len(self._files) > MOST_FILES) and len(self._files) > 1:
                _, dropped = self._files.popitem(last=False)
                self._held -= len(dropped)
                self._room -= len(dropped) + IDS_OF_A_FILE


def _pieces_of(fragments: Sequence[FragmentMetadata], columns: tuple[tuple[str, int], ...]) -> _Pieces | None:
    """None when none is small."""
    id_field = dict(columns).get(ID_COLUMN)
    files = {f.id: _id_file(f, id_field) for f in fragments if f.physical_rows <= SMALL_FRAGMENT_ROWS}
    small = {number: path for number, path in files.items() if path is not None}
    return _Pieces(fragments, small, columns) if small else None


def _read_ids(
    handle: LanceDataset, table: TableVersion, fragments: Sequence[FragmentMetadata]
) -> dict[int, frozenset[str]] | None:
    """The ids of whole fragments, deleted rows included, by one scan in their order."""
    with lance_errors("reading the ids of", table):
        rows = handle.scanner(
            columns=[ID_COLUMN],
            fragments=[handle.get_fragment(fragment.id) for fragment in fragments],
            with_row_id=True,
            include_deleted_rows=True,
            scan_in_order=True,
        ).to_table()
    if rows.num_rows != sum(fragment.physical_rows for fragment in fragments):
        return None
    found: dict[int, frozenset[str]] = {}
    start = 0
    for fragment in fragments:
        found[fragment.id] = frozenset(rows[ID_COLUMN].slice(start, fragment.physical_rows).to_pylist())
        start += fragment.physical_rows
    return found


def _columns(handle: LanceDataset) -> tuple[tuple[str, int], ...]:
    """The columns of a table and the numbers by which its files know them."""
    return tuple((field.name(), field.id()) for field in handle.lance_schema.fields())


def _id_field(handle: LanceDataset) -> int | None:
    return dict(_columns(handle)).get(ID_COLUMN)


def _content(fragment: FragmentMetadata) -> Hashable:
    """What a fragment consists of: its files, and which of their rows are deleted."""
    deleted = fragment.deletion_file
    return tuple(file._path for file in fragment.files), None if deleted is None else deleted.json()


def _id_file(fragment: FragmentMetadata, id_field: int | None) -> str | None:
    """The data file that has the ids of a fragment. File names are unique, on forks too."""
    # `path` makes a new class at each call, which would take longer than the look-up.
    return next((file._path for file in fragment.files if id_field in file.fields), None)
