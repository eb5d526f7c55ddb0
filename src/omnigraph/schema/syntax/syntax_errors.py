"""Syntax errors in words: what was expected, what was found, and the mistake that was probably made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from omnigraph.diagnostics import Diagnostic, did_you_mean
from omnigraph.schema.syntax.source import Lines

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_KNOWN_CHARACTER = re.compile(r"[\w@(){}\[\]<>:?,=.\"/;-]", re.ASCII)
_KEYWORDS = ("interface", "node", "edge")
_STARTS = {"INTERFACE", "NODE", "EDGE"}
_READABLE = {
    "$END": "the end of the file",
    "ANNOTATION_NAME": "an annotation",
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
    "ARROW": "`->`",
}


def explain(error: UnexpectedInput, source: str, structure: str, start: int, end: int, lines: Lines) -> Diagnostic:
    """The diagnostic for a parser's error within `source[start:end]`."""
    expected: set[str] = set(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    expected |= set(getattr(error, "allowed", None) or ())
    if is_cut_short(error):
        return _cut_short(expected, source, structure, start, end, lines)
    position = start + (error.pos_in_stream or 0)
    lexical = _lexical(source, position, lines)
    if lexical is not None:
        return lexical
    match = _WORD.match(source, position)
    word = match.group() if match else ""
    hint = did_you_mean(word, _KEYWORDS) if expected & _STARTS and "NAME" not in expected else None
    if word == ";" and "RBRACE" in expected:
        hint = "items are separated by white space or a comma"
    span = lines.span(position, position + len(word))
    return Diagnostic("S100", f"{_wanted(expected)}, found `{word}`", span, hint=hint)


def is_cut_short(error: UnexpectedInput) -> bool:
    """Whether the text ended where more was expected."""
    return getattr(getattr(error, "token", None), "type", None) == "$END"


def _cut_short(expected: set[str], source: str, structure: str, start: int, end: int, lines: Lines) -> Diagnostic:
    """A declaration that ends too early, at the end of the file or where the next one starts."""
    hint = None
    opened = structure.rfind("{", start, end)
    if "RBRACE" in expected and opened >= 0:
        hint = f"the `{{` on line {lines.line_of(opened)} is not closed"
    if end < len(source):
        word = _WORD.match(source, end)
        span = lines.span(end, word.end() if word else end)
        return Diagnostic("S100", f"{_wanted(expected)}, found the next declaration", span, hint=hint)
    last = max(start, len(source.rstrip()))
    return Diagnostic("S100", f"{_wanted(expected)}, found the end of the file", lines.span(last, last), hint=hint)


def _lexical(source: str, position: int, lines: Lines) -> Diagnostic | None:
    character = source[position]
    if source.startswith("/*", position):
        return Diagnostic("S103", "this comment is never closed", lines.span(position, position + 2), hint="add `*/`")
    if character == '"' and not _STRING.match(source, position):
        line = source[position:].split("\n", 1)[0]
        span = lines.span(position, position + len(line.rstrip()))
        return Diagnostic("S102", "this string is not closed on its line", span, hint='add `"`; a line break is `\\n`')
    if _KNOWN_CHARACTER.match(character):
        return None
    hint = None
    if character in "'`“”„«»‘’":
        hint = "strings stand in double quotes"
    elif character.isalpha():
        hint = "names are made of the letters a to z, digits and `_`"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Diagnostic("S101", f"`{shown}` has no meaning here", lines.span(position, position + 1), hint=hint)


def _wanted(expected: set[str]) -> str:
    if "NAME" in expected:
        expected = expected - _STARTS - {"IMPLEMENTS"}  # there they are names as well
    if expected >= _STARTS:
        rest = expected - _STARTS - {"$END"}
        return "expected " + _any_of({_READABLE[name] for name in rest} | {"a declaration"})
    return "expected " + _any_of({_READABLE[name] for name in expected}) if expected else "something else was expected"


def _any_of(words: set[str]) -> str:
    ordered = sorted(words)
    return ordered[0] if len(ordered) == 1 else f"{', '.join(ordered[:-1])} or {ordered[-1]}"
