"""The picture of a schema."""

from __future__ import annotations

from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.diagram import schema_diagram


def test_a_schema_as_a_mermaid_class_diagram() -> None:
    source = """
    node Person { slug: String @key age: I32? status: enum(a, b) v: Vector(3) tags: [String] }
    node Empty { }
    edge Knows: Person -> Person
    edge WorksAt: Person -> Empty @card(0..1) { since: Date }
    edge Owns: Person -> Empty @card(1..1)
    edge Likes: Person -> Empty @card(2..)
    """
    assert schema_diagram(compile_schema(source)) == (
        "classDiagram\n"
        "    class Empty\n"
        "    class Person {\n"
        "        String slug$\n"
        "        I32? age\n"
        "        enum status\n"
        "        Vector_3 v\n"
        "        [String] tags\n"
        "    }\n"
        '    Person --> "*" Person : Knows\n'
        '    Person --> "2..*" Empty : Likes\n'
        '    Person --> "1" Empty : Owns\n'
        '    Person --> "0..1" Empty : WorksAt(since)\n'
    )
