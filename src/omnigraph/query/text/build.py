"""From what the grammar recognises to the syntax tree, as the parser goes along."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lark import Token, Transformer, v_args

from omnigraph.diagnostics import Diagnostic, Span
from omnigraph.query.text import syntax
from omnigraph.query.text.syntax import LiteralKind
from omnigraph.query.text.tokens import span_of
from omnigraph.schema.floats import Underflow, parse_float
from omnigraph.schema.literals import BadEscape, decode_string

MAX_LIST_ITEMS = 100_000
"""Items that are written out in one list."""

MAX_INTEGER_DIGITS = 30
"""More digits than any type holds; Python itself refuses to read numbers of thousands of digits."""


_NUMBERS = frozenset({LiteralKind.INTEGER, LiteralKind.FLOAT})


class SyntaxProblem(Exception):
    """A construct that the grammar takes and the language does not."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic("Q000", message, span, hint=hint)


def _cover(first: Span, last: Span) -> Span:
    return Span(first.start, last.end, first.line, first.column)


def _variable(token: Token) -> syntax.Variable:
    return syntax.Variable(token.value[1:], span_of(token))


@v_args(inline=True)
class SyntaxBuilder(Transformer[Any, Any]):
    """One method per rule of grammar.lark."""

    # --- names and literals

    def word(self, token: Token) -> syntax.Name:
        return syntax.Name(token.value, span_of(token))

    def name(self, item: syntax.Name | Token) -> syntax.Name:
        return item if isinstance(item, syntax.Name) else self.word(item)

    def string(self, token: Token) -> syntax.Literal:
        return _string(token)

    def integer(self, token: Token) -> syntax.Literal:
        return syntax.Literal(_integer(token), LiteralKind.INTEGER, token.value, span_of(token))

    def float(self, token: Token) -> syntax.Literal:
        value = parse_float(token.value)
        if math.isinf(value):
            raise SyntaxProblem("the number is too large for a float", span_of(token))
        if isinstance(value, Underflow):
            raise SyntaxProblem("the number is too small for a float: it would become 0", span_of(token))
        return syntax.Literal(value, LiteralKind.FLOAT, token.value, span_of(token))

    def boolean(self, token: Token) -> syntax.Literal:
        return syntax.Literal(token.type == "TRUE", LiteralKind.BOOLEAN, token.value, span_of(token))

    def null(self, token: Token) -> syntax.Literal:
        return syntax.Literal(None, LiteralKind.NULL, token.value, span_of(token))

    def list(self, opening: Token, *rest: Any) -> syntax.ListLiteral:
        items = tuple(item for item in rest[:-1] if item is not None)
        if len(items) > MAX_LIST_ITEMS:
            message = f"a list of {len(items)} items; at most {MAX_LIST_ITEMS} are allowed"
            raise SyntaxProblem(message, span_of(opening), "pass the list as a parameter")
        return syntax.ListLiteral(items, _cover(span_of(opening), span_of(rest[-1])))

    # --- expressions

    def variable(self, token: Token) -> syntax.Variable:
        return _variable(token)

    def property(self, variable: Token, name: syntax.Name) -> syntax.Property:
        return syntax.Property(_variable(variable), name, _cover(span_of(variable), name.span))

    def own_property(self, variable: Token, at: Token, name: syntax.Name) -> syntax.Property:
        own = syntax.Name(f"@{name.text}", _cover(span_of(at), name.span))
        return syntax.Property(_variable(variable), own, _cover(span_of(variable), name.span))

    def own(self, at: Token, name: syntax.Name) -> syntax.Reference:
        return syntax.Reference(f"@{name.text}", _cover(span_of(at), name.span))

    def reference(self, word: syntax.Name) -> syntax.Reference:
        return syntax.Reference(word.text, word.span)

    def call(self, function: syntax.Name, distinct: Token | None, *rest: Any) -> syntax.Call:
        given = [arg for arg in rest[:-1] if arg is not None]
        labelled = [arg for arg in given if isinstance(arg, syntax.Labelled)]
        for arg in given[: -len(labelled)] if labelled else ():
            if isinstance(arg, syntax.Labelled):
                raise SyntaxProblem("arguments with a name come behind those without one", arg.span)
        args = tuple(arg for arg in given if not isinstance(arg, syntax.Labelled))
        span = _cover(function.span, span_of(rest[-1]))
        if distinct is not None and not args:
            raise SyntaxProblem("`distinct` needs a value behind it", span_of(distinct))
        return syntax.Call(function, args, span, distinct is not None, tuple(labelled))

    def labelled(self, label: Token, value: syntax.Expression) -> syntax.Labelled:
        name = syntax.Name(label.value, span_of(label))
        return syntax.Labelled(name, value, _cover(name.span, value.span))

    def arithmetic(self, left: syntax.Expression, sign: Token, right: syntax.Expression) -> syntax.Arithmetic:
        return syntax.Arithmetic(syntax.ArithmeticOperator(sign.value), left, right, _cover(left.span, right.span))

    def negative(self, sign: Token, item: syntax.Expression) -> syntax.Expression:
        span = _cover(span_of(sign), item.span)
        if isinstance(item, syntax.Literal) and item.kind in _NUMBERS and not item.text.startswith("-"):
            assert isinstance(item.value, int | float)
            return syntax.Literal(-item.value, item.kind, f"-{item.text}", span)
        return syntax.Negative(item, span)

    def index(self, item: syntax.Expression, _open: Token, index: syntax.Expression, closing: Token) -> syntax.Index:
        return syntax.Index(item, index, _cover(item.span, span_of(closing)))

    def branch(
        self, _when: Token, condition: syntax.Expression, _then: Token, value: syntax.Expression
    ) -> tuple[syntax.Expression, syntax.Expression]:
        return condition, value

    def case(self, keyword: Token, *rest: Any) -> syntax.Case:
        *branches, _else, otherwise, closing = rest
        return syntax.Case(tuple(branches), otherwise, _cover(span_of(keyword), span_of(closing)))

    def null_test(self, item: syntax.Expression, _is: Token, negation: Token | None, null: Token) -> syntax.NullTest:
        return syntax.NullTest(item, negation is not None, _cover(item.span, span_of(null)))

    def parenthesised(self, expression: syntax.Expression) -> syntax.Expression:
        return expression

    def operator(self, token: Token) -> syntax.Operator:
        return syntax.Operator(token.value)

    def comparison(
        self, left: syntax.Expression, operator: syntax.Operator, right: syntax.Expression
    ) -> syntax.Comparison:
        return syntax.Comparison(operator, left, right, _cover(left.span, right.span))

    def negation(self, keyword: Token, item: syntax.Expression) -> syntax.Not:
        return syntax.Not(item, _cover(span_of(keyword), item.span))

    def conjunction(self, *items: syntax.Expression) -> syntax.And:
        return syntax.And(items, _cover(items[0].span, items[-1].span))

    def expression(self, *items: syntax.Expression) -> syntax.Or:
        return syntax.Or(items, _cover(items[0].span, items[-1].span))

    # --- match

    def property_value(self, name: syntax.Name, value: syntax.Expression) -> syntax.PropertyValue:
        return syntax.PropertyValue(name, value, _cover(name.span, value.span))

    def properties(self, opening: Token, *rest: Any) -> tuple[tuple[syntax.PropertyValue, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(opening), span_of(rest[-1]))

    def bind(
        self, variable: Token, type_: syntax.Name, properties: tuple[tuple[syntax.PropertyValue, ...], Span] | None
    ) -> syntax.Bind:
        values, last = properties if properties is not None else ((), type_.span)
        body = None if properties is None else last
        return syntax.Bind(_variable(variable), type_, values, _cover(span_of(variable), last), body)

    def bounds(self, opening: Token, *rest: Any) -> syntax.Bounds:
        low_sign, low, comma, high_sign, high, closing = rest
        span = _cover(span_of(opening), span_of(closing))
        minimum = _bound(low_sign, low)
        maximum = minimum if comma is None else _bound(high_sign, high)
        return syntax.Bounds(minimum, maximum, span)

    def edges(self, *names: syntax.Name | Token) -> tuple[syntax.Name, ...]:
        return tuple(each if isinstance(each, syntax.Name) else self.word(each) for each in names)

    def condition(self, _open: Token, expression: syntax.Expression, _close: Token) -> syntax.Expression:
        return expression

    def directed(
        self, names: tuple[syntax.Name, ...], bounds: syntax.Bounds | None, where: syntax.Expression | None
    ) -> _Edge:
        return _Edge(names, bounds, False, None, where)

    def undirected(
        self, _open: Token, names: tuple[syntax.Name, ...], inner: syntax.Bounds | None, *rest: Any
    ) -> _Edge:
        _close, outer, where = rest
        return _Edge(names, _one_bounds(inner, outer), True, None, where)

    def directed_binding(
        self,
        variable: Token,
        names: tuple[syntax.Name, ...],
        bounds: syntax.Bounds | None,
        where: syntax.Expression | None,
    ) -> _Edge:
        return _Edge(names, bounds, False, _variable(variable), where)

    def undirected_binding(
        self, variable: Token, _open: Token, names: tuple[syntax.Name, ...], inner: syntax.Bounds | None, *rest: Any
    ) -> _Edge:
        _close, outer, where = rest
        return _Edge(names, _one_bounds(inner, outer), True, _variable(variable), where)

    def traversal(self, source: Token, edge: _Edge, target: Token, path: Token | None) -> syntax.Traversal:
        return syntax.Traversal(
            _variable(source),
            edge.names[0],
            _variable(target),
            edge.bounds,
            edge.undirected,
            edge.variable,
            _cover(span_of(source), span_of(target if path is None else path)),
            edge.names[1:],
            edge.where,
            None if path is None else _variable(path),
        )

    def not_block(self, keyword: Token, *rest: Any) -> syntax.NotBlock:
        return syntax.NotBlock(tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1])))

    def exists_block(self, keyword: Token, *rest: Any) -> syntax.ExistsBlock:
        return syntax.ExistsBlock(tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1])))

    def optional_block(self, keyword: Token, *rest: Any) -> syntax.OptionalBlock:
        return syntax.OptionalBlock(tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1])))

    def arm(self, opening: Token, *rest: Any) -> syntax.Arm:
        return syntax.Arm(tuple(rest[:-1]), _cover(span_of(opening), span_of(rest[-1])))

    def either_block(self, keyword: Token, *arms: syntax.Arm) -> syntax.EitherBlock:
        return syntax.EitherBlock(arms, _cover(span_of(keyword), arms[-1].span))

    def filter(self, expression: syntax.Expression) -> syntax.FilterClause:
        return syntax.FilterClause(expression, expression.span)

    def match(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Clause, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    # --- the rest of a read

    def projection(self, expression: syntax.Expression, alias: syntax.Name | None) -> syntax.Projection:
        last = expression.span if alias is None else alias.span
        return syntax.Projection(expression, alias, _cover(expression.span, last))

    def projections(self, *projections: syntax.Projection) -> tuple[syntax.Projection, ...]:
        return projections

    def return_block(
        self, keyword: Token, distinct: Token | None, projections: tuple[syntax.Projection, ...], closing: Token
    ) -> _Projected:
        return _Projected(projections, distinct is not None, _cover(span_of(keyword), span_of(closing)))

    def order_key(self, expression: syntax.Expression, direction: Token | None, *rest: Any) -> syntax.OrderKey:
        nulls, place = rest
        last = place or direction
        return syntax.OrderKey(
            expression,
            None if direction is None else direction.type == "DESC",
            expression.span if last is None else _cover(expression.span, span_of(last)),
            None if nulls is None else place.type == "FIRST",
        )

    def order(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.OrderKey, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    def having(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Expression, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    def limit(self, keyword: Token, value: syntax.Expression) -> _Limit:
        return _Limit(value, None, _cover(span_of(keyword), value.span))

    def offset(self, keyword: Token, value: syntax.Expression) -> _Limit:
        return _Limit(None, value, _cover(span_of(keyword), value.span))

    def limits(self, first: _Limit, second: _Limit | None = None) -> _Limit:
        if second is None:
            return first
        span = _cover(first.span, second.span)
        return _Limit(first.count or second.count, first.offset or second.offset, span)

    def stage(self, keyword: Token, distinct: Token | None, *rest: Any) -> syntax.Stage:
        projections, closing, where, order, limits, match = rest
        head = _cover(span_of(keyword), span_of(closing))
        return syntax.Stage(
            projections,
            distinct is not None,
            where,
            () if order is None else order[0],
            None if limits is None else limits.count,
            None if limits is None else limits.offset,
            match[0],
            _cover(span_of(keyword), match[1]),
            head,
            None if order is None else order[1],
            match[1],
        )

    def read(self, match: tuple[tuple[syntax.Clause, ...], Span], *rest: Any) -> syntax.Read:
        *stages, returned, having, order, limits = rest
        spans = [part.span for part in (returned, limits) if part is not None]
        spans += [part[1] for part in (match, having, order) if part is not None]
        spans.sort(key=lambda span: span.end)
        return syntax.Read(
            match[0],
            returned.projections,
            () if order is None else order[0],
            None if limits is None else limits.count,
            _cover(match[1], spans[-1]),
            match[1],
            returned.span,
            None if order is None else order[1],
            tuple(stages),
            returned.distinct,
            () if having is None else having[0],
            None if limits is None else limits.offset,
            None if having is None else having[1],
        )

    # --- mutations

    def insert(
        self,
        keyword: Token,
        new: Token | None,
        type_: syntax.Name,
        properties: tuple[tuple[syntax.PropertyValue, ...], Span],
    ) -> syntax.Insert:
        span = _cover(span_of(keyword), properties[1])
        return syntax.Insert(type_, properties[0], span, properties[1], new is not None)

    def insert_rows(
        self, keyword: Token, new: Token | None, type_: syntax.Name, _from: Token, rows: Token
    ) -> syntax.InsertRows:
        return syntax.InsertRows(type_, _variable(rows), new is not None, _cover(span_of(keyword), span_of(rows)))

    def target(self, item: syntax.Name | Token) -> syntax.Name | syntax.Variable:
        return item if isinstance(item, syntax.Name) else _variable(item)

    def update(
        self,
        keyword: Token,
        target: syntax.Name | syntax.Variable,
        properties: tuple[tuple[syntax.PropertyValue, ...], Span],
        predicate: syntax.Expression | None,
    ) -> syntax.Update:
        if not properties[0]:
            raise SyntaxProblem("`set` needs at least one assignment", properties[1])
        if predicate is None and isinstance(target, syntax.Name):
            hint = "to update all rows write `where true`"
            raise SyntaxProblem(f"`update {target.text}` needs a `where`", span_of(keyword), hint)
        span = _cover(span_of(keyword), properties[1] if predicate is None else predicate.span)
        return syntax.Update(target, properties[0], predicate, span, properties[1])

    def delete(
        self, keyword: Token, target: syntax.Name | syntax.Variable, predicate: syntax.Expression | None
    ) -> syntax.Delete:
        if predicate is None and isinstance(target, syntax.Name):
            hint = "to delete all rows write `where true`"
            raise SyntaxProblem(f"`delete {target.text}` needs a `where`", span_of(keyword), hint)
        span = _cover(span_of(keyword), target.span if predicate is None else predicate.span)
        return syntax.Delete(target, predicate, span)

    def mutation(
        self, match: tuple[tuple[syntax.Clause, ...], Span] | None, *statements: syntax.Statement
    ) -> syntax.Mutation:
        first = statements[0].span if match is None else match[1]
        span = _cover(first, statements[-1].span)
        if match is None:
            return syntax.Mutation(statements, span)
        return syntax.Mutation(statements, span, match[0], match[1])

    # --- the header

    def named_type(self, name: syntax.Name) -> syntax.TypeName:
        return syntax.TypeName(name, None, False, name.span)

    def sized_type(self, name: syntax.Name, size: Token, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, _integer(size), False, _cover(name.span, span_of(closing)))

    def list_type(self, opening: Token, name: syntax.Name, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, None, True, _cover(span_of(opening), span_of(closing)))

    def parameter(
        self, variable: Token, type_: syntax.TypeName, optional: Token | None, default: syntax.Expression | None
    ) -> syntax.Parameter:
        last = type_.span if optional is None else span_of(optional)
        last = last if default is None else default.span
        span = _cover(span_of(variable), last)
        return syntax.Parameter(_variable(variable), type_, optional is not None, span, default)

    def parameters(self, *parameters: syntax.Parameter | None) -> tuple[syntax.Parameter, ...]:
        return tuple(parameter for parameter in parameters if parameter is not None)

    def annotation(self, at: Token, name: syntax.Name, value: Token, closing: Token) -> syntax.Annotation:
        return syntax.Annotation(name, _string(value), _cover(span_of(at), span_of(closing)))

    def query(
        self, keyword: Token, name: syntax.Name, parameters: tuple[syntax.Parameter, ...] | None, *rest: Any
    ) -> syntax.Query:
        annotations, body, closing = tuple(rest[:-2]), rest[-2], rest[-1]
        return syntax.Query(name, parameters or (), annotations, body, _cover(span_of(keyword), span_of(closing)))


@dataclass(frozen=True, slots=True)
class _Edge:
    """The middle of a traversal while it is being put together."""

    names: tuple[syntax.Name, ...]
    bounds: syntax.Bounds | None
    undirected: bool
    variable: syntax.Variable | None
    where: syntax.Expression | None


@dataclass(frozen=True, slots=True)
class _Projected:
    """`return distinct { … }`."""

    projections: tuple[syntax.Projection, ...]
    distinct: bool
    span: Span


@dataclass(frozen=True, slots=True)
class _Limit:
    """`limit`, `offset` or both."""

    count: syntax.Expression | None
    offset: syntax.Expression | None
    span: Span


def _bound(sign: Token | None, number: Token | None) -> int | None:
    if number is None:
        if sign is not None:
            raise SyntaxProblem("a number is missing behind the sign", span_of(sign))
        return None
    return _integer(number) if sign is None else -_integer(number)


def _one_bounds(inner: syntax.Bounds | None, outer: syntax.Bounds | None) -> syntax.Bounds | None:
    if inner is not None and outer is not None:
        raise SyntaxProblem("the bounds of a traversal are written once", outer.span)
    return inner or outer


def _integer(token: Token) -> int:
    if len(token.value) > MAX_INTEGER_DIGITS:
        raise SyntaxProblem(f"an integer of {len(token.value)} digits does not fit any type", span_of(token))
    return int(token.value)


def _string(token: Token) -> syntax.Literal:
    span = span_of(token)
    try:
        value = decode_string(token.value)
    except BadEscape as error:
        start, column = span.start + error.offset, span.column + error.offset
        place = Span(start, start + error.length, span.line, column)
        hint = 'the escapes are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX'
        raise SyntaxProblem(str(error), place, hint) from None
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise SyntaxProblem("the string holds half of a surrogate pair, which is not a character", span)
    return syntax.Literal(value, LiteralKind.STRING, token.value, span)
