"""`auto` picks by size, earlier when a session is active; `local` never imports PySpark."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from omnigraph.config import override
from omnigraph.engines import engine_for_load
from omnigraph.errors import BadRequest
from omnigraph.spark.session.engine import choose_engine


def test_what_is_asked_for_is_taken() -> None:
    assert choose_engine("local", input_bytes=1 << 50) == "local"
    assert choose_engine("spark") == "spark"
    with override(engine="spark"):
        assert choose_engine() == "spark"
        assert choose_engine("auto") == "spark", "what a call leaves open is for the process to say"
        assert choose_engine("local") == "local"


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(BadRequest, match="`sparc` is not an engine"):
        choose_engine("sparc")


def test_auto_decides_by_input_and_by_tables_without_importing_pyspark() -> None:
    code = """if True:
        import sys
        from omnigraph.config import override
        from omnigraph.spark.session.engine import choose_engine
        with override(spark_load_bytes=1000, spark_rows=500):
            assert choose_engine("auto", input_bytes=999, table_rows=499) == "local"
            assert choose_engine("auto", input_bytes=1000) == "spark"
            assert choose_engine("auto", table_rows=500) == "spark"
        assert "pyspark" not in sys.modules
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.spark
def test_auto_prefers_an_active_session_earlier(spark: Any) -> None:
    with override(spark_load_bytes=1000, spark_rows=500, spark_active_factor=0.1):
        assert choose_engine("auto", input_bytes=99) == "local"
        assert choose_engine("auto", input_bytes=100) == "spark"
        assert choose_engine("auto", table_rows=50) == "spark"


@pytest.mark.spark
def test_an_unknown_engine_is_refused_for_a_frame_too(spark: Any) -> None:
    assert engine_for_load("auto", spark.range(1)) == "spark"
    with pytest.raises(BadRequest, match="`sparc` is not an engine"):
        engine_for_load("sparc", spark.range(1))
    with pytest.raises(BadRequest, match="a Spark frame is loaded by the Spark engine"):
        engine_for_load("local", spark.range(1))
