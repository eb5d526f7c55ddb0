"""From what the grammar recognises to the syntax tree, as the parser goes along: whole queries.

The builder grows with the language: expressions, on top of them match blocks, and here what those make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args

from omnigraph.diagnostics import Span
from omnigraph.query.text import syntax
from omnigraph.query.text.build_expressions import SyntaxProblem, cover, integer_of, string_of, variable_of
from omnigraph.query.text.build_match import MatchBuilder
from omnigraph.query.text.tokens import span_of


@v_args(inline=True)
class SyntaxBuilder(MatchBuilder):
    """One method per rule of grammar.lark."""

    # --- what follows a match

    def projection(self, expression: syntax.Expression, alias: syntax.Name | None) -> syntax.Projection:
        last = expression.span if alias is None else alias.span
        return syntax.Projection(expression, alias, cover(expression.span, last))

    def projections(self, *projections: syntax.Projection) -> tuple[syntax.Projection, ...]:
        return projections

    def return_block(
        self, keyword: Token, distinct: Token | None, projections: tuple[syntax.Projection, ...], closing: Token
    ) -> _Projected:
        return _Projected(projections, distinct is not None, cover(span_of(keyword), span_of(closing)))

    def order_key(self, expression: syntax.Expression, direction: Token | None, *rest: Any) -> syntax.OrderKey:
        nulls, place = rest
        last = place or direction
        return syntax.OrderKey(
            expression,
            None if direction is None else direction.type == "DESC",
            expression.span if last is None else cover(expression.span, span_of(last)),
            None if nulls is None else place.type == "FIRST",
        )

    def order(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.OrderKey, ...], Span]:
        return tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1]))

    def having(self, keyword: Token, *rest: Any) -> tuple[tuple[syntax.Expression, ...], Span]:
        return tuple(rest[:-1]), cover(span_of(keyword), span_of(rest[-1]))

    def limit(self, keyword: Token, value: syntax.Expression) -> _Limit:
        return _Limit(value, None, cover(span_of(keyword), value.span))

    def offset(self, keyword: Token, value: syntax.Expression) -> _Limit:
        return _Limit(None, value, cover(span_of(keyword), value.span))

    def limits(self, first: _Limit, second: _Limit | None = None) -> _Limit:
        if second is None:
            return first
        span = cover(first.span, second.span)
        return _Limit(first.count or second.count, first.offset or second.offset, span)

    def stage(self, keyword: Token, distinct: Token | None, *rest: Any) -> syntax.Stage:
        projections, closing, where, order, limits, match = rest
        head = cover(span_of(keyword), span_of(closing))
        return syntax.Stage(
            projections,
            distinct is not None,
            where,
            () if order is None else order[0],
            None if limits is None else limits.count,
            None if limits is None else limits.offset,
            match[0],
            cover(span_of(keyword), match[1]),
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
            cover(match[1], spans[-1]),
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
        span = cover(span_of(keyword), properties[1])
        return syntax.Insert(type_, properties[0], span, properties[1], new is not None)

    def insert_rows(
        self, keyword: Token, new: Token | None, type_: syntax.Name, _from: Token, rows: Token
    ) -> syntax.InsertRows:
        return syntax.InsertRows(type_, variable_of(rows), new is not None, cover(span_of(keyword), span_of(rows)))

    def target(self, item: syntax.Name | Token) -> syntax.Name | syntax.Variable:
        return item if isinstance(item, syntax.Name) else variable_of(item)

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
        span = cover(span_of(keyword), properties[1] if predicate is None else predicate.span)
        return syntax.Update(target, properties[0], predicate, span, properties[1])

    def delete(
        self, keyword: Token, target: syntax.Name | syntax.Variable, predicate: syntax.Expression | None
    ) -> syntax.Delete:
        if predicate is None and isinstance(target, syntax.Name):
            hint = "to delete all rows write `where true`"
            raise SyntaxProblem(f"`delete {target.text}` needs a `where`", span_of(keyword), hint)
        span = cover(span_of(keyword), target.span if predicate is None else predicate.span)
        return syntax.Delete(target, predicate, span)

    def mutation(
        self, match: tuple[tuple[syntax.Clause, ...], Span] | None, *statements: syntax.Statement
    ) -> syntax.Mutation:
        first = statements[0].span if match is None else match[1]
        span = cover(first, statements[-1].span)
        if match is None:
            return syntax.Mutation(statements, span)
        return syntax.Mutation(statements, span, match[0], match[1])

    # --- the header

    def named_type(self, name: syntax.Name) -> syntax.TypeName:
        return syntax.TypeName(name, None, False, name.span)

    def sized_type(self, name: syntax.Name, size: Token, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, integer_of(size), False, cover(name.span, span_of(closing)))

    def list_type(self, opening: Token, name: syntax.Name, closing: Token) -> syntax.TypeName:
        return syntax.TypeName(name, None, True, cover(span_of(opening), span_of(closing)))

    def parameter(
        self, variable: Token, type_: syntax.TypeName, optional: Token | None, default: syntax.Expression | None
    ) -> syntax.Parameter:
        last = type_.span if optional is None else span_of(optional)
        last = last if default is None else default.span
        span = cover(span_of(variable), last)
        return syntax.Parameter(variable_of(variable), type_, optional is not None, span, default)

    def parameters(self, *parameters: syntax.Parameter | None) -> tuple[syntax.Parameter, ...]:
        return tuple(parameter for parameter in parameters if parameter is not None)

    def annotation(self, at: Token, name: syntax.Name, value: Token, closing: Token) -> syntax.Annotation:
        return syntax.Annotation(name, string_of(value), cover(span_of(at), span_of(closing)))

    def query(
        self, keyword: Token, name: syntax.Name, parameters: tuple[syntax.Parameter, ...] | None, *rest: Any
    ) -> syntax.Query:
        annotations, body, closing = tuple(rest[:-2]), rest[-2], rest[-1]
        return syntax.Query(name, parameters or (), annotations, body, cover(span_of(keyword), span_of(closing)))


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
