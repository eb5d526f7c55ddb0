"""Random syntax trees of the whole language, whether they make sense or not: what can be written can be read back."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from omnigraph.diagnostics import Span
from omnigraph.query.text import syntax
from omnigraph.query.text.tokens import KEYWORDS, SOFT_KEYWORDS
from omnigraph.schema.literals import encode_string

HERE = Span(0, 1, 1, 1)
_PLAIN = ("age", "name", "Person", "knows", "x", "count", "lower")
_RESERVED = {"true", "false", "null"}

plain = st.sampled_from(_PLAIN)
anything = st.sampled_from((*_PLAIN, *KEYWORDS, *SOFT_KEYWORDS))
"""Names that stand where any word is a name: behind `.` and `as`, before `:`."""
variables = st.sampled_from(("p", "f", "g", "_")).map(lambda name: syntax.Variable(name, HERE))
values = st.sampled_from(("p", "f", "a", "b")).map(lambda name: syntax.Variable(name, HERE))
"""`$a` and `$b` are parameters."""


def named(text: str) -> syntax.Name:
    """A name somewhere."""
    return syntax.Name(text, HERE)


def _literal(value: Any) -> syntax.Literal:
    match value:
        case None:
            return syntax.Literal(None, syntax.LiteralKind.NULL, "null", HERE)
        case bool():
            return syntax.Literal(value, syntax.LiteralKind.BOOLEAN, str(value).lower(), HERE)
        case int():
            return syntax.Literal(value, syntax.LiteralKind.INTEGER, str(value), HERE)
        case float():
            return syntax.Literal(value, syntax.LiteralKind.FLOAT, repr(value), HERE)
        case _:
            return syntax.Literal(value, syntax.LiteralKind.STRING, encode_string(value), HERE)


literals = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from((0.5, -2.25, 1e30))
    | st.text(max_size=3)
).map(_literal)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3, bare: bool = True) -> syntax.Expression:
    """Any expression. `bare`: with names that stand alone, as in `return` and in a mutation."""
    inner = expressions(depth - 1, bare)
    leaves = [
        literals,
        values,
        st.builds(
            lambda v, n: syntax.Property(v, named(n), HERE), values, anything | st.sampled_from(("@id", "@type"))
        ),
    ]
    if bare:
        leaves.append(plain.map(lambda name: syntax.Reference(name, HERE)))
    if depth <= 0:
        return draw(st.one_of(leaves))
    pairs = st.tuples(inner, inner)
    composed = [
        st.builds(lambda o, p: syntax.Comparison(o, *p, HERE), st.sampled_from(list(syntax.Operator)), pairs),
        st.builds(lambda o, p: syntax.Arithmetic(o, *p, HERE), st.sampled_from(list(syntax.ArithmeticOperator)), pairs),
        st.builds(lambda i, n: syntax.NullTest(i, n, HERE), inner, st.booleans()),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: syntax.And(tuple(items), HERE)).map(_flat),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: syntax.Or(tuple(items), HERE)).map(_flat),
        inner.map(lambda item: syntax.Not(item, HERE)),
        inner.filter(_not_a_number).map(lambda item: syntax.Negative(item, HERE)),
        st.lists(inner, max_size=3).map(lambda items: syntax.ListLiteral(tuple(items), HERE)),
        st.builds(lambda p: syntax.Index(*p, HERE), pairs),
        st.builds(
            lambda branches, other: syntax.Case(tuple(branches), other, HERE),
            st.lists(pairs, min_size=1, max_size=2),
            inner,
        ),
        _calls(inner),
    ]
    return draw(st.one_of(*leaves, *composed))


def _flat(junction: syntax.And | syntax.Or) -> syntax.Expression:
    """`a and (b and c)` is written as one list by nobody: parts of the same kind are put in."""
    kind = type(junction)
    items = [part for item in junction.items for part in (item.items if isinstance(item, kind) else (item,))]
    return kind(tuple(items), HERE)


def _not_a_number(expression: syntax.Expression) -> bool:
    return not (
        isinstance(expression, syntax.Literal)
        and expression.kind in {syntax.LiteralKind.INTEGER, syntax.LiteralKind.FLOAT}
        and not expression.text.startswith("-")
    )


@st.composite
def _calls(draw: st.DrawFn, inner: st.SearchStrategy[syntax.Expression]) -> syntax.Call:
    args = tuple(draw(st.lists(inner, max_size=2)))
    options = tuple(syntax.Labelled(named(draw(plain)), value, HERE) for value in draw(st.lists(inner, max_size=1)))
    distinct = bool(args) and draw(st.booleans()) and not isinstance(args[0], syntax.Negative)
    if distinct and isinstance(args[0], syntax.Literal) and args[0].text.startswith("-"):
        distinct = False
    return syntax.Call(named(draw(plain)), args, HERE, distinct, options)


@st.composite
def _traversals(draw: st.DrawFn) -> syntax.Traversal:
    edge_variable = draw(st.none() | st.sampled_from(("w", "_")).map(lambda name: syntax.Variable(name, HERE)))
    undirected = draw(st.booleans())
    names = draw(st.just(["*"]) | st.lists(plain, min_size=1, max_size=3))
    bounds = draw(
        st.none() | st.tuples(st.integers(-1, 3), st.integers(0, 4)).map(lambda pair: syntax.Bounds(*pair, HERE))
    )
    where = draw(st.none() | expressions(1))
    path = draw(st.none() | st.just(syntax.Variable("path", HERE)))
    return syntax.Traversal(
        draw(variables),
        named(names[0]),
        draw(variables),
        bounds,
        undirected,
        edge_variable,
        HERE,
        tuple(named(name) for name in names[1:]),
        where,
        path,
    )


def _starts_like_a_walk(expression: syntax.Expression) -> bool:
    """Whether the text starts with a bare variable that is no parameter: there `$p in $f` is an edge."""
    while not isinstance(expression, syntax.Variable):
        inside = syntax.parts(expression)
        starts = syntax.Comparison | syntax.Arithmetic | syntax.And | syntax.Or | syntax.NullTest | syntax.Index
        if not isinstance(expression, starts):
            return False
        expression = inside[0]
    return expression.name not in {"a", "b"}


def _assignments(depth: int) -> st.SearchStrategy[tuple[syntax.PropertyValue, ...]]:
    item = st.builds(lambda n, v: syntax.PropertyValue(named(n), v, HERE), anything, expressions(depth))
    return st.lists(item, min_size=1, max_size=3).map(tuple)


@st.composite
def _clauses(draw: st.DrawFn, depth: int = 2) -> tuple[syntax.Clause, ...]:
    found: list[syntax.Clause] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.integers(0, 6 if depth else 2))
        match kind:
            case 0:
                properties = draw(st.just(()) | _assignments(1))
                found.append(syntax.Bind(draw(variables), named(draw(plain)), properties, HERE, HERE))
            case 1:
                found.append(draw(_traversals()))
            case 2:
                expression = draw(expressions(2, bare=False))
                if not _starts_like_a_walk(expression):
                    found.append(syntax.FilterClause(expression, HERE))
            case 3:
                found.append(syntax.NotBlock(draw(_clauses(depth - 1)), HERE))
            case 4:
                found.append(syntax.ExistsBlock(draw(_clauses(depth - 1)), HERE))
            case 5:
                found.append(syntax.OptionalBlock(draw(_clauses(depth - 1)), HERE))
            case _:
                arms = draw(st.lists(_clauses(depth - 1), min_size=2, max_size=3))
                found.append(syntax.EitherBlock(tuple(syntax.Arm(arm, HERE) for arm in arms), HERE))
    return tuple(found)


_ALIASES = st.none() | anything.filter(lambda name: name not in _RESERVED).map(named)
_PROJECTIONS = st.lists(
    st.builds(lambda e, a: syntax.Projection(e, a, HERE), expressions(2), _ALIASES), min_size=1, max_size=3
).map(tuple)
_ORDER = st.lists(
    st.builds(
        lambda e, d, n: syntax.OrderKey(e, d, HERE, n),
        expressions(2),
        st.none() | st.booleans(),
        st.none() | st.booleans(),
    ),
    max_size=2,
).map(tuple)
_COUNTS = st.none() | st.integers(0, 9).map(_literal) | st.just(syntax.Variable("a", HERE))


@st.composite
def _stages(draw: st.DrawFn) -> syntax.Stage:
    return syntax.Stage(
        draw(_PROJECTIONS),
        draw(st.booleans()),
        draw(st.none() | expressions(2)),
        draw(_ORDER),
        draw(_COUNTS),
        draw(_COUNTS),
        draw(_clauses(1)),
        HERE,
        HERE,
        HERE,
        HERE,
    )


@st.composite
def _reads(draw: st.DrawFn) -> syntax.Read:
    return syntax.Read(
        draw(_clauses()),
        draw(_PROJECTIONS),
        draw(_ORDER),
        draw(_COUNTS),
        HERE,
        HERE,
        HERE,
        HERE,
        tuple(draw(st.lists(_stages(), max_size=2))),
        draw(st.booleans()),
        tuple(draw(st.lists(expressions(1), max_size=2))),
        draw(_COUNTS),
        HERE,
    )


@st.composite
def _mutations(draw: st.DrawFn) -> syntax.Mutation:
    deletes = draw(st.booleans())
    statements: list[syntax.Statement] = []
    for _ in range(draw(st.integers(1, 3))):
        target = draw(plain.map(named) | st.just(syntax.Variable("p", HERE)))
        where = draw(expressions(2) if isinstance(target, syntax.Name) else st.none() | expressions(2))
        if deletes:
            statements.append(syntax.Delete(target, where, HERE))
            continue
        match draw(st.integers(0, 2)):
            case 0:
                statements.append(
                    syntax.Insert(named(draw(plain)), draw(_assignments(2)), HERE, HERE, draw(st.booleans()))
                )
            case 1:
                rows = syntax.Variable("a", HERE)
                statements.append(syntax.InsertRows(named(draw(plain)), rows, draw(st.booleans()), HERE))
            case _:
                statements.append(syntax.Update(target, draw(_assignments(2)), where, HERE, HERE))
    clauses = draw(st.none() | _clauses(1))
    return syntax.Mutation(tuple(statements), HERE, clauses, None if clauses is None else HERE)


@st.composite
def query_trees(draw: st.DrawFn) -> syntax.Query:
    """A query of any shape, with the parameters `$a` and `$b`."""
    types = [syntax.TypeName(named("I64"), None, False, HERE), syntax.TypeName(named("String"), None, True, HERE)]
    parameters = tuple(
        syntax.Parameter(syntax.Variable(name, HERE), type_, draw(st.booleans()), HERE, draw(st.none() | literals))
        for name, type_ in zip("ab", types, strict=True)
    )
    body = draw(_reads() | _mutations())
    return syntax.Query(named("q"), parameters, (), body, HERE)
