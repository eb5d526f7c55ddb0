"""Commands start quickly: what they do not use is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import omnigraph as og

CODE = """
import sys
from omnigraph.cli.main import run
sys.argv = ["omnigraph", "snapshot", sys.argv[1]]
try:
    run()
finally:
    print(sorted({"pandas", "pyspark", "duckdb"} & sys.modules.keys()), file=sys.stderr)
"""


def test_a_command_that_reads_the_manifest_imports_neither_pandas_nor_spark(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    og.init(uri, schema="node Person { slug: String @key }")
    done = subprocess.run([sys.executable, "-c", CODE, uri], capture_output=True, text=True, timeout=120, check=True)
    assert "node:Person" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_pandas_can_be_imported_once_spark_is_there() -> None:
    code = "from omnigraph.cli.quick_start import start_without_pandas as start; start(); import pyspark, pandas"
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=True)
