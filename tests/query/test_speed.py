"""Compiling a query is cheap, and importing the language costs nothing but itself."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.query.sample import CATALOG, compiled

QUERY = """
query friends_in($name: String, $least: I32?) @description("Friends of a person") {
  match {
    $p: Person { name: $name }
    $p knows{1,2} $f
    $f worksAt $c
    $f.age >= $least and not ($f.tags contains "away")
    not { $f blockedBy $p }
  }
  return { $f.name, $c.name as company, count($f) as n }
  order { n desc, $f.name }
  limit 20
}
"""


def test_a_query_of_ten_lines_compiles_within_five_milliseconds_when_warm() -> None:
    assert CATALOG.nodes
    compiled(QUERY)
    times = []
    for _ in range(30):
        start = time.perf_counter()
        compiled(QUERY)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005


def test_importing_the_compiler_imports_no_heavy_library() -> None:
    program = (
        "import sys, omnigraph.query.lower.compile, omnigraph.query.bind, omnigraph.query.lint; "
        "import omnigraph.query.text.format; "
        "print([name for name in ('lark', 'lance', 'duckdb', 'pyspark', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_threads_can_compile_at_the_same_time() -> None:
    expected = compiled(QUERY)
    with ThreadPoolExecutor(8) as pool:
        assert all(query == expected for query in pool.map(compiled, [QUERY] * 64))
