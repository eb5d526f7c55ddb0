"""Findings in the two languages: a code, a position, the line with a caret, and a suggestion.

The errors that carry them are in `errors`, with the rest of the family.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text: offsets are 0-based and half-open, line and column are 1-based."""

    start: int
    end: int
    line: int
    column: int


UNNAMED = "<input>"
"""What a text is called that came from no file."""


class Severity(StrEnum):
    """Only errors fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a source text."""

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    hint: str | None = None

    def render(self, source: str, filename: str = UNNAMED) -> str:
        """The finding as a compiler prints it: place, code, message, the line and a caret under the span."""
        row, column = self.span.line, self.span.column
        text, column = _window(_line_at(source, self.span.start), column)
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        gutter = " " * len(str(row))
        out = [
            f"{self.severity.value}[{self.code}]: {self.message}",
            f"{gutter}--> {filename}:{self.span.line}:{self.span.column}",
            f"{gutter} |",
            f"{row} | {text}",
            f"{gutter} | {' ' * (column - 1)}{'^' * width}",
        ]
        if self.hint:
            out.append(f"{gutter} = help: {self.hint}")
        return "\n".join(out)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data for programs."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "line": self.span.line,
            "column": self.span.column,
            "start": self.span.start,
            "end": self.span.end,
            "hint": self.hint,
        }


def _line_at(source: str, offset: int) -> str:
    """The line that holds an offset. Only a line feed ends a line; what cannot be printed shows as a space."""
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    line = source[start : len(source) if end < 0 else end].removesuffix("\r")
    return "".join(character if character.isprintable() else " " for character in line)


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a long line around a column, and the column within it."""
    if len(line) <= _WIDEST_LINE:
        return line, column
    start = max(0, column - _WIDEST_LINE // 2)
    part = line[start : start + _WIDEST_LINE]
    return ("…" + part, column - start + 1) if start else (part, column)


_WIDEST_LINE = 160


_MOST_CANDIDATES = 500
"""Names that are compared letter by letter; of more, only those that look alike are."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, if one is close enough to be meant."""
    candidates = sorted(set(known))
    by_case = {candidate.lower(): candidate for candidate in candidates}
    if name.lower() in by_case:
        return by_case[name.lower()]
    if len(candidates) > _MOST_CANDIDATES:
        candidates = [c for c in candidates if c[:1] == name[:1] and abs(len(c) - len(name)) <= 2][:_MOST_CANDIDATES]
    found = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that suggests the nearest known name, or None."""
    found = nearest(name, known)
    return f"did you mean `{found}`?" if found else None
