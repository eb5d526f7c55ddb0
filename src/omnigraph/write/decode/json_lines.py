"""JSON lines to rows, fast: Arrow's JSON reader parses whole blocks of lines with the type's own schema, or they are
cut at their quotes where all are alike.

Arrow reads strictly (no text for numbers, no 1.5 for an integer, no unknown and no repeated key), so a block that it
accepts means what the slow decoder (`records`) would have made of it; what it would take differently is looked for and
left out. Any block that it refuses is split, and in the end the few lines that are not plainly right go to the slow
decoder, which knows the exact rules and the words for what is wrong. So the two never disagree, and clean input never
pays for the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.schema.catalog import Catalog, EdgeType, GraphType
from omnigraph.schema.ids.given_ids import IdForm, own_forms
from omnigraph.write.decode.alike_lines import alike_table
from omnigraph.write.decode.json_columns import NotPlain, Variant, json_schema, plain_column, variants
from omnigraph.write.decode.json_numbers import are_exact
from omnigraph.write.decode.json_text import Malformed, RecordReader, line_text, parse_line
from omnigraph.write.decode.records import decode_records
from omnigraph.write.rows.row_columns import working_schema
from omnigraph.write.rows.row_ids import normal_ids
from omnigraph.write.rows.rows import Rows, concat_rows
from omnigraph.write.validate.collector import ViolationCollector

SMALLEST_BLOCK = 64
"""Lines below which a block that Arrow refuses goes to the slow decoder as a whole."""

PARSE_BLOCK_BYTES = 1 << 20
"""What one thread of Arrow's reader takes at a time."""

ENOUGH_CORES = 4
"""Cores with which Arrow's reader is sooner done than one core that cuts lines which are alike."""

_RECORD_KEYS = frozenset({"type", "edge", "from", "to", "id", "data"})


class _NotOneValue(Exception):
    """A line is not one whole JSON value: where records begin and end is for the slow decoder to find out."""


@dataclass(frozen=True)
class _Lines:
    """Lines of JSON text with the numbers of their records; every line starts with `{` and ends with `}`."""

    text: pa.Array
    records: np.ndarray[tuple[int], np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.text)

    def slice(self, start: int, stop: int) -> _Lines:
        return _Lines(self.text.slice(start, stop - start), self.records[start:stop])

    def where(self, mask: pa.Array) -> _Lines:
        return _Lines(self.text.filter(mask), self.records[mask.to_numpy(zero_copy_only=False)])


@dataclass
class LineDecoder:
    """Decodes blocks of lines of one source, keeping count of the records. One per source; not shared by threads."""

    catalog: Catalog
    source: str | None
    violations: ViolationCollector
    use_threads: bool = True
    _reader: RecordReader = field(default_factory=RecordReader)
    _types_seen: dict[str, Variant] = field(default_factory=dict)

    def decode(self, lines: pa.Array) -> list[Rows]:
        """The rows that a block of lines ends, per type. Lines may or may not end with a line feed."""
        found: dict[str, list[Rows]] = {}
        for rows in self._block(lines):
            found.setdefault(rows.table_key, []).append(rows)
        return [_in_order(parts) for parts in found.values()]

    def _block(self, lines: pa.Array) -> list[Rows]:
        if len(lines) <= SMALLEST_BLOCK and (self._reader.unfinished or not _is_text(lines)):
            return self._slow_lines(lines)
        if self._reader.unfinished:
            return [*self._slow_lines(lines.slice(0, SMALLEST_BLOCK)), *self._block(lines.slice(SMALLEST_BLOCK))]
        decoded = self._one_record_per_line(lines)
        if decoded is not None:
            return decoded
        if len(lines) <= SMALLEST_BLOCK:
            return self._slow_lines(lines)
        half = len(lines) // 2
        return [*self._block(lines.slice(0, half)), *self._block(lines.slice(half))]

    def _one_record_per_line(self, lines: pa.Array) -> list[Rows] | None:
        """The rows of a block in which every line is one whole value, or None when one is not."""
        if not _is_text(lines):
            return None
        lines = _without_blanks(lines)
        if not _are_objects(lines):
            return None
        first, reported = self._reader.next_record, self.violations
        numbered = _Lines(lines, np.arange(first, first + len(lines), dtype=np.int64))
        self.violations = ViolationCollector(reported.kept_per_kind)
        try:
            decoded = list(self._decode_objects(numbered))
            reported.merge(self.violations)
        except _NotOneValue:
            return None
        finally:
            self.violations = reported
        self._reader.next_record = first + len(lines)
        return decoded

    def finish(self) -> list[Rows]:
        """The rows that are left when the source ends."""
        return decode_records(self.catalog, self._reader.finish(), self.source, self.violations)

    def _decode_objects(self, lines: _Lines) -> Iterator[Rows]:
        type_ = self._type_of_first(lines)
        rows = self._of_one_type(type_, lines) if type_ is not None else None
        if rows is not None:
            yield rows
        else:
            yield from self._routed(lines)

    def _type_of_first(self, lines: _Lines) -> GraphType | None:
        """What the first line says it is: most blocks are of one type, and then nobody has to look for the others."""
        record = parse_line(lines.text[0].as_py()) if len(lines) else None
        if not isinstance(record, dict):
            return None
        node, edge = record.get("type"), record.get("edge")
        if isinstance(node, str) and edge is None:
            return self.catalog.node(node)
        return self.catalog.edge(edge) if isinstance(edge, str) and node is None else None

    def _routed(self, lines: _Lines) -> Iterator[Rows]:
        """Decode lines of several types: find out which line is of which type first."""
        if len(lines) == 0:
            return
        names = _type_names(lines, self.use_threads)
        if names is None:
            yield from self._halves(lines)
            return
        known = pa.repeat(pa.scalar(False), len(lines))
        for column, find in (("type", self.catalog.node), ("edge", self.catalog.edge)):
            other = names["edge" if column == "type" else "type"]
            for name in pc.unique(names[column]).drop_null().to_pylist():
                type_ = find(name)
                if type_ is None:
                    continue
                mask = pc.and_(pc.fill_null(pc.equal(names[column], name), False), pc.is_null(other)).combine_chunks()
                known = pc.or_(known, mask)
                yield from self._bisected(type_, lines.where(mask))
        if not pc.all(known).as_py():
            yield from self._slow_objects(lines.where(pc.invert(known)))

    def _halves(self, lines: _Lines) -> Iterator[Rows]:
        if len(lines) <= SMALLEST_BLOCK:
            yield from self._slow_objects(lines)
            return
        half = len(lines) // 2
        yield from self._routed(lines.slice(0, half))
        yield from self._routed(lines.slice(half, len(lines)))

    def _bisected(self, type_: GraphType, lines: _Lines) -> Iterator[Rows]:
        """Decode lines of one type; where Arrow refuses, look for the lines that it refuses."""
        rows = self._of_one_type(type_, lines) if len(lines) else None
        if rows is not None:
            yield rows
        elif len(lines) <= SMALLEST_BLOCK:
            yield from self._slow_objects(lines)
        else:
            half = len(lines) // 2
            yield from self._bisected(type_, lines.slice(0, half))
            yield from self._bisected(type_, lines.slice(half, len(lines)))

    def _of_one_type(self, type_: GraphType, lines: _Lines) -> Rows | None:
        """The rows of lines that are all plainly right and of one type, or None."""
        preferred = self._types_seen.get(type_.table_key)
        for variant in variants(type_, preferred):
            parsed = _parse(lines, json_schema(type_, variant), "error", self.use_threads)
            if parsed is None:
                continue
            try:
                rows = _rows(type_, own_forms(self.catalog, type_), parsed, lines, self.source)
            except NotPlain:
                continue
            self._types_seen[type_.table_key] = variant
            return rows
        return None

    def _slow_objects(self, lines: _Lines) -> list[Rows]:
        values = [(int(record), parse_line(text)) for record, text in zip(lines.records, lines.text.to_pylist())]
        if any(isinstance(value, Malformed) for _, value in values):
            raise _NotOneValue
        return decode_records(self.catalog, values, self.source, self.violations)

    def _slow_lines(self, lines: pa.Array) -> list[Rows]:
        texts = (line_text(line) for line in lines.cast(pa.binary()).to_pylist())
        return decode_records(self.catalog, self._reader.feed(texts), self.source, self.violations)


def _rows(type_: GraphType, forms: Mapping[str, IdForm], parsed: pa.Table, lines: _Lines, source: str | None) -> Rows:
    """Typed rows of a parsed block. Raises NotPlain when some line is not what it seemed."""
    given = parsed["edge" if isinstance(type_, EdgeType) else "type"]
    named = pc.utf8_lower(given) if isinstance(type_, EdgeType) else given
    expected = type_.name.lower() if isinstance(type_, EdgeType) else type_.name
    if given.null_count or not pc.all(pc.equal(named, expected)).as_py():
        raise NotPlain
    columns = _flattened(parsed, "data")
    if not are_exact(type_, columns, lines.text):
        raise NotPlain
    arrays: list[pa.ChunkedArray] = []
    for column in working_schema(type_):
        if column.name in ("src", "dst"):
            end = parsed["from" if column.name == "src" else "to"]
            form = forms[column.name]
            if end.null_count or not (pa.types.is_string(end.type) or form.takes_any_text):
                raise NotPlain
            arrays.append(normal_ids(form, end.cast(pa.string())))
        elif column.name == "id":
            inside = None if "id" in type_.by_name else columns["id"]
            arrays.append(normal_ids(forms["id"], _ids(parsed["id"], inside)))
        else:
            property_ = type_.by_column[column.name]
            arrays.append(plain_column(property_.type, columns[property_.name]))
    table = pa.table(arrays, schema=working_schema(type_))
    return Rows(type_.table_key, table, source, pa.array(lines.records), _mentioned(type_, table, lines.text))


def _ids(beside: pa.ChunkedArray, inside: pa.ChunkedArray | None) -> pa.ChunkedArray:
    """The given ids, whether they stand beside `data` or in it."""
    if inside is None:
        return beside
    if beside.null_count == len(beside):
        return inside
    if pc.any(pc.and_(pc.is_valid(beside), pc.is_valid(inside))).as_py():
        raise NotPlain
    return pc.coalesce(beside, inside)


def _flattened(parsed: pa.Table, name: str) -> dict[str, pa.ChunkedArray]:
    """The fields of a struct column, null where the struct is."""
    column = parsed[name]
    flat = column.flatten()
    return {column.type.field(at).name: flat[at] for at in range(column.type.num_fields)}


def _mentioned(type_: GraphType, table: pa.Table, lines: pa.Array) -> dict[str, pa.Array]:
    """Which rows name a property: those with a value, and those that say null. Raises NotPlain when it cannot be told.

    In a line that parsed with known keys only, `"p" : null` can be nothing else than the key p with the value null,
    unless a backslash is about (an escaped key) or p is also a key of the record itself.
    """
    with_nulls = {p.name: p.column for p in type_.properties if table[p.column].null_count}
    if not with_nulls:
        return {}
    says_null = pc.match_substring(lines, "null")
    any_null = pc.any(says_null).as_py()
    if any_null and (
        _RECORD_KEYS.intersection(with_nulls) or pc.any(pc.and_(says_null, pc.match_substring(lines, "\\"))).as_py()
    ):
        raise NotPlain
    found: dict[str, pa.Array] = {}
    for name, column in with_nulls.items():
        mask = pc.is_valid(table[column]).combine_chunks()
        if any_null:
            mask = pc.or_(mask, pc.match_substring_regex(lines, rf'"{re.escape(name)}"\s*:\s*null'))
        if not pc.all(mask).as_py():
            found[column] = mask
    return found


_ROUTING = pa.schema([("type", pa.string()), ("edge", pa.string())])


def _type_names(lines: _Lines, use_threads: bool) -> pa.Table | None:
    return _parse(lines, _ROUTING, "ignore", use_threads)


def _parse(lines: _Lines, schema: pa.Schema, unexpected: str, use_threads: bool) -> pa.Table | None:
    """The lines as one table, or None when Arrow refuses one of them."""
    ended = _ended(lines.text)
    # Cutting takes one core, and Arrow's reader as many as there are.
    if unexpected == "error" and (not use_threads or pa.cpu_count() < ENOUGH_CORES):
        alike = alike_table(ended, schema)
        if alike is not None:
            return alike
    longest = pc.max(pc.binary_length(lines.text)).as_py() or 0
    try:
        parsed = pj.read_json(
            pa.BufferReader(_in_one_piece(ended)),
            read_options=pj.ReadOptions(use_threads=use_threads, block_size=max(PARSE_BLOCK_BYTES, 2 * longest + 2)),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
    except pa.ArrowInvalid:
        return None
    return parsed if parsed.num_rows == len(lines) else None


def _ended(lines: pa.Array) -> pa.Array:
    """The lines, each with its line feed, in one piece; without a copy where they are so already."""
    _, offsets, data = lines.buffers()
    starts = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    ends = np.frombuffer(data, np.uint8)[starts[1:] - 1]
    if bool((ends == 10).all()):
        return lines
    return pc.binary_join_element_wise(pc.utf8_rtrim(lines, "\r\n"), pa.scalar(""), pa.scalar("\n"))


def _in_one_piece(lines: pa.Array) -> pa.Buffer:
    _, offsets, data = lines.buffers()
    starts = np.frombuffer(offsets, np.int32)
    first, last = int(starts[lines.offset]), int(starts[lines.offset + len(lines)])
    return data.slice(first, last - first)


def _is_text(lines: pa.Array) -> bool:
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _are_objects(lines: pa.Array) -> bool:
    """Whether each line begins with `{` and ends with `}`: then a line that parses is one whole value."""
    if len(lines) == 0:
        return True
    first, last = _edge_bytes(lines)
    if bool((first == ord("{")).all()) and bool((last == ord("}")).all()):
        return True
    trimmed = pc.utf8_trim(lines, " \t\r\n")
    return bool(pc.all(pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))).as_py())


def _edge_bytes(lines: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The first byte of each line, and the last one before its line end. For lines that are not empty."""
    _, offsets, data = lines.buffers()
    starts = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    bytes_ = np.frombuffer(data, np.uint8)
    last = starts[1:] - 1
    for line_end in (10, 13):
        last = last - (bytes_[last] == line_end)
    return bytes_[starts[:-1]], bytes_[last]


def _without_blanks(lines: pa.Array) -> pa.Array:
    if len(lines) == 0 or pc.min(pc.binary_length(lines)).as_py() > 2:
        return lines
    return lines.filter(pc.greater(pc.binary_length(pc.utf8_trim(lines, " \t\r\n")), 0))


def _in_order(parts: list[Rows]) -> Rows:
    """Rows from several steps in the order of the input."""
    if len(parts) == 1:
        return parts[0]
    rows = concat_rows(parts)
    return rows.take(pc.sort_indices(rows.records))
