"""Text to JSON values, one record after the other, numbered: JSON lines and streams of values over several lines.

A text that is no JSON is one bad record, not the end: reading goes on at the next line that starts a value. Numbers
stay what they are (an integer of any size, or a float); a repeated key is an error rather than a silent choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.schema.floats import parse_float

LONGEST_RECORD = 256 * 1024 * 1024
"""Characters of one value. Beyond it the text is not a stream of records."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A stretch of text that is not a JSON value."""

    reason: str


class RepeatedKey(ValueError):
    """An object that names a key twice."""


def one_value_per_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, as a JSON decoder hands them over. Raises RepeatedKey."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RepeatedKey(f"the key {json.dumps(key)} comes twice")
            seen.add(key)
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


class MinusZero(int):
    """`-0`: as an integer it is 0, as a float -0.0."""


MOST_DIGITS = 4_000
"""Digits of an integer. No type holds a tenth of it, and Python refuses to read a few more."""


def bounded_integer(text: str) -> int:
    """The integer of a text that a JSON decoder hands over. Raises ValueError for one that nothing could hold."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text.lstrip('-'))} digits is more than any type holds")
    return MinusZero() if text == "-0" else int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=one_value_per_key,
    parse_constant=_no_constant,
    parse_int=bounded_integer,
    parse_float=parse_float,
)


_NOT_TEXT = "\udcff"
"""What stands in front of a line that is no UTF-8: half a character, which decoded text never holds."""


def line_text(line: bytes) -> str:
    """The text of a line, without its line end. `RecordReader` knows a line that is no UTF-8 by the mark it gets."""
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return _NOT_TEXT


def parse_line(line: str) -> Any:
    """The one JSON value of a line. `Malformed` when it is none."""
    values = list(_values(line))
    if len(values) == 1:
        return values[0]
    return Malformed("there is no value") if not values else Malformed("there is more than one value")


def _values(text: str) -> Iterator[Any]:
    """The values of a complete text; the last is `Malformed` where it breaks off."""
    position = _next(text, 0)
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            yield Malformed(f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}")
            return
        except RecursionError:
            yield Malformed("it is nested too deeply")
            return
        except ValueError as error:
            yield Malformed(f"it is not JSON: {error}")
            return
        yield value
        position = _next(text, position)


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


@dataclass
class RecordReader:
    """Reads values from lines of text and numbers them. Lines of an unfinished value wait for the rest of it."""

    next_record: int = 1
    _waiting: list[str] = field(default_factory=list)
    _length: int = 0
    _lost: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether a value has begun that no line has ended yet, or the end of a broken one is still to be found."""
        return bool(self._waiting) or self._lost

    def feed(self, lines: Iterable[str]) -> Iterator[tuple[int, Any]]:
        """The values that these lines end, each with its record number."""
        for line in lines:
            yield from self._line(line)

    def finish(self) -> Iterator[tuple[int, Any]]:
        """What is left when the source ends."""
        while self._waiting:
            yield from self._give_up("it is not JSON: the text ends within it")

    def _line(self, line: str) -> Iterator[tuple[int, Any]]:
        if line == _NOT_TEXT:
            yield from self._give_up("it is not text in UTF-8")
            return
        if self._lost and not line.startswith("{"):
            return
        self._lost = False
        if not self._waiting and not line.strip():
            return
        self._waiting.append(line)
        self._length += len(line)
        if len(self._waiting) > 1 and not line.rstrip().endswith(("}", "]")) and self._length < LONGEST_RECORD:
            return
        text = "\n".join(self._waiting)
        position = _next(text, 0)
        while position < len(text):
            try:
                value, position = _DECODER.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                rest = text[position:]
                if self._may_go_on(error, text):
                    self._waiting, self._length = rest.split("\n"), len(rest)
                    return
                self._waiting = rest.split("\n")
                yield from self._give_up(_reason(error, position))
                return
            yield self._numbered(value)
            position = _next(text, position)
        self._waiting, self._length = [], 0

    def _may_go_on(self, error: Exception, text: str) -> bool:
        """Whether more lines could still make it a value: it broke off at the very end, outside of a string."""
        return (
            isinstance(error, json.JSONDecodeError)
            and error.pos >= len(text.rstrip())
            and not error.msg.startswith("Unterminated")
            and self._length < LONGEST_RECORD
        )

    def _give_up(self, reason: str) -> Iterator[tuple[int, Any]]:
        """Report the value that began on the first waiting line; go on at the next line that starts with `{`."""
        lines, self._waiting, self._length = self._waiting, [], 0
        self._lost = True
        yield self._numbered(Malformed(reason))
        yield from self.feed(lines[1:])

    def _numbered(self, value: Any) -> tuple[int, Any]:
        record = self.next_record
        self.next_record += 1
        return record, value


def _reason(error: Exception, start: int) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos - start + 1}"
    return f"it is not JSON: {error}"
