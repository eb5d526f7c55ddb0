"""From what the grammar recognises to the syntax tree: the clauses of a match block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args

from omnigraph.diagnostics import Span
from omnigraph.query.text import syntax
from omnigraph.query.text.build_expressions import ExpressionBuilder, SyntaxProblem, cover, integer_of, variable_of
from omnigraph.query.text.tokens import span_of


@v_args(inline=True)
class MatchBuilder(ExpressionBuilder):
    """One method per rule of grammar.lark, up to match blocks."""

    def property_value(self, name: syntax.Name, value: syntax.Expression) -> syntax.PropertyValue:
        return syntax.PropertyValue(name, value, cover(name.span, value.span))

    def properties(self, opening: Token, *rest: Any) -> tuple[tuple[syntax.PropertyValue, ...], Span]:
        return tuple(rest[:-1]), cover(span_of(opening), span_of(rest[-1]))

    def bind(
        self, variable: Token, type_: syntax.Name, properties: tuple[tuple[syntax.PropertyValue, ...], Span] | None
    ) -> syntax.Bind:
        values, last = properties if properties is not None else ((), type_.span)
        body = None if properties is None else last
        return syntax.Bind(variable_of(variable), type_, values, cover(span_of(variable), last), body)

    def bounds(self, opening: Token, *rest: Any) -> syntax.Bounds:
        low_sign, low, comma, high_sign, high, closing = rest
        span = cover(span_of(opening), span_of(closing))
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
        return _Edge(names, bounds, False, variable_of(variable), where)

    def undirected_binding(
        self, variable: Token, _open: Token, names: tuple[syntax.Name, ...], inner: syntax.Bounds | None, *rest: Any
    ) -> _Edge:
        _close, outer, where = rest
        return _Edge(names, _one_bounds(inner, outer), True, variable_of(variable), where)

    def traversal(self, source: Token, edge: _Edge, target: Token, path: Token | None) -> syntax.Traversal:
        return syntax.Traversal(
            variable_of(source),
            edge.names[0],
            variable_of(target),
            edge.bounds,
            edge.undirected,
            edge.variable,
            cover(span_of(source), span_of(target if path is None else path)),
            edge.names[1:],
            edge.where,
            None if path is None else variable_of(path),
        )

    def not_block(self, keyword: Token, *rest: Any) -> syntax.NotBlock:
        return syntax.NotBlock(tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1])))

    def exists_block(self, keyword: Token, *rest: Any) -> syntax.ExistsBlock:
        return syntax.ExistsBlock(tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1])))

    def optional_block(self, keyword: Token, *rest: Any) -> syntax.OptionalBlock:
        return syntax.OptionalBlock(tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1])))

    def arm(self, opening: Token, *rest: Any) -> syntax.Arm:
        return syntax.Arm(tuple(rest[:-1]), cover(span_of(opening), span_of(rest[-1])))

    def either_block(self, keyword: Token, *arms: syntax.Arm) -> syntax.EitherBlock:
        return syntax.EitherBlock(arms, cover(span_of(keyword), arms[-1].span))

    def filter(self, expression: syntax.Expression) -> syntax.FilterClause:
        return syntax.FilterClause(expression, expression.span)

    def match(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Clause, ...], Span]:
        return tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1]))


@dataclass(frozen=True, slots=True)
class _Edge:
    """The middle of a traversal while it is being put together."""

    names: tuple[syntax.Name, ...]
    bounds: syntax.Bounds | None
    undirected: bool
    variable: syntax.Variable | None
    where: syntax.Expression | None


def _bound(sign: Token | None, number: Token | None) -> int | None:
    if number is None:
        if sign is not None:
            raise SyntaxProblem("a number is missing behind the sign", span_of(sign))
        return None
    return integer_of(number) if sign is None else -integer_of(number)


def _one_bounds(inner: syntax.Bounds | None, outer: syntax.Bounds | None) -> syntax.Bounds | None:
    if inner is not None and outer is not None:
        raise SyntaxProblem("the bounds of a traversal are written once", outer.span)
    return inner or outer
