"""What importing the package costs and pulls in."""

from __future__ import annotations

import subprocess
import sys

import omnigraph


def _fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_pulls_in_no_heavy_library() -> None:
    heavy = ("lance", "duckdb", "pyspark", "pyarrow", "pandas", "fastapi", "lark", "cedarpy", "httpx", "mcp", "yaml")
    code = f"import omnigraph, sys; print([m for m in {heavy!r} if m in sys.modules])"
    assert _fresh(code).strip() == "[]"


def test_the_local_engine_never_imports_pyspark(tmp_path: object) -> None:
    code = (
        "import omnigraph as og, sys\n"
        f"g = og.init({str(tmp_path)!r} + '/g', schema='node P {{ k: String @key }}')\n"
        "g.load([{'type': 'P', 'data': {'k': 'a'}}], mode='append')\n"
        "g.query('query q() { match { $p: P } return { $p.k } }').rows()\n"
        "g.mutate('query d() { delete P where k = \"a\" }')\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')])"
    )
    assert _fresh(code).strip() == "[]"


def test_the_public_names_are_there() -> None:
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
