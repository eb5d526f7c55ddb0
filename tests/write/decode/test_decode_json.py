"""JSON text to rows: the shapes of records, strict values, and a fast decoder that agrees with the obvious one."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.write.decode.json_lines import LineDecoder
from omnigraph.write.decode.json_text import RecordReader, line_text
from omnigraph.write.decode.line_blocks import as_lines
from omnigraph.write.decode.records import decode_records
from omnigraph.write.rows.rows import Rows, concat_rows
from omnigraph.write.validate.collector import ViolationCollector

CATALOG = compile_schema(
    """
    node Thing {
        key: String @key
        type: String?
        data: String?
        b: Bool?
        i32: I32?
        u32: U32?
        i64: I64?
        u64: U64?
        f32: F32?
        f64: F64?
        day: Date?
        moment: DateTime?
        kind: enum(a, b)?
        vector: Vector(2)?
        words: [String]?
        numbers: [I64]?
        floats: [F32]?
        days: [Date]?
        blob: Blob?
    }
    node Other { key: I64 @key  i32: String? }
    edge Link: Thing -> Thing { i32: I32?  from_: String? }
    """
)


def decode_fast(text: bytes, catalog: Catalog = CATALOG) -> tuple[dict[str, Rows], ViolationCollector]:
    violations = ViolationCollector()
    decoder = LineDecoder(catalog, "file", violations)
    found = decoder.decode(as_lines(text)) if text else []
    return _by_type([*found, *decoder.finish()]), violations


def decode_slowly(text: bytes, catalog: Catalog = CATALOG) -> tuple[dict[str, Rows], ViolationCollector]:
    violations = ViolationCollector()
    reader = RecordReader()
    records = [*reader.feed(map(line_text, text.split(b"\n"))), *reader.finish()]
    return _by_type(decode_records(catalog, records, "file", violations)), violations


def _by_type(parts: list[Rows]) -> dict[str, Rows]:
    found: dict[str, list[Rows]] = {}
    for rows in parts:
        found.setdefault(rows.table_key, []).append(rows)
    return {key: concat_rows(rows) for key, rows in found.items()}


def as_plain(rows: Rows) -> list[dict[str, object]]:
    plain = rows.table.to_pylist()
    for at, row in enumerate(plain):
        row["?record"] = rows.records[at].as_py()
        row["?mentioned"] = sorted(
            name for name in rows.table.column_names if name not in rows.mentioned or rows.mentioned[name][at].as_py()
        )
        row["?failed"] = sorted(name for name, failed in rows.failed.items() if at in failed)
    return plain


def assert_agree(text: bytes) -> None:
    fast, fast_violations = decode_fast(text)
    slow, slow_violations = decode_slowly(text)
    assert {key: as_plain(rows) for key, rows in fast.items()} == {key: as_plain(rows) for key, rows in slow.items()}
    assert fast_violations.counts == slow_violations.counts
    assert fast_violations.violations == slow_violations.violations


def thing(**values: object) -> str:
    return json.dumps({"type": "Thing", "data": {"key": "k", **values}})


def one(text: str) -> dict[str, object]:
    rows, violations = decode_fast(text.encode())
    assert not violations, violations.violations
    return next(iter(rows.values())).table.to_pylist()[0]


def problem(text: str) -> tuple[str, str]:
    _, violations = decode_fast(text.encode())
    assert len(violations.violations) == 1, violations.violations
    found = violations.violations[0]
    return found.kind, found.message


def test_the_order_of_keys_is_free_and_data_may_be_left_out():
    assert one('{"data": {"key": "x"}, "type": "Thing"}')["key"] == "x"
    assert one('{"to": "b", "edge": "Link", "from": "a"}')["dst"] == "b"
    rows, violations = decode_fast(b'{"type": "Thing"}')
    assert rows["node:Thing"].count == 1
    assert not violations


def test_a_property_may_be_called_type_or_data():
    row = one('{"data": {"type": "Other", "data": "d", "key": "x"}, "type": "Thing"}')
    assert (row["type"], row["data"]) == ("Other", "d")


def test_edge_types_are_found_without_regard_to_case():
    assert one('{"edge": "LINK", "from": "a", "to": "b"}')["src"] == "a"


def test_an_id_of_an_end_may_be_an_integer():
    assert one('{"edge": "Link", "from": 7, "to": -3}')["src"] == "7"
    assert problem('{"edge": "Link", "from": 7.5, "to": "b"}')[0] == "wrong_type"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("{", "malformed_record", "not JSON"),
        ('{"type": "Thing", "data": {"key": "a", "key": "b"}}', "malformed_record", "twice"),
        ("[1]", "malformed_record", "a record is an object"),
        ("{}", "malformed_record", 'either "type"'),
        ('{"type": "Thing", "edge": "Link"}', "malformed_record", "not both"),
        ('{"type": "Thing", "extra": 1}', "malformed_record", "`extra`"),
        ('{"type": "Thing", "data": [1]}', "malformed_record", '"data" is an object'),
        ('{"type": "Thang"}', "unknown_type", "did you mean `Thing`"),
        ('{"type": 7}', "unknown_type", "7"),
        ('{"edge": "Thing", "from": "a", "to": "b"}', "unknown_type", "edge type"),
        ('{"type": "Thing", "data": {"kye": "a"}}', "unknown_property", "did you mean `key`"),
        ('{"type": "Thing", "data": {"src": "a"}}', "unknown_property", "src"),
        ('{"edge": "Link", "from": "a"}', "missing_value", "`to`"),
        ('{"edge": "Link", "from": "a", "to": null}', "missing_value", "`to`"),
    ],
)
def test_a_bad_record_is_a_violation_with_its_place(text: str, kind: str, words: str):
    good = thing()
    _, violations = decode_fast("\n".join([good, text, good]).encode())
    (found,) = violations.violations
    assert (found.kind, found.source, found.record) == (kind, "file", 2)
    assert words in found.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i32", 1.5),
        ("i32", 1.0),
        ("i32", "1"),
        ("i32", True),
        ("i32", 2**31),
        ("u32", -1),
        ("i64", 2**63),
        ("i64", "1.5"),
        ("i64", "01"),
        ("i64", " 1"),
        ("u64", -1),
        ("u64", 2**64),
        ("f64", "1"),
        ("f64", True),
        ("f32", 1e39),
        ("b", 1),
        ("b", "true"),
        ("key", 1),
        ("kind", 1),
        ("day", "2026-1-2"),
        ("day", "2026-02-30"),
        ("day", "2026-01-02T00:00:00Z"),
        ("day", 7),
        ("moment", "2026-01-02T00:00:00"),
        ("moment", "2026-01-02T25:00:00Z"),
        ("moment", "2026-01-02"),
        ("vector", [1, "2"]),
        ("vector", [1, None]),
        ("vector", 1),
        ("words", ["a", 1]),
        ("words", "a"),
        ("numbers", [1, 2.5]),
        ("days", ["2026-13-01"]),
        ("blob", "not base64!"),
        ("blob", {"base64": 1}),
        ("blob", {"hex": "00"}),
        ("blob", 1),
    ],
)
def test_a_value_of_another_type_is_never_cast(name: str, value: object):
    kind, message = problem(thing(**{name: value}))
    assert kind == "wrong_type"
    assert f"`{name}`" in message


def test_a_vector_of_another_dimension_has_a_kind_of_its_own():
    assert problem(thing(vector=[1, 2, 3])) == ("vector_dimension", "`vector` must have 2 numbers, not 3")


def test_values_come_as_json_says():
    import datetime

    row = one(
        thing(
            i64="9007199254740993",
            u64="18446744073709551615",
            f32=0.1,
            f64=1,
            day="2026-01-02",
            moment="2026-01-02T03:04:05.678+02:00",
            vector=[1, 2.5],
            words=[],
            numbers=["1", 2],
            blob={"base64": "aGk="},
        )
    )
    assert row["i64"] == 9007199254740993
    assert row["u64"] == 2**64 - 1
    assert row["f64"] == 1.0
    assert row["day"] == datetime.date(2026, 1, 2)
    assert row["moment"] == datetime.datetime(2026, 1, 2, 1, 4, 5, 678000, tzinfo=datetime.UTC)
    assert row["vector"] == [1.0, 2.5]
    assert row["words"] == []
    assert row["numbers"] == [1, 2]
    assert row["blob"] == b"hi"
    assert one(thing(blob="aGk="))["blob"] == b"hi"
    assert one(thing(blob="data:text/plain;base64,aGk="))["blob"] == b"hi"


def test_what_a_record_mentions_is_told_from_what_it_leaves_out():
    lines = "\n".join([thing(i32=None), thing(i32=1), thing(), thing(words=["null"])])
    rows = decode_fast(lines.encode())[0]["node:Thing"]
    assert rows.mentioned["i32"].to_pylist() == [True, True, False, False]


def test_a_stream_of_pretty_printed_values_is_read():
    text = (
        "\n".join(json.dumps(json.loads(thing(i32=n)), indent=2) for n in range(3)) + "\n" + thing(i32=3) + thing(i32=4)
    )
    rows, violations = decode_fast(text.encode())
    assert not violations
    assert rows["node:Thing"].table["i32"].to_pylist() == [0, 1, 2, 3, 4]
    assert rows["node:Thing"].records.to_pylist() == [1, 2, 3, 4, 5]


def test_reading_goes_on_after_a_broken_record():
    pretty = json.dumps(json.loads(thing(i32=1)), indent=2)
    text = "\n".join(
        [thing(), '{"type": "Thing", "data": {', thing(), pretty.replace(":", "", 1), thing(), "nonsense", thing()]
    )
    rows, violations = decode_fast(text.encode())
    assert rows["node:Thing"].count == 4
    assert [v.record for v in violations.violations] == [2, 4, 6]


def test_bytes_that_are_no_text_are_one_bad_record():
    text = thing().encode() + b'\n{"type": "Thing", "data": {"key": "\xff"}}\n' + thing().encode()
    rows, violations = decode_fast(text)
    assert rows["node:Thing"].count == 2
    assert [(v.kind, v.record) for v in violations.violations] == [("malformed_record", 2)]


_texts = st.text(max_size=6) | st.sampled_from(
    ["null", '"', "\\", "a\nb", "\u0000", "2026-01-02", "1", "-0", "true", "{}", '"type": null', "ä😀", "\ud800"]
)
_numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [2**31, -(2**31), 2**31 - 1, 2**32, 2**63, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, 10**30, 2**53 + 1, 2**24 + 1]
    ),
    st.floats(),
    st.sampled_from([1e39, -0.0, 1.5, 5e-324, 3.4028235e38, 1e-60, 7.0064923216240853e-46]),
)
_leaves = st.none() | st.booleans() | _numbers | _texts
_values = st.one_of(
    _leaves,
    st.lists(_leaves, max_size=3),
    st.dictionaries(st.sampled_from(["base64", "a"]), _leaves, max_size=2),
    st.sampled_from(
        [
            "2026-01-02",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.5Z",
            "2026-01-02T03:04:05.123456+01:00",
            "aGk=",
            "a",
        ]
    ),
)
_fitting = {
    "key": _texts,
    "type": _texts,
    "data": _texts,
    "b": st.booleans(),
    "i32": st.integers(-5, 5),
    "u32": st.integers(0, 5),
    "i64": st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**63), 2**63 - 1).map(str),
    "u64": st.integers(0, 2**64 - 1) | st.integers(0, 2**64 - 1).map(str),
    "f32": st.floats(width=32, allow_nan=False, allow_infinity=False) | st.integers(-(2**30), 2**30),
    "f64": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60),
    "day": st.dates().map(str),
    "moment": st.datetimes().map(lambda d: d.isoformat() + "Z"),
    "kind": st.sampled_from(["a", "b", "c"]),
    "vector": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    "words": st.lists(_texts, max_size=3),
    "numbers": st.lists(st.integers(-5, 5), max_size=3),
    "floats": st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=2),
    "days": st.lists(st.dates().map(str), max_size=2),
    "blob": st.sampled_from(["aGk=", "base64:aGk=", "", "data:,x", "file:///not/there", "http://b/k"]),
}
_data = st.one_of(
    st.fixed_dictionaries({}, optional=_fitting),
    st.fixed_dictionaries({}, optional={name: st.none() | values for name, values in _fitting.items()}),
    st.dictionaries(st.sampled_from([*_fitting, "id", "src", "zz"]), _values, max_size=4),
)
_records = st.one_of(
    st.fixed_dictionaries({"type": st.just("Thing")}, optional={"data": _data, "id": _texts | st.none()}),
    st.fixed_dictionaries({"type": st.just("Other"), "data": st.fixed_dictionaries({"key": _values, "i32": _values})}),
    st.fixed_dictionaries(
        {"edge": st.sampled_from(["Link", "link"]), "from": _texts | st.integers(), "to": _texts | st.integers()},
        optional={"data": st.fixed_dictionaries({}, optional={"i32": st.integers(0, 9) | st.none(), "from_": _texts})},
    ),
    st.dictionaries(st.sampled_from(["type", "edge", "from", "to", "data", "x"]), _values, max_size=4),
    _values,
)


def _line(record: object, spaced: bool) -> bytes:
    text = json.dumps(record, ensure_ascii=spaced, separators=(", ", ": ") if spaced else (",", ":"))
    return text.encode("utf-8", "surrogatepass")


_lines = st.one_of(
    st.builds(_line, _records, st.booleans()),
    st.sampled_from(
        [b"", b"  ", b"{", b'{"type": "Thing"', b"}", b"nonsense", b'{"type":"Thing"}{"type":"Other"}', b"\xff"]
    ),
    st.builds(lambda record: json.dumps(record, indent=1).encode("utf-8", "surrogatepass"), _records),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_lines, max_size=12), st.sampled_from([b"\n", b"\r\n"]))
def test_the_fast_decoder_agrees_with_the_obvious_one(lines: list[bytes], separator: bytes):
    assert_agree(separator.join(lines))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.builds(_line, st.builds(lambda data: {"type": "Thing", "data": data}, _data), st.booleans()), max_size=200
    )
)
def test_the_fast_decoder_agrees_on_blocks_of_one_type(lines: list[bytes]):
    assert_agree(b"\n".join(lines))


def test_clean_lines_never_reach_the_slow_decoder(monkeypatch: pytest.MonkeyPatch):
    lines = [thing(i32=n, f64=n / 3, day="2026-01-02", vector=[n, 1]) for n in range(500)]
    lines += [json.dumps({"edge": "Link", "from": "k", "to": "k", "data": {"i32": None}}) for _ in range(500)]

    def never(*_: object) -> None:
        raise AssertionError("a clean line was decoded slowly")

    monkeypatch.setattr(
        "omnigraph.write.decode.json_lines.decode_records", lambda c, records, *_: list(map(never, records))
    )
    rows, _ = decode_fast("\n".join(lines).encode())
    assert {key: part.count for key, part in rows.items()} == {"node:Thing": 500, "edge:Link": 500}


def test_lines_without_line_feeds_are_taken_too():
    violations = ViolationCollector()
    decoder = LineDecoder(CATALOG, "split", violations, use_threads=False)
    (rows,) = decoder.decode(pa.array([thing(i32=1), thing(i32=2)]))
    assert rows.table["i32"].to_pylist() == [1, 2]


def test_a_block_of_one_type_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.write.decode import json_lines

    read: list[int] = []
    parse = json_lines._parse

    def counted(lines: json_lines._Lines, *how: object) -> pa.Table | None:
        read.append(len(lines))
        return parse(lines, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(json_lines, "_parse", counted)
    things = b"".join(b'{"type": "Thing", "data": {"key": "%d", "i32": 1}}\n' % n for n in range(100))
    links = b"".join(b'{"edge": "Link", "from": "%d", "to": "1"}\n' % n for n in range(100))
    decoder = LineDecoder(CATALOG, "file", ViolationCollector())
    found = _by_type([*decoder.decode(as_lines(things)), *decoder.decode(as_lines(links)), *decoder.finish()])
    assert {key: rows.count for key, rows in found.items()} == {"node:Thing": 100, "edge:Link": 100}
    assert read == [100, 100], "the first line says what the others are"


def test_a_number_that_vanishes_is_found_among_lines_with_other_zeros() -> None:
    lines = [b'{"type": "Thing", "data": {"key": "e-%d", "f64": %s}}\n' % (n, b"0.0") for n in range(200)]
    lines[150] = b'{"type": "Thing", "data": {"key": "150", "f64": 1e-400}}\n'
    text = b"".join(lines)
    fast, slow = decode_fast(text), decode_slowly(text)
    assert [violation.record for violation in fast[1].violations] == [151]
    assert [str(violation) for violation in fast[1].violations] == [str(violation) for violation in slow[1].violations]
    assert fast[0]["node:Thing"].count == slow[0]["node:Thing"].count
