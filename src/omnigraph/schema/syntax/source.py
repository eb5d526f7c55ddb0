"""Source text with its lines: turns offsets into spans and finds comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.diagnostics import Span

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"|//[^\n]*|/\*[\s\S]*?\*/')


class Lines:
    """The starts of all lines of a text. Only a line feed ends a line, as in `//` comments."""

    __slots__ = ("_starts",)

    def __init__(self, source: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", source))]

    def span(self, start: int, end: int) -> Span:
        """The span of `source[start:end]`."""
        line = bisect_right(self._starts, start)
        return Span(start, end, line, start - self._starts[line - 1] + 1)

    def line_of(self, offset: int) -> int:
        """The 1-based line that holds this offset."""
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """The offset at which a 1-based line starts."""
        return self._starts[line - 1]

    def __len__(self) -> int:
        return len(self._starts)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its markers, at its offsets."""

    text: str
    start: int
    end: int


def comments_of(source: str) -> Iterator[Comment]:
    """Every comment of a text that lexes, in order."""
    for match in _STRING_OR_COMMENT.finditer(source):
        if match.group()[0] == "/":
            yield Comment(match.group(), match.start(), match.end())


def without_text(source: str) -> str:
    """The same text with strings and comments blanked out, offsets kept: what is left is structure."""
    return _STRING_OR_COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)
