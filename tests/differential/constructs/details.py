"""Small things: the entity's own fields, `is null` in words, `matches`, numbers against literals of another kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.differential import tree
from tests.differential.constructs.conditions import OPERATORS, Compare, IsNull, operand
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import written
from tests.differential.sql import Context, expression, meaning
from tests.differential.types import FLOATS, INTEGERS


@dataclass(frozen=True)
class Matches(tree.Expr):
    """`text matches pattern`."""

    text: tree.Expr
    pattern: tree.Expr
    type: str = "Bool"


@written.register
def _(node: Matches) -> str:
    return f"{operand(node.text)} matches {operand(node.pattern)}"


@meaning.register
def _(node: Matches, ctx: Context) -> str:
    return f"regexp_full_match({expression(node.text, ctx)}, {expression(node.pattern, ctx)}, 's')"


@makes("condition", 0.7)
def matches(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type == "String")
    if prop is None:
        return None
    text = q.rng.choice(q.there(prop, scope) or ["a"])
    cut = q.rng.randint(0, len(text))
    pattern = re.escape(text[:cut]).replace("\\ ", " ") + q.rng.choice((".*", "[a-z]*", ".?", "(x|.)+"))
    return Matches(prop, q.constant(pattern, "String"))


@makes("condition", 0.7)
def is_null_in_words(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.nullable)
    return None if prop is None else IsNull(prop, q.chance(0.6), words=True)


@makes("condition", 1)
def unlike_literal(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """An integer against a fraction, a float against a whole number."""
    prop = q.prop(scope, of=lambda each: each.type in INTEGERS or each.type in FLOATS)
    if prop is None:
        return None
    if prop.type in FLOATS:
        other = tree.Literal(q.rng.choice((0, 1, 2, 18)), "I64")
    else:
        large = (9007199254740992.0,) if prop.type.endswith("64") else ()
        other = tree.Literal(q.rng.choice((0.5, 1.0, 1.5, 17.9, *large)), "F64")
    return Compare(q.rng.choice(OPERATORS), prop, other)


@makes("condition", 0.8)
def own_field(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    name = q.rng.choice(scope.named() or [""])
    if not name:
        return None
    fields = ["@id", "@type", *(["@src", "@dst"] if scope.variables[name].startswith("edge:") else [])]
    field = tree.Prop(name, q.rng.choice(fields), "String")
    rows = [row for kind in q.schema.members(scope.variables[name]) for row in q.tables[kind].values()]
    if not rows:
        return None
    row = q.rng.choice(rows)
    value = {"@id": row.id, "@type": row.kind.split(":")[1], "@src": row.src, "@dst": row.dst}[field.name]
    return Compare(q.rng.choice(("=", "=", "!=", "<=")), field, q.constant(value, "String"))


@makes("column", 0.5)
def own_field_as_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    name = q.rng.choice(scope.named() or [""])
    if not name:
        return None
    fields = ["@id", "@type", *(["@src", "@dst"] if scope.variables[name].startswith("edge:") else [])]
    return tree.Prop(name, q.rng.choice(fields), "String")


@dataclass(frozen=True)
class Now(tree.Expr):
    """`now()`: later than every moment of the rows."""

    type: str = "DateTime"


@written.register
def _(node: Now) -> str:
    return "now()"


@meaning.register
def _(node: Now, ctx: Context) -> str:
    return "TIMESTAMP '2100-01-01'"


@makes("condition", 0.3)
def compare_with_now(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type == "DateTime")
    return None if prop is None else Compare(q.rng.choice(OPERATORS), prop, Now())


@makes("condition", 0.3)
def constants_compared(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """A condition that looks at no row."""
    value = q.rng.choice((0, 1))
    return Compare(q.rng.choice(OPERATORS), q.parameter(value, "I64"), tree.Literal(q.rng.choice((0, 1)), "I64"))


@makes("column", 0.3)
def constant_column(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    value, type_ = q.rng.choice(((1, "I64"), ("x", "String"), (True, "Bool"), (0.5, "F64")))
    return q.constant(value, type_)
