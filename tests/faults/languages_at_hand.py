"""For the fork server: both languages used once, so that no child reads their parsing tables again.

Nothing here starts a thread or opens a file of a graph, which a fork would not survive.
"""

from __future__ import annotations

from omnigraph.query.lower.compile import compile_file
from omnigraph.schema.compiler.compile import compile_schema
from tests.faults.graph_writers import SCHEMA

compile_file(
    'query w() { insert Person { slug: "a" } update Person set { age: 1 } where slug = "a" }'
    "query d() { delete Person where age > 1 }"
    "query r() { match { $p: Person  $p knows $q } return { $q.slug } }",
    compile_schema(SCHEMA),
)
