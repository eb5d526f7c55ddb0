"""Literals of the schema language, and the texts of dates and times, with one meaning for everybody who reads them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

EPOCH_DATE = date(1970, 1, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FIRST_SECOND = (date.min - EPOCH_DATE).days * 86_400
_LAST_SECOND = ((date.max - EPOCH_DATE).days + 1) * 86_400 - 1

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_PLAIN_TO_ESCAPE = {plain: escape for escape, plain in _ESCAPES.items() if escape != "/"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:([Zz])|([+-])([0-9]{2}):?([0-9]{2}))",
    re.ASCII,
)

TOO_FINE = "it has more than six digits of a second, and no finer time is kept"


class BadEscape(ValueError):
    """An escape that strings do not have; `offset` is its place within the literal."""

    def __init__(self, message: str, offset: int, length: int) -> None:
        super().__init__(message)
        self.offset = offset
        self.length = length


def decode_string(text: str) -> str:
    r"""The value of a string literal, quotes included in `text`.

    Escapes are those of JSON: `\"` `\\` `\/` `\n` `\t` `\r` `\b` `\f` and `\uXXXX`, surrogates in pairs only.
    """
    if "\\" not in text:
        return text[1:-1]
    out: list[str] = []
    at, end = 1, len(text) - 1
    while at < end:
        backslash = text.find("\\", at, end)
        if backslash < 0:
            out.append(text[at:end])
            break
        out.append(text[at:backslash])
        letter = text[backslash + 1]
        if letter == "u":
            character, at = _decode_unicode(text, backslash, end)
            out.append(character)
        elif letter in _ESCAPES:
            out.append(_ESCAPES[letter])
            at = backslash + 2
        else:
            raise BadEscape(f"strings have no escape `\\{letter}`", backslash, 2)
    return "".join(out)


def _decode_unicode(text: str, at: int, end: int) -> tuple[str, int]:
    first = _hex4(text, at, end)
    if 0xD800 <= first < 0xDC00 and text[at + 6 : at + 8] == "\\u":
        second = _hex4(text, at + 6, end)
        if 0xDC00 <= second < 0xE000:
            return chr(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), at + 12
    if 0xD800 <= first < 0xE000:
        raise BadEscape("half of a surrogate pair is not a character", at, 6)
    return chr(first), at + 6


def _hex4(text: str, at: int, end: int) -> int:
    digits = text[at + 2 : min(at + 6, end)]
    if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
        raise BadEscape("`\\u` needs four hexadecimal digits", at, min(at + 6, end) - at)
    return int(digits, 16)


def encode_string(value: str) -> str:
    """A string literal for the value; `decode_string` gives the value back."""
    out = ['"']
    for character in value:
        if character in _PLAIN_TO_ESCAPE:
            out.append("\\" + _PLAIN_TO_ESCAPE[character])
        elif character < " ":
            out.append(f"\\u{ord(character):04x}")
        else:
            out.append(character)
    out.append('"')
    return "".join(out)


def parse_date(text: str) -> int:
    """Days since 1970-01-01 of an ISO date `YYYY-MM-DD`. Raises ValueError."""
    if not _DATE.fullmatch(text):
        raise ValueError("a date is written `YYYY-MM-DD`")
    try:
        return (date.fromisoformat(text) - EPOCH_DATE).days
    except ValueError as error:
        raise ValueError("there is no such day") from error


def parse_datetime(text: str) -> int:
    """Microseconds since 1970-01-01T00:00:00Z of an ISO date and time with `Z` or an offset. Raises ValueError.

    Digits beyond microseconds must be zeros: no value is cut. A text without an offset is refused, since nobody could
    say which instant it is.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError("a date and time is written `YYYY-MM-DDTHH:MM:SSZ`, with `Z` or an offset such as `+02:00`")
    day, hour, minute, second, fraction, _, sign, offset_hours, offset_minutes = match.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise ValueError("the time of day is out of bounds")
    if offset_hours and (int(offset_hours) > 23 or int(offset_minutes) > 59):
        raise ValueError("the offset from UTC is out of bounds")
    if (fraction or "")[6:].strip("0"):
        raise ValueError(TOO_FINE)
    seconds = parse_date(day) * 86_400 + int(hour) * 3_600 + int(minute) * 60 + int(second or 0)
    if offset_hours:
        offset = int(offset_hours) * 3_600 + int(offset_minutes) * 60
        seconds += offset if sign == "-" else -offset
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ValueError("in UTC it lies outside the years 1 to 9999")
    return seconds * 1_000_000 + int((fraction or "0")[:6].ljust(6, "0"))


def format_date(days: int) -> str:
    """The ISO text of days since 1970-01-01."""
    return (EPOCH_DATE + timedelta(days=days)).isoformat()


def format_datetime(microseconds: int) -> str:
    """The ISO text in UTC of microseconds since the epoch, with a fraction only where there is one."""
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment.replace(tzinfo=None).isoformat() + "Z"
