"""What a caller of the data source is told: the message, without the lines of ours that raised it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, InternalError

pytestmark = pytest.mark.spark

SCHEMA = "node Person { slug: String @key  name: String }\nedge Knows: Person -> Person"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    with og.init(tmp_path_factory.mktemp("plain") / "graph.omni", schema=SCHEMA) as graph:
        graph.load([{"slug": "a", "name": "A"}], mode="append", type="Person")
        return graph.uri


def told(use: Any) -> str:
    with pytest.raises(Exception) as failure:
        use()
    return str(failure.value)


def test_refusals_come_without_a_traceback(spark: Any, uri: str, tmp_path: Path) -> None:
    from omnigraph.spark.source.datasource import register

    register(spark)
    read = spark.read.format("omnigraph")
    row = spark.createDataFrame([("a", "A")], "slug string, name string")
    ends = row.selectExpr("slug AS a", "slug AS b")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_text("no record")
    lines = spark.readStream.text(str(tmp_path / "in")).writeStream.format("omnigraph")
    lines = lines.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
    for use, message in [
        (lambda: read.load(uri), 'BadRequest: Say which type: .option("type", "Person")'),
        (lambda: read.option("type", "Persn").load(uri), "NotFound: the schema has no type `Persn`; did you mean"),
        (lambda: row.write.format("omnigraph").mode("append").save(uri), "BadRequest: Say of which type the rows are"),
        (
            lambda: row.write.format("omnigraph").option("type", "Person").mode("append").save(uri),
            "KeyConflict: the load breaks rules of the schema, nothing was published: 1 violation (1 existing_id)",
        ),
        (
            lambda: ends.write.format("omnigraph").options(type="Knows", map="a").mode("append").save(uri),
            "BadRequest: The option `map` is column=property, with commas between pairs, and `a` is no such pair.",
        ),
        (lambda: lines.start(uri).awaitTermination(), "breaks rules of the schema"),
    ]:
        text = told(use)
        assert message in text
        assert "Traceback" not in text
        assert ".py" not in text


def test_what_nobody_expected_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.spark.source.plain_errors import HIDE, IN_A_WORKER, plain_errors, plain_errors_of_rows

    @plain_errors
    def fails(error: Exception) -> None:
        raise error

    @plain_errors_of_rows
    def fails_behind_a_row(error: Exception) -> Any:
        yield 1
        raise error

    monkeypatch.delenv(HIDE, raising=False)
    for use in (fails, lambda error: list(fails_behind_a_row(error))):
        monkeypatch.delenv(IN_A_WORKER, raising=False)
        with pytest.raises(BadRequest):  # in the process that has the session nothing is hidden from anybody
            use(BadRequest("no"))
        monkeypatch.setenv(IN_A_WORKER, "PYTHON_WORKER")
        for unexpected in (InternalError("?"), ValueError("?")):
            with pytest.raises(type(unexpected)):
                use(unexpected)
        assert HIDE not in os.environ
        with pytest.raises(BadRequest):
            use(BadRequest("no"))
        assert os.environ.pop(HIDE) == "1"
