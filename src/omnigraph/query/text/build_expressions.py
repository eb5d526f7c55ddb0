"""From what the grammar recognises to the syntax tree: names, literals and expressions."""

from __future__ import annotations

import math
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


def cover(first: Span, last: Span) -> Span:
    """From the start of one place to the end of another."""
    return Span(first.start, last.end, first.line, first.column)


def variable_of(token: Token) -> syntax.Variable:
    """`$x` of a token."""
    return syntax.Variable(token.value[1:], span_of(token))


@v_args(inline=True)
class ExpressionBuilder(Transformer[Any, Any]):
    """One method per rule of grammar.lark, up to expressions."""

    def word(self, token: Token) -> syntax.Name:
        return syntax.Name(token.value, span_of(token))

    def name(self, item: syntax.Name | Token) -> syntax.Name:
        return item if isinstance(item, syntax.Name) else self.word(item)

    def string(self, token: Token) -> syntax.Literal:
        return string_of(token)

    def integer(self, token: Token) -> syntax.Literal:
        return syntax.Literal(integer_of(token), LiteralKind.INTEGER, token.value, span_of(token))

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
        return syntax.ListLiteral(items, cover(span_of(opening), span_of(rest[-1])))

    # --- expressions

    def variable(self, token: Token) -> syntax.Variable:
        return variable_of(token)

    def property(self, variable: Token, name: syntax.Name) -> syntax.Property:
        return syntax.Property(variable_of(variable), name, cover(span_of(variable), name.span))

    def own_property(self, variable: Token, at: Token, name: syntax.Name) -> syntax.Property:
        own = syntax.Name(f"@{name.text}", cover(span_of(at), name.span))
        return syntax.Property(variable_of(variable), own, cover(span_of(variable), name.span))

    def own(self, at: Token, name: syntax.Name) -> syntax.Reference:
        return syntax.Reference(f"@{name.text}", cover(span_of(at), name.span))

    def reference(self, word: syntax.Name) -> syntax.Reference:
        return syntax.Reference(word.text, word.span)

    def call(self, function: syntax.Name, distinct: Token | None, *rest: Any) -> syntax.Call:
        given = [arg for arg in rest[:-1] if arg is not None]
        labelled = [arg for arg in given if isinstance(arg, syntax.Labelled)]
        for arg in given[: -len(labelled)] if labelled else ():
            if isinstance(arg, syntax.Labelled):
                raise SyntaxProblem("arguments with a name come behind those without one", arg.span)
        args = tuple(arg for arg in given if not isinstance(arg, syntax.Labelled))
        span = cover(function.span, span_of(rest[-1]))
        if distinct is not None and not args:
            raise SyntaxProblem("`distinct` needs a value behind it", span_of(distinct))
        return syntax.Call(function, args, span, distinct is not None, tuple(labelled))

    def labelled(self, label: Token, value: syntax.Expression) -> syntax.Labelled:
        name = syntax.Name(label.value, span_of(label))
        return syntax.Labelled(name, value, cover(name.span, value.span))

    def arithmetic(self, left: syntax.Expression, sign: Token, right: syntax.Expression) -> syntax.Arithmetic:
        return syntax.Arithmetic(syntax.ArithmeticOperator(sign.value), left, right, cover(left.span, right.span))

    def negative(self, sign: Token, item: syntax.Expression) -> syntax.Expression:
        span = cover(span_of(sign), item.span)
        if isinstance(item, syntax.Literal) and item.kind in _NUMBERS and not item.text.startswith("-"):
            assert isinstance(item.value, int | float)
            return syntax.Literal(-item.value, item.kind, f"-{item.text}", span)
        return syntax.Negative(item, span)

    def index(self, item: syntax.Expression, _open: Token, index: syntax.Expression, closing: Token) -> syntax.Index:
        return syntax.Index(item, index, cover(item.span, span_of(closing)))

    def branch(
        self, _when: Token, condition: syntax.Expression, _then: Token, value: syntax.Expression
    ) -> tuple[syntax.Expression, syntax.Expression]:
        return condition, value

    def case(self, keyword: Token, *rest: Any) -> syntax.Case:
        *branches, _else, otherwise, closing = rest
        return syntax.Case(tuple(branches), otherwise, cover(span_of(keyword), span_of(closing)))

    def null_test(self, item: syntax.Expression, _is: Token, negation: Token | None, null: Token) -> syntax.NullTest:
        return syntax.NullTest(item, negation is not None, cover(item.span, span_of(null)))

    def parenthesised(self, expression: syntax.Expression) -> syntax.Expression:
        return expression

    def operator(self, token: Token) -> syntax.Operator:
        return syntax.Operator(token.value)

    def comparison(
        self, left: syntax.Expression, operator: syntax.Operator, right: syntax.Expression
    ) -> syntax.Comparison:
        return syntax.Comparison(operator, left, right, cover(left.span, right.span))

    def negation(self, keyword: Token, item: syntax.Expression) -> syntax.Not:
        return syntax.Not(item, cover(span_of(keyword), item.span))

    def conjunction(self, *items: syntax.Expression) -> syntax.And:
        return syntax.And(items, cover(items[0].span, items[-1].span))

    def expression(self, *items: syntax.Expression) -> syntax.Or:
        return syntax.Or(items, cover(items[0].span, items[-1].span))


def integer_of(token: Token) -> int:
    """The value of an integer that is written out."""
    if len(token.value) > MAX_INTEGER_DIGITS:
        raise SyntaxProblem(f"an integer of {len(token.value)} digits does not fit any type", span_of(token))
    return int(token.value)


def string_of(token: Token) -> syntax.Literal:
    """The text between quotes, its escapes read."""
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
