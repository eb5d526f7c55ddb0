"""Text predicates as sets of rows: those of an index for the fragments that it covers, judged texts for the rest.

Many bound rows are compared with the set of all matching rows; of a few the texts are read and judged. Which way is
taken never changes which rows match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, Mask, codes_of, combined
from omnigraph.read.search.analyzer import analyzer
from omnigraph.read.search.searched import Searched, searched_by
from omnigraph.read.search.texts import TextQuery, matching
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.caches import ReadCaches
from omnigraph.read.tables.reader import TableReader
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.index_search import MOST_EDITS, Coverage, TextKind, TextQuestion

FEW_TEXTS = 2000
"""Up to so many bound rows are judged by their texts without asking the index."""
WHOLE_SHARE = 16
"""A whole column is read as a stream when one row in so many is wanted and it cannot be kept."""
CHUNK = 65_536
COUNTED_ROWS = 1000
"""A predicate that matches no more covered rows than this is counted when a query is planned."""

_KINDS = {
    ir.TextPredicate.SEARCH: TextKind.ANY,
    ir.TextPredicate.MATCH_ALL: TextKind.ALL,
    ir.TextPredicate.MATCH_TEXT: TextKind.PHRASE,
}


def text_query(run: Run, match: ir.TextMatch, searched: Searched) -> TextQuery | None:
    """The predicate with its values; None when there is no query text."""
    query = run.constant(match.query)
    if query is None:
        return None
    edits = None if match.edits is None else run.constant(match.edits)
    return checked_query(match, query, edits, searched)


def checked_query(match: ir.TextMatch, query: str, edits: int | None, searched: Searched) -> TextQuery:
    """A predicate whose values make sense."""
    if edits is not None and edits < 0:
        raise BadRequest(f"fuzzy() on `{match.property}` takes 0 or more edits and got {edits}")
    return TextQuery(match.predicate, query, edits, searched.settings)


def matching_rows(
    run: Run, table_key: str, match: ir.TextMatch, predicate: ir.Expr | None, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows that match and pass a predicate, piece by piece, each once."""
    searched = searched_by(run.catalog, match, table_key)
    query = text_query(run, match, searched)
    if query is None or not query.tokens:
        return
    coverage = run.reader.text_coverage(table_key, searched.column, searched.settings)
    questions = None if coverage is None else _questions(searched, query, coverage)
    if coverage is not None and questions is not None:
        yield _asked(run, searched, query, questions, coverage, predicate, columns)
    fragments = coverage.uncovered if coverage is not None and questions is not None else None
    if fragments == ():
        return
    read = list(dict.fromkeys([*columns, searched.column]))
    for batch in run.reader.batches(table_key, read, predicate, fragments):
        run.stop.check()
        found = np.flatnonzero(matching(batch.column(searched.column), query))
        yield pa.Table.from_batches([batch.take(pa.array(found)).select(list(columns))])


def _asked(
    run: Run,
    searched: Searched,
    query: TextQuery,
    questions: Sequence[TextQuestion],
    coverage: Coverage,
    predicate: ir.Expr | None,
    columns: Sequence[str],
) -> pa.Table:
    """Covered rows. What the index says only roughly is judged by the texts."""
    judged = coverage.may_be_stale or _KINDS.get(query.predicate) not in (None, questions[0].kind)
    read = list(dict.fromkeys(["id", *columns, *([searched.column] if judged else [])]))
    rows = pa.concat_tables(
        [run.reader.ask_text(searched.table_key, question, read, predicate) for question in questions]
    )
    if len(questions) > 1 or coverage.may_be_stale:
        ids = combined(rows.column("id")).dictionary_encode()
        rows = rows.take(pa.array(np.sort(np.unique(codes_of(ids.indices), return_index=True)[1])))
    if judged:
        rows = rows.filter(pa.array(matching(combined(rows.column(searched.column)), query)))
    return rows.select(list(columns))


def _questions(searched: Searched, query: TextQuery, coverage: Coverage) -> list[TextQuestion] | None:
    """What to ask the index; None when it cannot say."""
    column = searched.column
    if query.predicate is not ir.TextPredicate.FUZZY:
        kind = _KINDS[query.predicate]
        if kind is TextKind.PHRASE and not (coverage.positions and searched.settings.plain):
            kind = TextKind.ALL
        return [TextQuestion(column, kind, query.text)]
    tokens = query.tokens
    wanted = analyzer(searched.settings)
    # A fuzzy question is about one word, which the index analyzes once more.
    if any(query.edits_of(token) > MOST_EDITS or wanted.sequence(token) != [token] for token in tokens):
        return None
    return [TextQuestion(column, TextKind.FUZZY, token, query.edits_of(token)) for token in tokens]


def covered_matches(
    reader: TableReader, caches: ReadCaches, catalog: Catalog, table_key: str, match: ir.TextMatch, text: str | None
) -> float | None:
    """How many covered rows match, for planning; None when the index cannot tell, or when they are many."""
    searched = searched_by(catalog, match, table_key)
    coverage = reader.text_coverage(table_key, searched.column, searched.settings)
    if coverage is None or match.predicate is ir.TextPredicate.FUZZY or text is None:
        return None
    query = TextQuery(match.predicate, text, None, searched.settings)
    questions = _questions(searched, query, coverage) if query.tokens else None
    if not questions:
        return None
    question = questions[0]
    rows: int = caches.corpora.get(
        (coverage.segments, question),
        lambda: reader.ask_text(table_key, question, ["_rowid"], None, COUNTED_ROWS + 1).num_rows,
    )
    return None if rows > COUNTED_ROWS else float(rows)


def table_mask(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> Mask:
    """Which of these entities of one table match. A missing text, and a query without tokens, match nothing."""
    searched = searched_by(run.catalog, match, table_key)
    query = text_query(run, match, searched)
    if query is None or len(codes) == 0:
        return np.zeros(len(codes), dtype=bool)
    if len(codes) > FEW_TEXTS and run.reader.text_coverage(table_key, searched.column, searched.settings) is not None:
        space = run.space(table_key)
        parts = [
            space.encode(combined(rows.column("id"))) for rows in matching_rows(run, table_key, match, None, ["id"])
        ]
        return np.isin(codes, np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    found = np.zeros(len(codes), dtype=bool)
    for places, texts in values_of(run, table_key, searched.column, codes):
        found[places] = matching(texts, query)
    return found


def table_truth(run: Run, match: ir.TextMatch, table_key: str, codes: Codes) -> pa.Array:
    """Whether entities of one table match, unknown where there is no text (or no query)."""
    searched = searched_by(run.catalog, match, table_key)
    query = text_query(run, match, searched)
    if query is None:
        return pa.nulls(len(codes), pa.bool_())
    found = np.zeros(len(codes), dtype=bool)
    missing = np.zeros(len(codes), dtype=bool)
    for places, texts in values_of(run, table_key, searched.column, codes):
        found[places] = matching(texts, query)
        missing[places] = texts.is_null().to_numpy(zero_copy_only=False)
    return pa.array(found, mask=missing)


def values_of(run: Run, table_key: str, column: str, codes: Codes) -> Iterator[tuple[Codes, pa.Array]]:
    """The values of a column for bound entities, piece by piece: places among the codes, and what is there.

    A column that is too large to keep, and wanted for a good part of the table, is read as a stream.
    """
    space = run.space(table_key)
    rows = space.rows(codes)
    many = len(codes) * WHOLE_SHARE >= run.reader.row_count(table_key)
    if rows is None or not many or run.caches.has_room_for(run.reader, table_key, column):
        for start in range(0, len(codes), CHUNK):
            run.stop.check()
            part = codes[start : start + CHUNK]
            yield np.arange(start, start + len(part)), combined(space.columns(part, [column])[0])
        return
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    done = 0
    for batch in run.reader.batches(table_key, [column]):
        run.stop.check()
        low, high = np.searchsorted(ordered, [done, done + batch.num_rows])
        yield order[low:high], combined(batch.column(0).take(pa.array(ordered[low:high] - done)))
        done += batch.num_rows
