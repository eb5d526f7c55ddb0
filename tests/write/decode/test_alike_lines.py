"""Lines that are cut at their quotes: what comes out is what Arrow's JSON reader makes of them, or nothing."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.json as pj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.write.decode import json_lines
from omnigraph.write.decode.alike_lines import alike_table
from omnigraph.write.decode.json_lines import LineDecoder
from omnigraph.write.decode.line_blocks import as_lines
from omnigraph.write.validate.collector import ViolationCollector

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("id", pa.string()),
        (
            "data",
            pa.struct(
                [
                    ("slug", pa.string()),
                    ("age", pa.int32()),
                    ("big", pa.uint64()),
                    ("score", pa.float64()),
                    ("is", pa.bool_()),
                    ("tags", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)


def read(text: bytes) -> pa.Table | None:
    """The oracle: Arrow's own reader."""
    try:
        return pj.read_json(
            pa.BufferReader(text),
            parse_options=pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid:
        return None


def lines_of(*records: object) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


PEOPLE = [{"type": "P", "data": {"slug": f"p{n}", "age": n, "score": n / 4, "is": n % 3 == 0}} for n in range(50)]


def test_lines_of_one_shape_are_cut() -> None:
    text = lines_of(*PEOPLE)
    found = alike_table(as_lines(text), SCHEMA)
    assert found is not None
    assert found.equals(read(text))
    assert found["data"].combine_chunks().field("age").to_pylist() == list(range(50))


@pytest.mark.parametrize(
    "data",
    [
        {"slug": "é ü 漢"},
        {"slug": ""},
        {"age": -7, "big": 2**64 - 1},
        {"score": 1234567890.5},
        {"score": 5, "is": True},
        {"slug": None, "age": None, "is": None},
        {},
    ],
    ids=str,
)
def test_each_kind_of_value_is_cut(data: dict[str, object]) -> None:
    text = lines_of(*[{"type": "P", "id": f"{n}", "data": data} for n in range(3)])
    found = alike_table(as_lines(text), SCHEMA)
    assert found is not None
    assert found.equals(read(text))


def test_a_value_may_be_missing_by_null_in_some_lines() -> None:
    text = lines_of(*[{"data": {"age": None if n % 2 else n, "score": None if n % 3 else n / 8}} for n in range(9)])
    found = alike_table(as_lines(text), SCHEMA)
    assert found is not None
    assert found.equals(read(text))


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "P", "data": {"slug": "a", "age": 01, "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1., "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": .5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5.1, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 99999999999, "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 1e3, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5, "is": True}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5, "is": 1}}',
        '{"type": "P", "data": {"slug": "a\\n", "age": 1, "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a\tb", "age": 1, "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "old": 1, "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "age": 0.5, "is": true}}',
        '{"type": "P", "data": {"age": 1, "slug": "a", "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": "1", "score": 0.5, "is": true}}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5, "is": true}} ',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5, "is": true}',
        '{"type": "P", "data": ["slug", "a", "age", 1, "score", 0.5, "is", true]}',
        '{"type": "P", "data": {"slug": "a", "age": 1, "score": 0.5, "is": true, "tags": []}}',
    ],
)
@pytest.mark.parametrize("at", [0, 7, 50])
def test_a_line_that_is_built_otherwise_is_left_to_the_reader(line: str, at: int) -> None:
    text = lines_of(*PEOPLE[:at]) + line.encode() + b"\n" + lines_of(*PEOPLE[at:])
    assert alike_table(as_lines(text), SCHEMA) is None


texts = st.text('ab0é漢 :,{}[]"\\\t', max_size=9)
values = st.one_of(
    texts,
    st.integers(-(2**33), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
shapes = st.lists(st.sampled_from(["slug", "age", "big", "score", "is", "tags", "else"]), max_size=5, unique=True)


@given(shapes, st.data(), st.sampled_from([(", ", ": "), (",", ":")]))
def test_whatever_comes_out_is_what_the_reader_makes_of_it(
    keys: list[str], data: st.DataObject, separators: tuple[str, str]
) -> None:
    fitting = {"slug": texts, "age": st.integers(-(2**31), 2**31 - 1), "big": st.integers(0, 2**64 - 1)}
    fitting |= {"score": st.floats(-1e9, 1e9), "is": st.booleans()}
    records = [
        {"type": "P", "data": {key: data.draw(st.one_of(fitting.get(key, values), values)) for key in keys}}
        if data.draw(st.integers(0, 9)) == 0
        else {"type": "P", "data": {key: data.draw(fitting.get(key, values)) for key in keys}}
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    text = "".join(json.dumps(record, ensure_ascii=False, separators=separators) + "\n" for record in records)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text) - 2))
        text = text[:at] + data.draw(st.sampled_from('"{}:,. 019-\\\tneaé')) + text[at + 1 :]
    found = alike_table(as_lines(text.encode()), SCHEMA)
    assert found is None or found.equals(read(text.encode()))


def test_an_exponent_is_part_of_its_number() -> None:
    text = lines_of(*[{"data": {"score": n * 1e-200}} for n in range(1, 5)])
    assert alike_table(as_lines(text), SCHEMA) is None


def test_a_part_of_a_longer_text_is_cut() -> None:
    text = lines_of(*PEOPLE)
    found = alike_table(as_lines(text).slice(10, 20), SCHEMA)
    assert found is not None
    assert found.equals(read(lines_of(*PEOPLE[10:30])))


def test_a_task_of_a_load_cuts_lines_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = compile_schema("node P { slug: String @key  age: I32?  score: F64?  is: Bool? }")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the lines were parsed")

    for text in (lines_of(*PEOPLE), lines_of(*PEOPLE).replace(b"\n", b"\r\n"), lines_of(*PEOPLE).removesuffix(b"\n")):
        with monkeypatch.context() as patched:
            patched.setattr(json_lines.pj, "read_json", _only_one_line(json_lines.pj.read_json, refuse))
            violations = ViolationCollector()
            decoder = LineDecoder(catalog, "file", violations, use_threads=False)
            (rows,) = decoder.decode(as_lines(text))
        assert rows.table["slug"].to_pylist() == [f"p{n}" for n in range(50)]
        assert not violations


def _only_one_line(real: object, refuse: object) -> object:
    def read_json(source: pa.BufferReader, *given: object, **named: object) -> object:
        return real(source, *given, **named) if source.size() < 200 else refuse()  # type: ignore[operator]

    return read_json
