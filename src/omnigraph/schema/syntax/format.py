"""The formatter of `.pg`: one layout for everybody, comments kept, formatting twice changes nothing.

Order stays as it is written. Comments stay before the item, or behind it on its line; one in the middle of an item
moves before it. Blank lines stay, one at most. Commas between items go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import InternalError
from omnigraph.schema.syntax.parse import parse_schema
from omnigraph.schema.syntax.source import Comment, comments_of
from omnigraph.schema.syntax.syntax import (
    AnnotationSyntax,
    Argument,
    BodyItem,
    BodySyntax,
    Declaration,
    EdgeSyntax,
    EndpointArgument,
    EnumTypeSyntax,
    InterfaceSyntax,
    ListTypeSyntax,
    Literal,
    NamedTypeSyntax,
    OptionArgument,
    PropertySyntax,
    SchemaFile,
    TypeSyntax,
)

INDENT = "    "
WIDTH = 100


def format_schema(source: str, filename: str = "<input>") -> str:
    """The same schema in the standard layout. Raises SchemaError if the text does not parse."""
    file = parse_schema(source, filename)
    text = _Layout(source, file).text()
    if parse_schema(text, filename) != file:
        raise InternalError("formatting would have changed the meaning of the schema; please report this text")
    return text


def print_schema(file: SchemaFile) -> str:
    """A syntax tree as text in the standard layout, without comments."""
    blocks = []
    for declaration in file.declarations:
        header, body = _header(declaration), declaration.body
        items = [INDENT + _item(item) for item in body.items] if body else []
        if body is None:
            blocks.append(header)
        else:
            blocks.append("\n".join([f"{header} {{", *items, "}"]) if items else f"{header} {{}}")
    return "\n\n".join(blocks) + "\n" if blocks else ""


# --- parts on one line -------------------------------------------------------------------------------------------


def _header(declaration: Declaration) -> str:
    annotations = "".join(f" {_annotation(a)}" for a in declaration.annotations)
    name = declaration.name.text
    if isinstance(declaration, InterfaceSyntax):
        return f"interface {name}{annotations}"
    if isinstance(declaration, EdgeSyntax):
        return f"edge {name}: {declaration.source.text} -> {declaration.target.text}{annotations}"
    implements = ", ".join(interface.text for interface in declaration.implements)
    return f"node {name}{annotations}{' implements ' if implements else ''}{implements}"


def _item(item: BodyItem) -> str:
    if not isinstance(item, PropertySyntax):
        return _annotation(item.annotation)
    annotations = "".join(f" {_annotation(a)}" for a in item.annotations)
    line = f"{item.name.text}: {_type(item.type)}{annotations}"
    if len(INDENT + line) > WIDTH and isinstance(item.type.base, EnumTypeSyntax):
        question = "?" if item.type.nullable else ""
        values = _filled(item.type.base.values, INDENT * 2)
        return f"{item.name.text}: enum(\n{values}\n{INDENT}){question}{annotations}"
    return line


def _filled(values: Iterable[str], indent: str) -> str:
    """Values with commas between them, as many to a line as fit."""
    lines = [indent]
    for value in values:
        if len(lines[-1]) + len(value) + 1 > WIDTH and lines[-1] != indent:
            lines[-1] = lines[-1].rstrip()
            lines.append(indent)
        lines[-1] += f"{value}, "
    return "\n".join(lines).removesuffix(", ")


def _type(syntax: TypeSyntax) -> str:
    base = syntax.base
    question = "?" if syntax.nullable else ""
    if isinstance(base, NamedTypeSyntax):
        return base.name + question
    if isinstance(base, EnumTypeSyntax):
        return f"enum({', '.join(base.values)}){question}"
    if isinstance(base, ListTypeSyntax):
        return f"[{_type(base.item)}]{question}"
    return f"{base.name}({base.size.text}){question}"


def _annotation(annotation: AnnotationSyntax) -> str:
    if annotation.arguments is None:
        return f"@{annotation.name}"
    return f"@{annotation.name}({', '.join(_argument(a) for a in annotation.arguments)})"


def _argument(argument: Argument) -> str:
    if isinstance(argument, Literal):
        return argument.text
    if isinstance(argument, OptionArgument):
        return f"{argument.key.text}={argument.value.text}"
    if isinstance(argument, EndpointArgument):
        return f"@{argument.name.text}"
    return f"{argument.low.text if argument.low else ''}..{argument.high.text if argument.high else ''}"


# --- layout ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Last:
    """What was written last: where it ended in the source, and whether it was a declaration or one with a body."""

    end: int
    declaration: bool = False
    body: bool = False


class _Layout:
    """Writes declarations and comments in the order of the source."""

    def __init__(self, source: str, file: SchemaFile) -> None:
        self._source = source
        self._file = file
        self._comments = list(comments_of(source))
        self._next_comment = 0
        self._lines: list[str] = []

    def text(self) -> str:
        last: _Last | None = None
        for declaration in self._file.declarations:
            head_end = declaration.body.span.start if declaration.body else declaration.span.end
            last = self._leading(declaration.span.start, head_end, "", last)
            self._separate(last, declaration.span.start, declaration)
            if declaration.body is None:
                self._lines.append(_header(declaration))
            else:
                self._body(_header(declaration), declaration.body)
            last = _Last(declaration.span.end, True, declaration.body is not None)
            self._trailing(last)
        self._leading(len(self._source), len(self._source), "", last)
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _body(self, header: str, body: BodySyntax) -> None:
        inside = self._next_comment < len(self._comments) and self._comments[self._next_comment].start < body.span.end
        if not body.items and not inside:
            self._lines.append(f"{header} {{}}")
            return
        self._lines.append(f"{header} {{")
        last: _Last | None = None
        opened = _Last(body.span.start + 1)
        first_item = body.items[0].span.start if body.items else body.span.end
        if inside and self._comments[self._next_comment].text.startswith("//"):
            self._trailing(opened, first_item)
        for item in body.items:
            last = self._leading(item.span.start, item.span.end, INDENT, last)
            self._separate(last, item.span.start, None)
            self._lines.append(INDENT + _item(item))
            last = _Last(item.span.end)
            self._trailing(last)
        self._leading(body.span.end, body.span.end, INDENT, last)
        self._lines.append("}")

    def _leading(self, start: int, end: int, indent: str, last: _Last | None) -> _Last | None:
        """Write the comments before `start`, and those up to `end`, which stand in the middle of an item."""
        while self._next_comment < len(self._comments) and self._comments[self._next_comment].start < end:
            comment = self._comments[self._next_comment]
            self._next_comment += 1
            self._separate(last, min(comment.start, start), None)
            self._lines.append(indent + _comment_text(comment))
            last = _Last(min(comment.end, start))
        return last

    def _trailing(self, last: _Last, limit: int | None = None) -> None:
        """Write the comments that follow on the same line as what was written last, behind it."""
        while self._next_comment < len(self._comments):
            comment = self._comments[self._next_comment]
            between = self._source[last.end : comment.start]
            if not re.fullmatch(r"[^\S\n]*,?[^\S\n]*", between) or "\n" in comment.text:
                return
            if limit is not None and comment.start > limit:
                return
            self._next_comment += 1
            self._lines[-1] += f"  {_comment_text(comment)}"
            last.end = comment.end

    def _separate(self, last: _Last | None, start: int, declaration: Declaration | None) -> None:
        """Write a blank line where the source has one, and around declarations with a body."""
        if last is None:
            return
        blank = len(re.findall(r"\n", self._source[last.end : start])) > 1
        if blank or last.body or (last.declaration and declaration is not None and declaration.body is not None):
            self._lines.append("")


def _comment_text(comment: Comment) -> str:
    lines = comment.text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)
