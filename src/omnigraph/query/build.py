"""From what the grammar recognises to the syntax tree, as the parser goes along."""

from __future__ import annotations

import math
from typing import Any

from lark import Token, Transformer, v_args

from omnigraph.diagnostics import Diagnostic, Span
from omnigraph.query import syntax
from omnigraph.query.syntax import LiteralKind
from omnigraph.query.tokens import span_of
from omnigraph.schema.floats import Underflow, parse_float
from omnigraph.schema.literals import BadEscape, decode_string

MAX_INTEGER_DIGITS = 30
"""More digits than any type holds; Python itself refuses to read numbers of thousands of digits."""


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
        return syntax.ListLiteral(items, _cover(span_of(opening), span_of(rest[-1])))

    # --- expressions

    def variable(self, token: Token) -> syntax.Variable:
        return _variable(token)

    def property(self, variable: Token, name: syntax.Name) -> syntax.Property:
        return syntax.Property(_variable(variable), name, _cover(span_of(variable), name.span))

    def reference(self, word: syntax.Name) -> syntax.Reference:
        return syntax.Reference(word.text, word.span)

    def call(self, function: syntax.Name, *rest: Any) -> syntax.Call:
        args = tuple(arg for arg in rest[:-1] if arg is not None)
        return syntax.Call(function, args, _cover(function.span, span_of(rest[-1])))

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

    def bounds(
        self, opening: Token, low: Token | None, comma: Token | None, high: Token | None, closing: Token
    ) -> syntax.Bounds:
        span = _cover(span_of(opening), span_of(closing))
        minimum = None if low is None else _integer(low)
        maximum = minimum if comma is None else None if high is None else _integer(high)
        return syntax.Bounds(minimum, maximum, span)

    def directed(self, name: Token, bounds: syntax.Bounds | None) -> _Edge:
        return _Edge(syntax.Name(name.value, span_of(name)), bounds, False, None)

    def undirected(
        self, _open: Token, name: syntax.Name, inner: syntax.Bounds | None, _close: Token, outer: syntax.Bounds | None
    ) -> _Edge:
        return _Edge(name, _one_bounds(inner, outer), True, None)

    def directed_binding(self, variable: Token, name: syntax.Name, bounds: syntax.Bounds | None) -> _Edge:
        return _Edge(name, bounds, False, _variable(variable))

    def undirected_binding(
        self,
        variable: Token,
        _open: Token,
        name: syntax.Name,
        inner: syntax.Bounds | None,
        _close: Token,
        outer: syntax.Bounds | None,
    ) -> _Edge:
        return _Edge(name, _one_bounds(inner, outer), True, _variable(variable))

    def traversal(self, source: Token, edge: _Edge, target: Token) -> syntax.Traversal:
        span = _cover(span_of(source), span_of(target))
        start, end = _variable(source), _variable(target)
        return syntax.Traversal(start, edge.name, end, edge.bounds, edge.undirected, edge.variable, span)

    def not_block(self, keyword: Token, *rest: Any) -> syntax.NotBlock:
        return syntax.NotBlock(tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1])))

    def filter(self, expression: syntax.Expression) -> syntax.FilterClause:
        return syntax.FilterClause(expression, expression.span)

    def match(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Clause, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    # --- the rest of a read

    def projection(self, expression: syntax.Expression, alias: syntax.Name | None) -> syntax.Projection:
        last = expression.span if alias is None else alias.span
        return syntax.Projection(expression, alias, _cover(expression.span, last))

    def return_block(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Projection, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    def order_key(self, expression: syntax.Expression, direction: Token | None) -> syntax.OrderKey:
        if direction is None:
            return syntax.OrderKey(expression, None, expression.span)
        return syntax.OrderKey(expression, direction.type == "DESC", _cover(expression.span, span_of(direction)))

    def order(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.OrderKey, ...], Span]:
        return tuple(rest[:-1]), _cover(span_of(keyword), span_of(rest[-1]))

    def limit(self, keyword: Token, value: syntax.Expression) -> tuple[syntax.Expression, Span]:
        return value, _cover(span_of(keyword), value.span)

    def read(
        self,
        match: tuple[tuple[syntax.Clause, ...], Span],
        projections: tuple[tuple[syntax.Projection, ...], Span],
        order: tuple[tuple[syntax.OrderKey, ...], Span] | None,
        limit: tuple[syntax.Expression, Span] | None,
    ) -> syntax.Read:
        spans = [part[1] for part in (match, projections, order, limit) if part is not None]
        return syntax.Read(
            match[0],
            projections[0],
            () if order is None else order[0],
            None if limit is None else limit[0],
            _cover(spans[0], spans[-1]),
            match[1],
            projections[1],
            None if order is None else order[1],
        )

    # --- mutations

    def insert(
        self, keyword: Token, type_: syntax.Name, properties: tuple[tuple[syntax.PropertyValue, ...], Span]
    ) -> syntax.Insert:
        return syntax.Insert(type_, properties[0], _cover(span_of(keyword), properties[1]), properties[1])

    def update(
        self,
        keyword: Token,
        type_: syntax.Name,
        properties: tuple[tuple[syntax.PropertyValue, ...], Span],
        predicate: syntax.Expression,
    ) -> syntax.Update:
        if not properties[0]:
            raise SyntaxProblem("`set` needs at least one assignment", properties[1])
        span = _cover(span_of(keyword), predicate.span)
        return syntax.Update(type_, properties[0], predicate, span, properties[1])

    def delete(self, keyword: Token, type_: syntax.Name, predicate: syntax.Expression) -> syntax.Delete:
        return syntax.Delete(type_, predicate, _cover(span_of(keyword), predicate.span))

    def mutation(self, *statements: syntax.Statement) -> syntax.Mutation:
        return syntax.Mutation(statements, _cover(statements[0].span, statements[-1].span))

    # --- the header

    def named_type(self, name: syntax.Name) -> syntax.TypeName:
        return syntax.TypeName(name, None, False, name.span)

    def sized_type(self, name: syntax.Name, size: Token, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, _integer(size), False, _cover(name.span, span_of(closing)))

    def list_type(self, opening: Token, name: syntax.Name, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, None, True, _cover(span_of(opening), span_of(closing)))

    def parameter(self, variable: Token, type_: syntax.TypeName, optional: Token | None) -> syntax.Parameter:
        last = type_.span if optional is None else span_of(optional)
        return syntax.Parameter(_variable(variable), type_, optional is not None, _cover(span_of(variable), last))

    def parameters(self, *parameters: syntax.Parameter | None) -> tuple[syntax.Parameter, ...]:
        return tuple(parameter for parameter in parameters if parameter is not None)

    def annotation(self, at: Token, name: syntax.Name, value: Token, closing: Token) -> syntax.Annotation:
        return syntax.Annotation(name, _string(value), _cover(span_of(at), span_of(closing)))

    def query(
        self, keyword: Token, name: syntax.Name, parameters: tuple[syntax.Parameter, ...] | None, *rest: Any
    ) -> syntax.Query:
        annotations, body, closing = tuple(rest[:-2]), rest[-2], rest[-1]
        return syntax.Query(name, parameters or (), annotations, body, _cover(span_of(keyword), span_of(closing)))


class _Edge:
    """The middle of a traversal while it is being put together."""

    __slots__ = ("bounds", "name", "undirected", "variable")

    def __init__(
        self, name: syntax.Name, bounds: syntax.Bounds | None, undirected: bool, variable: syntax.Variable | None
    ) -> None:
        self.name = name
        self.bounds = bounds
        self.undirected = undirected
        self.variable = variable


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
