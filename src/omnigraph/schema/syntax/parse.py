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

from omnigraph.diagnostics import Diagnostic, Span
from omnigraph.errors import SchemaError
from omnigraph.schema.limits import MAX_DIAGNOSTICS, MAX_FINDINGS, MAX_RETRIES, MAX_SOURCE_LENGTH, RECOVERY_BUDGET
from omnigraph.schema.syntax.source import Lines, without_text
from omnigraph.schema.syntax.syntax import Declaration, SchemaFile
from omnigraph.schema.syntax.syntax_errors import explain, is_cut_short
from omnigraph.schema.syntax.tree import TreeBuilder

if TYPE_CHECKING:
    from lark import Lark

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DECLARATION = re.compile(
    # A keyword that starts a line, with what follows one; or a misspelt one that starts a line at its very beginning.
    rf"^[ \t]*((?:interface|node|edge)\s+({_NAME})\s*(?=[:{{@]|implements\b)"
    rf"|(?<![ \t])[a-zA-Z]+[ \t]+({_NAME})[ \t]*(?=\{{|implements\b|:[ \t]*{_NAME}[ \t]*->))",
    re.MULTILINE,
)
_ITEM_LINE = re.compile(r"[ \t]*[@A-Za-z_]")
_ITEM_OR_END_LINE = re.compile(rf"\s*(?:@|\}}|{_NAME}\s*:|$)")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """What could be parsed and what was wrong.

    `incomplete` names declarations that are in `file` without the parts that were wrong, `broken` those that are not
    in it at all.
    """

    file: SchemaFile
    diagnostics: tuple[Diagnostic, ...]
    incomplete: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()


def parse_schema(source: str, filename: str = "<input>") -> SchemaFile:
    """The syntax tree of a `.pg` text. Raises SchemaError with every syntax error."""
    parsed = parse_tolerantly(source)
    if parsed.diagnostics:
        raise SchemaError(bounded(parsed.diagnostics), source, filename)
    return parsed.file


def parse_tolerantly(source: str) -> ParsedSchema:
    """Parse as much as possible; never raises."""
    from lark.exceptions import UnexpectedInput

    lines = Lines(source)
    unreadable = _unreadable(source, lines)
    if unreadable is not None:
        return ParsedSchema(SchemaFile(()), (unreadable,))
    try:
        tree = _parser().parse(source)
    except UnexpectedInput:
        return _parse_pieces(source, lines)
    builder = TreeBuilder(lines)
    declarations = builder.declarations(tree)
    return ParsedSchema(
        SchemaFile(tuple(declarations)), tuple(builder.diagnostics), frozenset(builder.names_with_findings)
    )


def bounded(diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The first findings, with a last one that says that there are more."""
    if len(diagnostics) <= MAX_DIAGNOSTICS:
        return diagnostics
    shown = diagnostics[: MAX_DIAGNOSTICS - 1]
    return (*shown, Diagnostic("S108", "there are more errors; they are not shown", diagnostics[len(shown)].span))


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
        return Diagnostic("S106", message, lines.span(0, 0), hint="split it into several graphs")
    surrogate = _LONE_SURROGATE.search(source)
    if surrogate:
        message = f"half of a surrogate pair (U+{ord(surrogate.group()):04X}) is not a character"
        return Diagnostic("S101", message, lines.span(*surrogate.span()), hint="save the file as UTF-8")
    return None


# --- recovery ----------------------------------------------------------------------------------------------------


def _parse_pieces(source: str, lines: Lines) -> ParsedSchema:
    declarations: list[Declaration] = []
    diagnostics: list[Diagnostic] = []
    incomplete: set[str] = set()
    broken: set[str] = set()
    structure = without_text(source)
    found = {match.start(1): match.group(2) or match.group(3) for match in _DECLARATION.finditer(structure)}
    for start, end in pairwise(sorted({0, *found, len(source)})):
        piece = _Piece(source, structure, start, end, lines)
        piece.parse(
            1 if len(diagnostics) >= MAX_DIAGNOSTICS else max(1, min(MAX_RETRIES, RECOVERY_BUDGET // (end - start)))
        )
        declarations.extend(piece.declarations)
        diagnostics.extend(piece.diagnostics)
        incomplete.update(piece.incomplete)
        if not piece.declarations and start in found:
            broken.add(found[start])
        if len(diagnostics) >= MAX_FINDINGS:
            break
    return ParsedSchema(SchemaFile(tuple(declarations)), tuple(diagnostics), frozenset(incomplete), frozenset(broken))


class _Piece:
    """The text from the start of one declaration to the start of the next."""

    def __init__(self, source: str, structure: str, start: int, end: int, lines: Lines) -> None:
        self._source = source
        self._structure = structure
        self._start = start
        self._end = end
        self._lines = lines
        self.declarations: list[Declaration] = []
        self.diagnostics: list[Diagnostic] = []
        self.incomplete: set[str] = set()

    def parse(self, attempts: int) -> None:
        """Parse the piece, leaving out one bad line after another as long as that is safe."""
        from lark.exceptions import UnexpectedInput

        text = self._source[self._start : self._end]
        for _ in range(attempts):
            try:
                tree = _parser().parse(text)
            except UnexpectedInput as error:
                diagnostic = explain(error, self._source, self._structure, self._start, self._end, self._lines)
                self.diagnostics.append(diagnostic)
                line = None if is_cut_short(error) else self._bad_item_line(diagnostic.span)
                if line is None:
                    return
                first, last = line
                text = text[:first] + " " * (last - first) + text[last:]
            else:
                builder = TreeBuilder(self._lines, self._start)
                self.declarations = builder.declarations(tree)
                self.incomplete = set(builder.names_with_findings)
                if self.diagnostics:
                    self.incomplete.update(declaration.name.text for declaration in self.declarations)
                self.diagnostics.extend(builder.diagnostics)
                return

    def _bad_item_line(self, span: Span) -> tuple[int, int] | None:
        """The bounds, within the piece, of the line at fault, if it is one whole item and can be left out safely."""
        line = span.line
        if line == self._lines.line_of(self._start) or line >= len(self._lines):
            return None
        first, last = self._lines.start_of(line), self._lines.start_of(line + 1) - 1
        text = self._structure[first:last]
        following = self._structure.find("\n", last + 1, self._end)
        rest = self._structure[last + 1 : self._end if following < 0 else following]
        balanced = text.count("(") == text.count(")") and not set("{}") & set(text)
        if last > self._end or not balanced or not _ITEM_LINE.match(text) or not _ITEM_OR_END_LINE.match(rest):
            return None
        return first - self._start, last - self._start
