"""A sample of the same random queries on Spark: the same rows as DuckDB."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.hunt import NOT_YET, Coverage, Options, hunt
from tests.differential.script import script
from tests.differential.shrink import shrink

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("seed", [303, 304])
def test_spark_and_duckdb_agree(spark: Any, seed: int) -> None:
    options = Options(queries_per_state=1, ways=(), spark_per_state=1, looking_back=1)
    found = next(hunt(seed, options, coverage := Coverage()), None)
    assert found is None, script(shrink(found, 60))
    assert coverage.answers > 6


@pytest.mark.parametrize("seed", [305, 306])
def test_they_agree_on_groups(spark: Any, seed: int) -> None:
    options = Options(
        queries_per_state=2, without=NOT_YET | {"plain_result"}, ways=(), spark_per_state=2, looking_back=0
    )
    found = next(hunt(seed, options, coverage := Coverage()), None)
    assert found is None, script(shrink(found, 60))
    assert coverage.answers > 6
