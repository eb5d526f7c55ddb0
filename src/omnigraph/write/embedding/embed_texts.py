"""Embed stored texts: look how much it is, make the vectors, and write them in one commit on a branch.

Making vectors takes long and costs money; writing them takes neither. So they are made first, without any claim on the
branch, and kept on a shelf. The commit then looks again which rows want a vector, on the state that it is made on, and
takes what the shelf has: a row that came or changed meanwhile is asked for then, one that is gone is left out. A run
that dies leaves the shelf to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.choices import EmbedMode
from omnigraph.embed.due import Due, embed_mode
from omnigraph.embed.provider_settings import from_environment
from omnigraph.embed.text_vectors import TextVectors, text_vectors
from omnigraph.errors import BadRequest
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import RetryPolicy, WriteSession, run_write
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.snapshots import find_type, table_of
from omnigraph.ledger.values import MAIN, Snapshot, WriterKind
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.scratch import scratch_folder
from omnigraph.write.embedding.embed_results import EmbeddedProperty, EmbedResult
from omnigraph.write.embedding.embed_work import DueRows, TableWork, Target, Told, due_rows, fill_shelf, shown
from omnigraph.write.embedding.shelf import Shelves, VectorShelf
from omnigraph.write.load.load_merge import MergingLoad
from omnigraph.write.progress import ProgressCallback, ProgressReporter
from omnigraph.write.rows.fill_vectors import vector_array
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.rows import Rows
from omnigraph.write.validate.collector import ViolationCollector

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("embed.ready", "Every vector is on the shelf; the graph is as it was")
declare("embed.committed", "The vectors are committed; the shelf is still there")

Fill = Callable[["GraphStore", Snapshot, TableWork, EmbedMode, TextVectors, Shelves, Told], None]
"""Puts the vectors that the rows of one table want on the shelves."""


def embed_texts(
    store: GraphStore,
    *,
    types: Collection[str] | None = None,
    property: str | None = None,
    mode: str = "missing",
    branch: str = MAIN,
    dry_run: bool = False,
    actor: str | None = None,
    progress: ProgressCallback | None = None,
    fill: Fill | None = None,
    engine: str = "local",
) -> EmbedResult:
    """Fill the `@embed` properties of a branch, all or those that are named, in one commit.

    `mode` says which rows: without a vector, also with one of another text or model (`stale`), or all. With `dry_run`
    nothing is asked of the provider and nothing is written. `fill` makes the vectors elsewhere than in this process.
    """
    chosen = embed_mode(mode)
    vectors = _vectors(store, needed=not dry_run)
    if not dry_run:
        store.refuse_if_read_only("embed")
    snapshot = store.snapshot(branch=branch, operation="embed")
    works = works_of(store.catalog(snapshot.schema_digest), types, property, vectors)
    shelves = Shelves(store.objects)
    surveyed = [found for work in works for found in _survey(store, snapshot, work, chosen, shelves)]
    if dry_run:
        return EmbedResult(store.uri, branch, chosen, tuple(surveyed), None, True, engine, actor)
    assert vectors is not None
    reporter = ProgressReporter("embed", progress, records_total=sum(one.rows for one in surveyed))
    reporter.tell("making vectors")
    for work in works:
        if work.type.table_key in {one.table_key for one in surveyed if one.rows > one.rows_ready}:
            told: Told = lambda count: reporter.tell("making vectors", records=count)  # noqa: E731 - one for each run
            (fill or fill_in_process)(store, snapshot, work, chosen, vectors, shelves, told)
    failpoint("embed.ready")
    reporter.tell("writing")
    write = _Write(store, types, property, chosen, vectors, shelves)
    commit = run_write(store, branch, write.prepare, actor=actor, retry=RetryPolicy.PREPARE_AGAIN, operation="embed")
    failpoint("embed.committed")
    shelves.clear()
    reporter.tell("done", finished=True)
    return EmbedResult(store.uri, branch, chosen, tuple(write.done), commit, False, engine, actor)


def works_of(
    catalog: Catalog, types: Collection[str] | None, property: str | None, vectors: TextVectors | None
) -> list[TableWork]:
    """The tables and properties that are meant. `BadRequest` when one that was named is not embedded."""
    chosen = [find_type(catalog, name) for name in types] if types else list(catalog.types())
    works = []
    for type_ in dict.fromkeys(chosen):
        targets = tuple(
            Target(one, type_.by_name[one.embed.source].column, _model(one.embed.model, vectors))
            for one in type_.properties
            if one.embed is not None and property in (None, one.name)
        )
        if targets:
            works.append(TableWork(type_, targets))
        elif types:
            raise BadRequest(_nothing_to_embed(type_, property))
    if not works:
        what = f"no type has an embedded property `{property}`" if property else "the schema has no `@embed` property"
        raise BadRequest(f'{what}: declare one as `vector: Vector(384)? @embed("text")`')
    return works


def _nothing_to_embed(type_: GraphType, property: str | None) -> str:
    if property is not None and property not in type_.by_name:
        return f"{type_.name} has no property `{property}`; it has {', '.join(type_.by_name)}"
    about = f"`{property}` of {type_.name} is" if property else f"no property of {type_.name} is"
    return f"{about}{' not' if property else ''} declared with @embed(…), so there is no text to embed"


def _model(declared: str | None, vectors: TextVectors | None) -> str | None:
    return declared if vectors is None else vectors.model_for(declared)


def _vectors(store: GraphStore, *, needed: bool) -> TextVectors | None:
    settings = store.embedding if store.embedding is not None else from_environment()
    if settings is None and needed:
        raise BadRequest("there is no embedding provider: name one by OMNIGRAPH_EMBEDDING_PROVIDER")
    return text_vectors(settings) if settings is not None else None


def shelves_of(shelves: Shelves, work: TableWork) -> list[VectorShelf]:
    """The shelf of each target of a table."""
    return [shelves.shelf(target.model, target.dim) for target in work.targets if target.model is not None]


def fill_in_process(
    store: GraphStore,
    snapshot: Snapshot,
    work: TableWork,
    mode: EmbedMode,
    vectors: TextVectors,
    shelves: Shelves,
    told: Told,
) -> None:
    """Make the vectors here."""
    batches = due_rows(store.tables, table_of(snapshot.pin(work.type.table_key)), work, mode)
    fill_shelf(batches, work, shelves_of(shelves, work), vectors, told)


def _survey(
    store: GraphStore, snapshot: Snapshot, work: TableWork, mode: EmbedMode, shelves: Shelves
) -> list[EmbeddedProperty]:
    """How much there is to do for each property of a table. Refuses to mix the vectors of two models."""
    counts = [np.zeros(4, np.int64) for _ in work.targets]
    for batch in due_rows(store.tables, table_of(snapshot.pin(work.type.table_key)), work, mode):
        for number, target in enumerate(work.targets):
            wanted = batch.wanted[number]
            if wanted.other_model.any():
                _refuse_other_model(batch, work, target, wanted)
            _, texts = batch.texts(target, number)
            ready = 0
            if target.model is not None and texts:
                shelf = shelves.shelf(target.model, target.dim)
                ready = sum(shelf.has(shelf.key(text)) for text in texts)
            counts[number] += [len(texts), _tokens(texts), ready, _cleared(target, wanted).sum()]
    return [_embedded(work, target, counts[number]) for number, target in enumerate(work.targets)]


def _embedded(work: TableWork, target: Target, counts: np.ndarray) -> EmbeddedProperty:
    rows, tokens, ready, cleared = map(int, counts)
    assert target.vector.embed is not None
    source = target.vector.embed.source
    return EmbeddedProperty(work.type.table_key, target.vector.name, source, target.model, rows, tokens, ready, cleared)


def _tokens(texts: Sequence[str]) -> int:
    return int(pc.sum(pc.divide(pc.add(pc.binary_length(pa.array(texts, pa.string())), 3), 4)).as_py() or 0)


def _cleared(target: Target, wanted: Due) -> np.ndarray:
    """Vectors whose text is gone go too, where the property may be empty."""
    return wanted.clear if target.vector.nullable else np.zeros(len(wanted.clear), bool)


def _refuse_other_model(batch: DueRows, work: TableWork, target: Target, wanted: Due) -> None:
    row = batch.rows["id"][int(np.argmax(wanted.other_model))].as_py()
    raise BadRequest(
        f"`{target.vector.name}` of {work.type.name} `{row}` was made by another model than `{target.model}`: "
        "vectors of two models do not compare. Embed with mode `stale`, best on a branch, to make those anew"
    )


class _Write:
    """The write: on each state that it is prepared on, the rows that want a vector, with their vectors."""

    def __init__(
        self,
        store: GraphStore,
        types: Collection[str] | None,
        property: str | None,
        mode: EmbedMode,
        vectors: TextVectors,
        shelves: Shelves,
    ) -> None:
        self._store = store
        self._named = (types, property)
        self._mode = mode
        self._vectors = vectors
        self._shelves = shelves
        self.done: list[EmbeddedProperty] = []

    def prepare(self, snapshot: Snapshot, session: WriteSession) -> WriteIntent | None:
        """Stage the rows with their vectors; None when no row wants one."""
        self.done = []
        violations = ViolationCollector()
        with scratch_folder("embed") as directory:
            merging = MergingLoad(self._store, snapshot, session, violations, directory, vectors=lambda: None)
            try:
                for work in works_of(self._store.catalog(snapshot.schema_digest), *self._named, self._vectors):
                    self._add(snapshot, work, merging)
                merging.merge_tables()
                violations.raise_if_any("embed")
                writes = merging.stage()
            except BaseException:
                merging.abandon()
                raise
        return session.intent(WriterKind.EMBED, snapshot, writes, reads=merging.reads) if writes else None

    def _add(self, snapshot: Snapshot, work: TableWork, merging: MergingLoad) -> None:
        shelves = shelves_of(self._shelves, work)
        counts = [np.zeros(4, np.int64) for _ in work.targets]
        for batch in due_rows(self._store.tables, table_of(snapshot.pin(work.type.table_key)), work, self._mode):
            touched = np.zeros(batch.rows.num_rows, bool)
            for target, wanted in zip(work.targets, batch.wanted, strict=True):
                touched |= wanted.make | _cleared(target, wanted)
            if not touched.any():
                continue
            columns = {name: batch.rows[name] for name in batch.rows.column_names if name in ("id", "src", "dst")}
            mentioned = {p.column: np.zeros(batch.rows.num_rows, bool) for p in work.type.properties}
            for number, (target, shelf) in enumerate(zip(work.targets, shelves, strict=True)):
                wanted = batch.wanted[number]
                ids, texts = batch.texts(target, number)
                columns[target.vector.column] = self._column(work, target, shelf, wanted.make, ids, texts)
                mentioned[target.vector.column] = wanted.make | _cleared(target, wanted)
                counts[number] += [len(texts), _tokens(texts), 0, _cleared(target, wanted).sum()]
            merging.add_checked(_rows(work.type, columns, mentioned, touched))
        self.done += [_embedded(work, target, counts[number]) for number, target in enumerate(work.targets)]

    def _column(
        self, work: TableWork, target: Target, shelf: VectorShelf, make: np.ndarray, ids: pa.Array, texts: list[str]
    ) -> pa.Array:
        """The property's column: vectors where they are wanted, else nothing."""
        made = self._made(work, target, shelf, ids, texts)
        at = np.full(len(make), -1, np.int64)
        at[make] = np.arange(len(texts))
        return vector_array(made, target.dim).take(pa.array(at, mask=at < 0))

    def _made(self, work: TableWork, target: Target, shelf: VectorShelf, ids: pa.Array, texts: list[str]) -> np.ndarray:
        """The vectors of these texts: from the shelf, and from the provider for rows that are new here."""
        found = shelf.take([shelf.key(text) for text in texts])
        missing = [number for number, vector in enumerate(found) if vector is None]
        if missing:
            assert target.vector.embed is not None
            about = shown(work.type, target)
            made = self._vectors.make(
                [texts[number] for number in missing],
                dim=target.dim,
                model=target.vector.embed.model,
                named=lambda row: f"{about} `{ids[missing[row]].as_py()}`",
            )
            shelf.put([shelf.key(texts[number]) for number in missing], made)
            for number, vector in zip(missing, made, strict=True):
                found[number] = vector
        return np.array(found, np.float32).reshape(len(texts), target.dim)


def _rows(
    type_: GraphType, columns: dict[str, pa.Array], mentioned: dict[str, np.ndarray], touched: np.ndarray
) -> Rows:
    """Rows that name nothing but the vectors that they get or lose."""
    schema = working_schema(type_)
    count = len(touched)
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in schema]
    masks = {name: pa.array(mask) for name, mask in mentioned.items()}
    return Rows(type_.table_key, pa.table(arrays, schema=schema), "embed", mentioned=masks).take(
        pa.array(np.flatnonzero(touched))
    )
