"""The forms of a result on page 02."""

from __future__ import annotations

import datetime
import json
import pickle

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest
from omnigraph.query.ir import ResultColumn
from omnigraph.read.result.result import Result
from omnigraph.schema.types import Scalar, ScalarType
from tests.read.asking import graph, person, run

EVERYTHING = graph(
    [
        person(
            "ada",
            age=36,
            rate=0.99,
            score=0.1,
            level="high",
            tags=["x", "y"],
            born=datetime.date(2026, 1, 2),
            seen=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
            bio='says "hi", twice\nor so',
            big=2**64 - 1,
            spot=[0.1, 1.0],
        ),
        person("bob", active=False, seen=datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=datetime.UTC)),
    ]
)
NAMES = ("name", "age", "rate", "score", "level", "tags", "born", "seen", "bio", "big", "active", "spot")


def result(*names: str) -> Result:
    return run(EVERYTHING, "match { $p: Person } return { " + ", ".join(f"$p.{n} as {n}" for n in names) + " }")


def test_rows_are_python_values():
    ada, bob = result(*NAMES).rows()
    assert ada["rate"] == 0.99
    assert ada["spot"] == [0.1, 1.0]
    assert ada["born"] == datetime.date(2026, 1, 2)
    assert ada["seen"] == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert ada["big"] == 2**64 - 1
    assert bob["tags"] is None


def test_json_has_f32_at_its_width_and_dates_as_iso_text():
    ada, bob = json.loads(result(*NAMES).to_json())
    assert '"rate":0.99,' in result(*NAMES).to_json()
    assert ada["born"] == "2026-01-02"
    assert ada["seen"] == "2026-01-02T03:04:05Z"
    assert bob["seen"] == "2026-01-02T03:04:05.600000Z"
    assert list(ada) == list(NAMES)


def test_json_writes_integers_that_javascript_would_round_as_text_on_request():
    plain, safe = (json.loads(result("big", "age").to_json(js_safe_ints=safe))[0] for safe in (False, True))
    assert plain == {"big": 2**64 - 1, "age": 36}
    assert safe == {"big": "18446744073709551615", "age": 36}


def test_json_lines_have_one_object_each():
    lines = result("name", "age").to_jsonl().splitlines()
    assert [json.loads(line) for line in lines] == [{"name": "ada", "age": 36}, {"name": "bob", "age": None}]


def test_csv_quotes_and_leaves_nulls_empty():
    assert result("name", "bio", "tags", "active", "seen").to_csv() == (
        "name,bio,tags,active,seen\n"
        'ada,"says ""hi"", twice\nor so","[""x"",""y""]",true,2026-01-02T03:04:05Z\n'
        "bob,,,false,2026-01-02T03:04:05.600000Z\n"
    )


def test_text_table_fits_the_width_and_counts_rows():
    text = result("name", "age", "bio").to_text(width=30)
    lines = text.splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert lines[0].split() == ["name", "│", "age", "│", "bio"]
    assert "…" in text
    assert "\\n" in result("bio").to_text(width=200)
    assert lines[-1] == "2 rows"


def test_text_table_counts_wide_characters_as_two_cells():
    lines = run(
        graph([person("日本", bio="x"), person("ab", bio="y")]), "match { $p: Person } return { $p.name, $p.bio }"
    )
    assert lines.to_text(width=80).splitlines()[2:4] == ["ab     │ y", "日本   │ x"]


def test_key_value_blocks():
    assert result("name", "age").to_kv() == "name: ada\nage: 36\n\nname: bob\nage: null\n"


def test_arrow_has_the_types_of_the_schema():
    table = result(*NAMES).to_arrow()
    assert table.schema.field("age").type == pa.int32()
    assert table.schema.field("rate").type == pa.float32()
    assert table.schema.field("seen").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("spot").type == pa.list_(pa.float32(), 2)
    assert table.schema.field("name").type == pa.utf8()


def test_frames():
    found = result("name", "age")
    assert found.to_pandas()["name"].tolist() == ["ada", "bob"]
    assert found.to_polars()["age"].to_list() == [36, None]


def test_a_pandas_frame_keeps_every_bit_and_every_kind():
    table = result(*NAMES).to_arrow()
    frame = result(*NAMES).to_pandas()
    assert frame["big"].tolist()[0] == 2**64 - 1
    assert pa.Table.from_pandas(frame, preserve_index=False).cast(table.schema).equals(table)


def test_a_result_is_an_arrow_stream():
    found = result("name", "big")
    assert pa.table(found).equals(found.to_arrow())
    assert pa.RecordBatchReader.from_stream(found).read_all().num_rows == 2


def test_rows_by_place():
    found = result("name", "age")
    assert found[0] == {"name": "ada", "age": 36}
    assert found[-1]["name"] == "bob"
    for place in (2, -3):
        with pytest.raises(IndexError, match="2 rows"):
            found[place]


def test_a_result_pickles_with_its_rows():
    found = pickle.loads(pickle.dumps(result(*NAMES)))
    assert found.rows() == result(*NAMES).rows()
    assert found.columns == result(*NAMES).columns
    assert found.schema == result(*NAMES).schema


def test_columns_length_iteration_and_single_values():
    found = result("name", "age")
    assert found.column_names == ("name", "age")
    assert [str(column.type) for column in found.columns] == ["String", "I32"]
    assert len(found) == 2
    assert [row["name"] for row in found] == ["ada", "bob"]
    assert run(EVERYTHING, "match { $p: Person } return { count($p) as n }").scalar() == 2
    with pytest.raises(BadRequest, match="exactly one row"):
        found.one()


def test_notebook_table_escapes_markup():
    shown = run(graph([person("<b>")]), "match { $p: Person } return { $p.name }")._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown.replace("<body>", "")


def test_spark_needs_the_spark_package(monkeypatch):
    monkeypatch.setattr(Result, "to_spark_hook", None)
    with pytest.raises(BadRequest, match=r"omnigraph\.spark"):
        result("name").to_spark()


def test_large_results_are_made_batch_by_batch():
    made: list[tuple[int, int]] = []

    def make_rows(start: int, stop: int) -> pa.RecordBatch:
        made.append((start, stop))
        return pa.RecordBatch.from_arrays([pa.array(range(start, stop), pa.int64())], names=["n"])

    column = ResultColumn("n", ScalarType(Scalar.I64))
    lazy = Result([column], pa.schema([("n", pa.int64())]), 1_000_000, make_rows)
    assert len(lazy) == 1_000_000
    assert made == []
    next(iter(lazy.batches(rows=10)))
    assert made == [(0, 10)]
    assert next(lazy.jsonl()) == '{"n":0}'
    assert len(made) == 2


def test_a_result_of_many_batches_is_whole():
    people = graph([person(f"p{n:06d}", age=n) for n in range(70_000)])
    found = run(people, "match { $p: Person } return { $p.age }")
    assert len(list(found.batches())) == 2
    assert found.to_arrow().column(0).to_pylist() == list(range(70_000))
