"""From the parser's tree to the syntax tree: spans, literals, and which annotation belongs to which property."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import Diagnostic, Span
from omnigraph.schema.floats import parse_float
from omnigraph.schema.limits import MAX_FINDINGS, MAX_NUMBER_LENGTH, MAX_TYPE_NESTING
from omnigraph.schema.literals import BadEscape, decode_string
from omnigraph.schema.syntax.source import Lines
from omnigraph.schema.syntax.syntax import (
    AnnotationSyntax,
    Argument,
    BodyItem,
    BodySyntax,
    ConstraintSyntax,
    Declaration,
    EdgeSyntax,
    EndpointArgument,
    EnumTypeSyntax,
    InterfaceSyntax,
    ListTypeSyntax,
    Literal,
    LiteralKind,
    Name,
    NamedTypeSyntax,
    NodeSyntax,
    OptionArgument,
    PropertySyntax,
    RangeArgument,
    SizedTypeSyntax,
    TypeSyntax,
)

if TYPE_CHECKING:
    from lark import Token, Tree

CONSTRAINTS = frozenset({"key", "unique", "index", "range", "check"})
"""Annotations that are body constraints when they have arguments. Without them they belong to a property."""

_WORDS: dict[str, tuple[LiteralKind, bool | None]] = {
    "true": (LiteralKind.BOOLEAN, True),
    "false": (LiteralKind.BOOLEAN, False),
    "null": (LiteralKind.NULL, None),
}


def _is_constraint(annotation: AnnotationSyntax) -> bool:
    """Whether an annotation names what it is about. `@index(metric="l2")` says how, of the property before it."""
    if annotation.name not in CONSTRAINTS or annotation.arguments is None:
        return False
    options = [argument for argument in annotation.arguments if isinstance(argument, OptionArgument)]
    return annotation.name != "index" or not options or len(options) < len(annotation.arguments)


class TreeBuilder:
    """Builds declarations out of a parser tree whose text starts at `offset` of the source."""

    def __init__(self, lines: Lines, offset: int = 0) -> None:
        self._lines = lines
        self._offset = offset
        self.diagnostics: list[Diagnostic] = []
        self.names_with_findings: list[str] = []

    def declarations(self, tree: Tree[Token]) -> list[Declaration]:
        """Every declaration below `schema`. Findings about literals and annotations go to `diagnostics`."""
        build: dict[str, Any] = {"interface": self._interface, "node": self._node, "edge": self._edge}
        declarations: list[Declaration] = []
        for child in _trees(tree):
            before = len(self.diagnostics)
            declarations.append(build[child.data](child))
            if len(self.diagnostics) > before:
                self.names_with_findings.append(declarations[-1].name.text)
        return declarations

    # --- declarations --------------------------------------------------------------------------------------------

    def _interface(self, tree: Tree[Token]) -> InterfaceSyntax:
        return InterfaceSyntax(
            self._name(_names(tree)[0]), self._annotations(tree), self._body(_only(tree, "body")), self._span(tree)
        )

    def _node(self, tree: Tree[Token]) -> NodeSyntax:
        implements = [name for part in _all(tree, "implements") for name in _names(part)]
        return NodeSyntax(
            self._name(_names(tree)[0]),
            self._annotations(tree),
            tuple(self._name(name) for name in implements),
            self._body(_only(tree, "body")),
            self._span(tree),
        )

    def _edge(self, tree: Tree[Token]) -> EdgeSyntax:
        name, source, target = (self._name(token) for token in _names(tree))
        bodies = _all(tree, "body")
        return EdgeSyntax(
            name,
            source,
            target,
            self._annotations(tree),
            self._body(bodies[0]) if bodies else None,
            self._span(tree),
        )

    # --- bodies --------------------------------------------------------------------------------------------------

    def _body(self, tree: Tree[Token]) -> BodySyntax:
        items: list[BodyItem] = []
        annotations: list[AnnotationSyntax] = []  # those of the last property
        closed = True  # whether the last property can take no more annotations
        for item in _trees(tree):
            part = _trees(item)[0]
            if part.data == "property":
                _annotate_last(items, annotations)
                items.append(self._property(part))
                annotations, closed = [], False
            else:
                annotation = self._annotation(part)
                if _is_constraint(annotation):
                    _annotate_last(items, annotations)
                    annotations = []
                    items.append(ConstraintSyntax(annotation, annotation.span))
                    closed = True
                elif closed:
                    self._detached(annotation)
                else:
                    annotations.append(annotation)
            closed = closed or len(item.children) > 1
        _annotate_last(items, annotations)
        return BodySyntax(tuple(items), self._span(tree))

    def _detached(self, annotation: AnnotationSyntax) -> None:
        written = f"@{annotation.name}"
        if annotation.name in CONSTRAINTS:
            hint = f"write it after its property, or name the property: `{written}(…)`"
        else:
            hint = "an annotation of a property stands right after its type, before any comma or constraint"
        self._report("S109", f"`{written}` does not follow the property it belongs to", annotation.span, hint)

    def _property(self, tree: Tree[Token]) -> PropertySyntax:
        type_ = self._type(_only(tree, "type"), 0)
        return PropertySyntax(self._name(_tokens(tree)[0]), type_, (), self._span(tree))

    def _type(self, tree: Tree[Token], depth: int) -> TypeSyntax:
        base_tree = _trees(tree)[0]
        span = self._span(base_tree)
        base: NamedTypeSyntax | SizedTypeSyntax | EnumTypeSyntax | ListTypeSyntax
        if base_tree.data == "named_type":
            base = NamedTypeSyntax(str(base_tree.children[0]), span)
        elif base_tree.data == "sized_type":
            name, size = _tokens(base_tree)
            base = SizedTypeSyntax(str(name), self._literal_token(size), span)
        elif base_tree.data == "enum_type":
            base = EnumTypeSyntax(tuple(str(value) for value in _tokens(base_tree)[1:]), span)
        elif depth >= MAX_TYPE_NESTING:
            self._report("S107", f"types are nested more than {MAX_TYPE_NESTING} deep", span, "a list holds scalars")
            base = NamedTypeSyntax("String", span)
        else:
            base = ListTypeSyntax(self._type(_only(base_tree, "type"), depth + 1), span)
        return TypeSyntax(base, len(tree.children) > 1, self._span(tree))

    # --- annotations ---------------------------------------------------------------------------------------------

    def _annotations(self, tree: Tree[Token]) -> tuple[AnnotationSyntax, ...]:
        return tuple(self._annotation(child) for child in _all(tree, "annotation"))

    def _annotation(self, tree: Tree[Token]) -> AnnotationSyntax:
        token = _tokens(tree)[0]
        arguments = _all(tree, "arguments")
        return AnnotationSyntax(
            str(token)[1:],
            tuple(self._argument(child) for child in _trees(arguments[0])) if arguments else None,
            self._span(tree),
            self._token_span(token),
        )

    def _argument(self, tree: Tree[Token]) -> Argument:
        span = self._span(tree)
        if tree.data == "literal":
            return self._literal_token(_tokens(tree)[0])
        if tree.data == "option":
            return OptionArgument(
                self._name(_tokens(tree)[0]), self._literal_token(_tokens(_only(tree, "literal"))[0]), span
            )
        if tree.data == "endpoint":
            token = _tokens(tree)[0]
            return EndpointArgument(Name(str(token)[1:], self._token_span(token)), span)
        ends: list[Literal | None] = [None, None]
        side = 0
        for child in tree.children:
            if getattr(child, "type", None) == "DOTS":
                side = 1
            elif child is not None:
                # mypy does not see: the parser gives a token here.
                ends[side] = self._literal_token(_tokens(child)[0])  # type: ignore[arg-type]
        return RangeArgument(ends[0], ends[1], span)

    # --- leaves --------------------------------------------------------------------------------------------------

    def _literal_token(self, token: Token) -> Literal:
        text, span = str(token), self._token_span(token)
        if token.type == "STRING":
            return Literal(LiteralKind.STRING, self._string(text, span), text, span)
        if token.type == "NAME":
            kind, value = _WORDS.get(text, (LiteralKind.WORD, text))
            return Literal(kind, value, text, span)
        kind = LiteralKind.INTEGER if token.type == "INTEGER" else LiteralKind.FLOAT
        number: int | float = 0
        if len(text) > MAX_NUMBER_LENGTH:
            self._report("S105", f"a number of {len(text)} characters is too large to be meant", span)
        elif kind is LiteralKind.INTEGER:
            number = int(text)
        else:
            number = parse_float(text)
            if math.isinf(number):
                self._report("S105", f"`{text}` is too large for a 64-bit float", span)
                number = 0.0
        return Literal(kind, number, text, span)

    def _string(self, text: str, span: Span) -> str:
        try:
            return decode_string(text)
        except BadEscape as error:
            start = span.start + error.offset
            hint = "write a backslash itself as `\\\\`; the escapes are those of JSON"
            self._report("S104", str(error), self._lines.span(start, start + error.length), hint)
            return ""

    def _name(self, token: Token) -> Name:
        return Name(str(token), self._token_span(token))

    def _token_span(self, token: Token) -> Span:
        start = (token.start_pos or 0) + self._offset
        return self._lines.span(start, start + len(token))

    def _span(self, tree: Tree[Token]) -> Span:
        meta = tree.meta
        if meta.empty:
            return self._lines.span(self._offset, self._offset)
        return self._lines.span(meta.start_pos + self._offset, meta.end_pos + self._offset)

    def _report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        if len(self.diagnostics) < MAX_FINDINGS:
            self.diagnostics.append(Diagnostic(code, message, span, hint=hint))


def _annotate_last(items: list[BodyItem], annotations: list[AnnotationSyntax]) -> None:
    """Give the last property the annotations that follow it."""
    if not annotations:
        return
    item = items[-1]
    assert isinstance(item, PropertySyntax)
    span = Span(item.span.start, annotations[-1].span.end, item.span.line, item.span.column)
    items[-1] = PropertySyntax(item.name, item.type, tuple(annotations), span)


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if hasattr(child, "data")]  # type: ignore[misc]


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [child for child in tree.children if child is not None and not hasattr(child, "data")]


def _names(tree: Tree[Token]) -> list[Token]:
    return [token for token in _tokens(tree) if token.type == "NAME"]


def _all(tree: Tree[Token], data: str) -> list[Tree[Token]]:
    return [child for child in _trees(tree) if child.data == data]


def _only(tree: Tree[Token], data: str) -> Tree[Token]:
    return _all(tree, data)[0]
