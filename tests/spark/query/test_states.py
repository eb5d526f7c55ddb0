"""States of parts put together are the aggregate of the whole, to the last bit, however rows are spread. No Spark."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.query import ir
from omnigraph.query.evaluate.aggregates import aggregate
from omnigraph.schema.types import Scalar, ScalarType
from omnigraph.spark.query.groups.group_tasks import GroupStates, MergedStates
from omnigraph.spark.query.groups.states import state_of
from omnigraph.spark.query.needs import stored_type
from omnigraph.spark.types import travelling_type

_F = ir.AggregateFunction
ROWS = 400
GROUPS = 7
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 0.1, 1e16, -1e16, 1.0]
VALUES: dict[Scalar, list[Any]] = {
    Scalar.I32: [-5, 0, 7, 2**31 - 1, -(2**31)],
    Scalar.I64: [-5, 0, 7, 2**53 + 1, 2**55, -(2**55)],
    Scalar.U32: [0, 7, 2**32 - 1],
    Scalar.U64: [0, 7, 2**53 + 1, 2**55],
    Scalar.F32: [0.0, -0.0, math.nan, math.inf, 0.5, -3.25],
    Scalar.F64: FLOATS,
    Scalar.STRING: ["", "a", "é", "z\U0001f600"],
    Scalar.BOOL: [True, False],
}
WANTED = [(function, distinct) for function in (_F.COUNT, _F.MIN, _F.MAX, _F.SUM, _F.AVG) for distinct in (False, True)]


def result_of(function: ir.AggregateFunction, scalar: Scalar) -> Scalar:
    match function:
        case _F.COUNT:
            return Scalar.I64
        case _F.AVG:
            return Scalar.F64
        case _F.SUM if scalar in (Scalar.F32, Scalar.F64):
            return Scalar.F64
        case _F.SUM:
            return Scalar.U64 if scalar in (Scalar.U32, Scalar.U64) else Scalar.I64
    return scalar


def bits(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return value


@pytest.mark.parametrize(("function", "distinct"), WANTED)
@pytest.mark.parametrize("scalar", list(VALUES))
@pytest.mark.parametrize("seed", range(3))
def test_parts_together(function: ir.AggregateFunction, distinct: bool, scalar: Scalar, seed: int) -> None:
    if function in (_F.SUM, _F.AVG) and scalar in (Scalar.STRING, Scalar.BOOL):
        return
    random = np.random.default_rng(seed)
    chosen = random.integers(0, len(VALUES[scalar]), ROWS)
    missing = random.random(ROWS) < 0.15
    values = [None if gone else VALUES[scalar][at] for at, gone in zip(chosen, missing, strict=True)]
    groups = random.integers(0, GROUPS, ROWS)
    # One group has no value at all.
    values = [None if group == 3 else value for value, group in zip(values, groups, strict=True)]
    stored = pa.array(values, stored_type(ScalarType(scalar)))
    wanted = ir.Aggregate(function, ir.Prop("x", "p", ScalarType(scalar)), distinct)
    type_ = ScalarType(result_of(function, scalar))
    expected = aggregate(wanted, stored, groups, GROUPS, stored_type(type_)).to_pylist()
    state = state_of(wanted, type_)
    assert state is not None
    names = tuple(f"s{position}" for position in range(len(state.types)))
    travelling = stored.cast(travelling_type(stored.type))
    made = []
    for part in np.array_split(random.permutation(ROWS), 5):
        batch = pa.RecordBatch.from_arrays([pa.array(groups[part]), travelling.take(pa.array(part))], ["k", "v"])
        made += GroupStates(1, 1, [state], ("k", *names)).run(iter([batch]))
    marked = [part.append_column("something", pa.array([True] * len(part))) for part in made]
    (found,) = MergedStates(1, 1, [state], ("k", "a")).run(iter(marked))
    for column, wished in zip(made[0].columns[1:], state.types, strict=True):
        assert column.type == wished
    assert found.column("a").type == travelling_type(stored_type(type_))
    by_group = dict(zip(found.column("k").to_pylist(), found.column("a").to_pylist(), strict=True))
    answer = [by_group[group] for group in range(GROUPS)]
    if scalar is Scalar.U64 and function is not _F.AVG:
        answer = [None if value is None else int(value) for value in answer]
    assert list(map(bits, answer)) == list(map(bits, expected))


def test_rows_without_repeats_are_not_grouped_again() -> None:
    wanted = ir.Aggregate(_F.SUM, ir.Prop("x", "p", ScalarType(Scalar.F64)))
    state = state_of(wanted, ScalarType(Scalar.F64))
    assert state is not None
    names = ("k", *(f"s{position}" for position in range(len(state.types))))
    batches = [pa.RecordBatch.from_arrays([pa.array(range(300_000)), pa.array([1.0] * 300_000)], ["k", "v"])] * 2
    made = list(GroupStates(1, 1, [state], names).run(iter(batches)))
    assert [len(each) for each in made] == [300_000, 300_000]


def test_what_has_no_state() -> None:
    for function in (_F.MEDIAN, _F.STDDEV, _F.COLLECT):
        wanted = ir.Aggregate(function, ir.Prop("x", "p", ScalarType(Scalar.F64)))
        assert state_of(wanted, ScalarType(Scalar.F64)) is None


def test_wide_rows_weigh_more_than_spark_takes_them_for() -> None:
    from omnigraph.spark.source.task_reads import ReadTable

    schema = pa.schema(
        {"id": pa.string(), "age": pa.int32(), "text": pa.large_string(), "vector": pa.list_(pa.float32(), 768)}
    )

    def weight(*columns: str) -> int:
        table: Any = None
        return ReadTable("", table, columns, None, (), 0, schema).weight

    assert weight("id", "age") == 1
    assert weight("id", "text") > 4
    assert weight("vector") > 100
