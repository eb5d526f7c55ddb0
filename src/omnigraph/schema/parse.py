"""Parse `.pg` text into a syntax tree, or report every syntax error of the file with its place.

A text that parses is parsed in one go. One that does not is cut into declarations where lines start one, each piece
is parsed for itself, and within a piece a line that is one bad item is left out and the rest is tried again: so one
mistake hides no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from omnigraph.diagnostics import Diagnostic, SchemaError, Span, did_you_mean
from omnigraph.schema.limits import MAX_DIAGNOSTICS, MAX_SOURCE_LENGTH
from omnigraph.schema.source import Lines, without_text
from omnigraph.schema.syntax import Declaration, SchemaFile
from omnigraph.schema.tree import TreeBuilder

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

_DECLARATION = re.compile(
    r"^[ \t]*(interface|node|edge)\s+([A-Za-z_][A-Za-z0-9_]*)\s*(?=[:{@]|implements\b)", re.MULTILINE
)
_ITEM_LINE = re.compile(r"[ \t]*(?:@|[A-Za-z_][A-Za-z0-9_]*\s*(?::|$|[A-Z]))")
_ITEM_OR_END_LINE = re.compile(r"\s*(?:@|\}|[A-Za-z_][A-Za-z0-9_]*\s*:|$)")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|.", re.DOTALL)

_KEYWORDS = ("interface", "node", "edge")
_READABLE = {
    "$END": "the end of the file",
    "ANNOTATION_NAME": "an annotation",
    "ARROW": "`->`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "DOTS": "`..`",
    "EDGE": "`edge`",
    "ENUM": "`enum`",
    "ENUM_VALUE": "an enum value",
    "EQUAL": "`=`",
    "FLOAT": "a number",
    "IMPLEMENTS": "`implements`",
    "INTEGER": "a number",
    "INTERFACE": "`interface`",
    "LBRACE": "`{`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "NAME": "a name",
    "NODE": "`node`",
    "QUESTION": "`?`",
    "RBRACE": "`}`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "STRING": "a string",
    "__ANON_0": "`->`",
}


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """What could be parsed, what was wrong, and the names of the declarations that were left out for it."""

    file: SchemaFile
    diagnostics: tuple[Diagnostic, ...]
    broken: frozenset[str] = frozenset()


def parse_schema(source: str, filename: str = "<input>") -> SchemaFile:
    """The syntax tree of a `.pg` text. Raises SchemaError with every syntax error."""
    parsed = parse_tolerantly(source)
    if parsed.diagnostics:
        raise SchemaError(bounded(parsed.diagnostics), source, filename)
    return parsed.file


def parse_tolerantly(source: str) -> ParsedSchema:
    """Parse as much as possible; never raises. A declaration with a syntax error is left out and named in `broken`."""
    from lark.exceptions import UnexpectedInput

    lines = Lines(source)
    unreadable = _unreadable(source, lines)
    if unreadable is not None:
        return ParsedSchema(SchemaFile(()), (unreadable,))
    builder = TreeBuilder(lines)
    try:
        tree = _parser().parse(source)
    except UnexpectedInput:
        return _parse_pieces(source, lines)
    declarations = builder.declarations(tree)
    return ParsedSchema(SchemaFile(tuple(declarations)), tuple(builder.diagnostics))


def bounded(diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The first findings, with a last one that says how many were left out."""
    if len(diagnostics) <= MAX_DIAGNOSTICS:
        return diagnostics
    left_out = len(diagnostics) - MAX_DIAGNOSTICS + 1
    shown = diagnostics[: MAX_DIAGNOSTICS - 1]
    return (*shown, Diagnostic("S108", f"{left_out} more errors are not shown", diagnostics[len(shown)].span))


@cache
def _parser() -> Lark:
    from importlib.resources import files

    from lark import Lark

    grammar = files("omnigraph.schema").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, start="schema", parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False
    )


def _unreadable(source: str, lines: Lines) -> Diagnostic | None:
    if len(source) > MAX_SOURCE_LENGTH:
        message = f"the source has {len(source)} characters; at most {MAX_SOURCE_LENGTH} are read"
        return Diagnostic("S106", message, lines.span(0, 0), hint="split it into several graphs, or shorten comments")
    surrogate = _LONE_SURROGATE.search(source)
    if surrogate:
        message = f"half of a surrogate pair (U+{ord(surrogate.group()):04X}) is not a character"
        return Diagnostic("S101", message, lines.span(*surrogate.span()), hint="save the file as UTF-8")
    return None


# --- recovery ----------------------------------------------------------------------------------------------------


def _parse_pieces(source: str, lines: Lines) -> ParsedSchema:
    declarations: list[Declaration] = []
    diagnostics: list[Diagnostic] = []
    broken: set[str] = set()
    structure = without_text(source)
    starts = [match.start(1) for match in _DECLARATION.finditer(structure)]
    bounds = sorted({0, *starts, len(source)})
    for start, end in pairwise(bounds):
        found, errors = _parse_piece(source, structure, start, end, lines)
        declarations.extend(found)
        diagnostics.extend(errors)
        if errors:
            broken.update(match.group(2) for match in _DECLARATION.finditer(structure, start, end))
            broken.update(
                match.group(2) for match in _DECLARATION.finditer(structure, start, min(end + 1, len(source)))
            )
    return ParsedSchema(SchemaFile(tuple(declarations)), tuple(diagnostics), frozenset(broken))


def _parse_piece(
    source: str, structure: str, start: int, end: int, lines: Lines
) -> tuple[list[Declaration], list[Diagnostic]]:
    from lark.exceptions import UnexpectedInput

    text = source[start:end]
    diagnostics: list[Diagnostic] = []
    while True:
        try:
            tree = _parser().parse(text)
        except UnexpectedInput as error:
            diagnostic = _explain(error, source, start, end, lines)
            diagnostics.append(diagnostic)
            item = _bad_item_line(structure, start, end, diagnostic.span, lines)
            if item is None or len(diagnostics) > MAX_DIAGNOSTICS:
                return [], diagnostics
            first, last = item[0] - start, item[1] - start
            text = text[:first] + " " * (last - first) + text[last:]
        else:
            builder = TreeBuilder(lines, start)
            declarations = builder.declarations(tree)
            diagnostics.extend(builder.diagnostics)
            return ([] if diagnostics else declarations), diagnostics


def _bad_item_line(structure: str, start: int, end: int, span: Span, lines: Lines) -> tuple[int, int] | None:
    """The bounds of the line at fault, if it is one whole item of a body and can be left out without harm."""
    line = span.line
    if line == lines.line_of(start) or line >= len(lines):
        return None
    first, last = lines.start_of(line), lines.start_of(line + 1) - 1
    text = structure[first:last]
    following = structure[last + 1 : lines.start_of(line + 2) if line + 2 <= len(lines) else end]
    whole = _ITEM_LINE.match(text) and _ITEM_OR_END_LINE.match(following) and text.count("(") == text.count(")")
    return (first, last) if whole and last <= end and not set("{}") & set(text) else None


# --- messages ----------------------------------------------------------------------------------------------------


def _explain(error: UnexpectedInput, source: str, start: int, end: int, lines: Lines) -> Diagnostic:
    from lark.exceptions import UnexpectedToken

    expected: set[str]
    if isinstance(error, UnexpectedToken):
        at_end = error.token.type == "$END"
        position = end if at_end else start + (error.pos_in_stream or 0)
        expected = set(error.accepts or error.expected)
    else:
        position = start + (error.pos_in_stream or 0)
        at_end = position >= end
        expected = set(getattr(error, "allowed", None) or ())
    if at_end:
        position = start + len(source[start:end].rstrip())
        what = "the end of the file" if end == len(source) else "the next declaration"
        if end < len(source):
            found = _WORD.match(source, end)
            position, length = end, len(found.group()) if found else 1
        else:
            length = 0
        return Diagnostic("S100", f"{_wanted(expected)}, found {what}", lines.span(position, position + length))
    special = _lexical(source, position, lines)
    if special is not None:
        return special
    match = _WORD.match(source, position)
    word = match.group() if match else source[position]
    span = lines.span(position, position + len(word))
    hint = did_you_mean(word, _KEYWORDS) if expected & {"NODE", "EDGE", "INTERFACE"} else None
    if word == ";":
        hint = "items are separated by white space or a comma"
    return Diagnostic("S100", f"{_wanted(expected)}, found `{word}`", span, hint=hint)


def _lexical(source: str, position: int, lines: Lines) -> Diagnostic | None:
    line_end = source.find("\n", position)
    line_end = len(source) if line_end < 0 else line_end
    character = source[position]
    if source.startswith("/*", position):
        return Diagnostic("S103", "this comment is never closed", lines.span(position, position + 2), hint="add `*/`")
    if character == '"' and not re.compile(r'"(?:[^"\\\n]|\\[^\n])*"').match(source, position):
        span = lines.span(position, line_end)
        return Diagnostic("S102", "this string is not closed on its line", span, hint='add `"`; a line break is `\\n`')
    if not re.match(r"[\w@(){}\[\]<>:?,=.\"/;-]", character, re.ASCII):
        hint = "use double quotes" if character in "'`“”„" else None
        if character.isalpha():
            hint = "names are made of the letters a to z, digits and `_`"
        return Diagnostic(
            "S101", f"`{_shown(character)}` has no meaning here", lines.span(position, position + 1), hint=hint
        )
    return None


def _shown(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"


def _wanted(expected: set[str]) -> str:
    if {"NODE", "EDGE", "INTERFACE"} <= expected and "LBRACE" not in expected:
        return "expected a declaration (`interface`, `node` or `edge`)"
    words = sorted({_READABLE.get(name, name) for name in expected})
    if not words:
        return "something else was expected"
    if len(words) == 1:
        return f"expected {words[0]}"
    return f"expected {', '.join(words[:-1])} or {words[-1]}"
