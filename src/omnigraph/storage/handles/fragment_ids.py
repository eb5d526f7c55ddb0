"""Which small fragments hold an id, known without reading them again.

Every small write leaves a small fragment that no index covers until the next optimize, and Lance reads all of them to
look up one id. What a data file holds never changes, so the ids of small files are kept: a look-up then goes to the
fragments that can have the row, and nowhere when the id is new. Deleted rows count as held, since an older version, or
another branch, may still have them; Lance leaves them out when it reads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.storage.constants import ID_COLUMN
from omnigraph.storage.handles.ids_of_files import Held, IdsOfFiles
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


@dataclass(slots=True)
class _Pieces:
    """The fragments of one version by their numbers, and their order; of the small ones the file that has their ids;
    and the columns with their numbers."""

    fragments: Mapping[int, FragmentMetadata]
    order: Mapping[int, int]
    large: Sequence[int]
    small: Mapping[str, int]
    columns: tuple[tuple[str, int], ...]
    complete_at: int | None = None
    """When the ids of all small ones were last seen to be known."""

    def in_order(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Some of the fragments, each once, in the order of the table."""
        return tuple(sorted(set(numbers), key=self.order.__getitem__))


class FragmentIds:
    """The ids of small data files of one graph. Safe to share between threads."""

    def __init__(self, kept: int = KEPT_IDS) -> None:
        self._most = kept
        self._ids = IdsOfFiles(kept)
        self._last: OrderedDict[TableVersion, _Pieces | None] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, handle: LanceDataset, fragments: Sequence[FragmentMetadata], rows: object) -> None:
        """Keep the ids of rows that were just written to one small fragment."""
        if len(fragments) != 1 or not isinstance(rows, pa.Table) or rows.num_rows > SMALL_FRAGMENT_ROWS:
            return
        path = _id_file(fragments[0], _id_field(handle))
        if path is not None and ID_COLUMN in rows.column_names:
            self._ids.keep({path: rows[ID_COLUMN].to_pylist()})

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
        ids = frozenset(wanted.to_pylist())
        most = self._most // 2 if most_read is None else most_read
        held = self._holders(handle, table, pieces, ids, most)
        if held is None:
            return None
        if not ids:
            return Narrowed((), frozenset(), ())
        present: set[str] = set()
        elsewhere: set[int] = set(pieces.large)
        candidates: set[int] = set(pieces.large)
        for each, numbers in held.items():
            candidates.update(numbers)
            for number in numbers:
                if pieces.fragments[number].num_deletions:
                    elsewhere.add(number)
                else:
                    present.add(each)
        left = () if present == ids else pieces.in_order(elsewhere)
        return Narrowed(pieces.in_order(candidates), frozenset(present), left)

    def place(self, handle: LanceDataset, table: TableVersion, wanted: str) -> Place | None:
        """Where the row with an id can be; None when that is not worth knowing."""
        pieces = self._pieces(handle, table)
        held = None if pieces is None else self._holders(handle, table, pieces, (wanted,), IDS_READ_FOR_ONE)
        if pieces is None or held is None:
            return None
        numbers = pieces.in_order((*pieces.large, *held[wanted]))
        fragments = [pieces.fragments[number] for number in numbers]
        if any(fragment.overlays for fragment in fragments):
            return None
        return Place(numbers, (pieces.columns, tuple(_content(fragment) for fragment in fragments)))

    def knows_all(self, handle: LanceDataset, table: TableVersion) -> bool:
        """Whether `place` finds every id of a table in one small fragment."""
        pieces = self._pieces(handle, table)
        if pieces is None or pieces.large:
            return False
        unknown = self._unknown(pieces, ()).unknown
        return _rows_of(pieces, unknown) <= IDS_READ_FOR_ONE

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
        fragments: list[FragmentMetadata] = []
        for number in handle.fragment_ids():
            known = None if number in changed else before.fragments.get(number)
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
        found = {name: sorted(ids) for name in names if (ids := self._ids.of(name)) is not None}
        return found if sum(len(ids) for ids in found.values()) <= MOST_IDS_TOLD else {}

    def keep(self, files: Mapping[str, Iterable[str]]) -> None:
        """Keep the ids of files that somebody else has written. Names of data files are never used again."""
        self._ids.keep(files)

    def kept(self) -> int:
        """How many ids are held."""
        return len(self._ids)

    def _holders(
        self, handle: LanceDataset, table: TableVersion, pieces: _Pieces, wanted: Collection[str], most: int
    ) -> dict[str, list[int]] | None:
        """The small fragments that hold each id; None when more than `most` ids would have to be read to know."""
        held = self._unknown(pieces, wanted)
        small = pieces.small
        found = {each: [small[file] for file in files if file in small] for each, files in held.files.items()}
        if held.unknown:
            if _rows_of(pieces, held.unknown) > most:
                return None
            learned = _read_ids(handle, table, [pieces.fragments[small[file]] for file in held.unknown])
            if learned is None:
                return None
            self._ids.keep({file: learned[small[file]] for file in held.unknown})
            for number, ids in learned.items():
                for each in ids.intersection(wanted):
                    found[each].append(number)
        return found

    def _unknown(self, pieces: _Pieces, wanted: Collection[str]) -> Held:
        held = self._ids.holders(wanted, pieces.small, pieces.complete_at)
        if not held.unknown:
            pieces.complete_at = held.moment
        return held


def _pieces_of(fragments: Sequence[FragmentMetadata], columns: tuple[tuple[str, int], ...]) -> _Pieces | None:
    """None when none is small."""
    id_field = dict(columns).get(ID_COLUMN)
    large: list[int] = []
    small: dict[str, int] = {}
    for fragment in fragments:
        file = _id_file(fragment, id_field) if fragment.physical_rows <= SMALL_FRAGMENT_ROWS else None
        if file is None or file in small:
            large.append(fragment.id)
        else:
            small[file] = fragment.id
    order = {fragment.id: place for place, fragment in enumerate(fragments)}
    return _Pieces({each.id: each for each in fragments}, order, large, small, columns) if small else None


def _rows_of(pieces: _Pieces, files: Iterable[str]) -> int:
    """Rows of small fragments, deleted ones included."""
    return sum(int(pieces.fragments[pieces.small[file]].physical_rows) for file in files)


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
