"""Speed of the two languages, and of importing the package."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Row, measure
from omnigraph.query.lower.compile import compile_query
from omnigraph.schema.compile import compile_schema

SCHEMA = """
node Person { slug: String @key name: String age: I32? city: String? }
node Company { slug: String @key name: String }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""

QUERY = """
query friends($slug: String, $age: I32, $city: String?) @description("Friends of a person") {
  match {
    $p: Person { slug: $slug }
    $p knows{1,2} $f
    $f.age >= $age and ($f.city = $city or $f.name starts_with "A")
    not { $f worksAt $c }
  }
  return { $f.name as name, $f.age, count($p) as n }
  order { n desc, name }
  limit 20
}
"""


def large_schema(lines: int = 600) -> str:
    """A schema of about that many lines."""
    types = lines // 12
    parts = []
    for index in range(types):
        fields = "\n".join(
            f"    p{n}: {kind}" for n, kind in enumerate(("String", "I64?", "F64?", "Date?", "Bool?", "[String]"))
        )
        parts.append(f"node Type{index} {{\n    slug: String @key\n{fields}\n    @range(p1, 0..100)\n}}")
        parts.append(f"edge Link{index}: Type{index} -> Type{index} @card(0..5)\n")
    return "\n".join(parts)


def run() -> list[Row]:
    """The goals of the language layer."""
    catalog = compile_schema(SCHEMA)
    schema = large_schema()
    return [
        measure("compile a ten-line query", lambda: compile_query(QUERY, catalog), None, "under 5 ms warm", repeats=50),
        measure(
            f"compile a schema of {schema.count(chr(10)) + 1} lines",
            lambda: compile_schema(schema),
            None,
            "under 150 ms",
        ),
        measure("import omnigraph", lambda: _python("import omnigraph"), lambda: _python("pass"), "under 150 ms more"),
    ]


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
