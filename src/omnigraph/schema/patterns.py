r"""The patterns of `@check`: one dialect that every engine reads the same way.

A pattern is matched against the whole value. It is made of

* characters, `.` (anything but a line feed), and classes `[a-z0-9_]`, `[^…]`;
* `\d` `\w` `\s` and `\D` `\W` `\S`, for ASCII digits, word characters and white space (tab, line feed, form feed,
  carriage return, space);
* escapes `\t` `\n` `\r` `\f` `\v` `\xHH`, and a backslash before any punctuation;
* groups `(…)`, `(?:…)`, `(?P<name>…)`, alternatives `a|b`;
* `*` `+` `?` `{n}` `{n,}` `{n,m}` with counts up to 1000, each also in its lazy form;
* `^` at the very start and `$` at the very end of an alternative outside all groups, where they change nothing.

Look-around, back-references, flags, word boundaries, possessive quantifiers, atomic groups, POSIX and Unicode classes
are refused: engines disagree on them or run them in exponential time. `portable_pattern` rewrites what is left into a
form without any construct that Python's `re` and RE2 (in DuckDB and Arrow) read differently.
"""

from __future__ import annotations

from functools import lru_cache

from omnigraph.schema.limits import MAX_PATTERN_LENGTH, MAX_PATTERN_NESTING, MAX_PATTERN_REPEAT

Ranges = list[tuple[int, int]]

_LAST = 0x10FFFF
_SETS: dict[str, Ranges] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)],
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_REFUSED_ESCAPES = {
    "b": "word boundaries are not in the dialect",
    "B": "word boundaries are not in the dialect",
    "A": "the whole value is matched anyway",
    "Z": "the whole value is matched anyway",
    "z": "the whole value is matched anyway",
    "p": "Unicode classes are not in the dialect",
    "P": "Unicode classes are not in the dialect",
    "k": "back-references are not in the dialect",
}
_REFUSED_GROUPS = {
    "?=": "look-ahead is not in the dialect",
    "?!": "look-ahead is not in the dialect",
    "?<=": "look-behind is not in the dialect",
    "?<!": "look-behind is not in the dialect",
    "?P=": "back-references are not in the dialect",
    "?>": "atomic groups are not in the dialect",
    "?#": "comments are not in the dialect",
    "?(": "conditions are not in the dialect",
}


class BadPattern(ValueError):
    """A pattern outside the dialect; `offset` is the place of the trouble within the pattern."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@lru_cache(maxsize=1024)
def portable_pattern(pattern: str) -> str:
    """The same pattern in the form that every engine reads alike, without anchors. Raises BadPattern.

    Use it as `re.fullmatch(p, v)`, `regexp_full_match(v, p)` in DuckDB, or `anchored_pattern` where an engine searches.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadPattern(f"a pattern has at most {MAX_PATTERN_LENGTH} characters", 0)
    return _Reader(pattern).read()


def anchored_pattern(pattern: str) -> str:
    r"""`portable_pattern` between `\A` and `\z`, for engines of the RE2 family that search within the value."""
    return rf"\A(?:{portable_pattern(pattern)})\z"


def matches(pattern: str, value: str) -> bool:
    """Whether the whole value matches, by Arrow's RE2: linear time, whatever the pattern."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.scalar(value), anchored_pattern(pattern)).as_py())


class _Reader:
    """Reads a pattern once from left to right and writes its portable form."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> str:
        text, _ = self._alternatives()
        if self._at < len(self._text):
            raise BadPattern("`)` closes no group", self._at)
        return text

    def _alternatives(self) -> tuple[str, int]:
        """One or more alternatives; with the largest product of repetition counts within."""
        out: list[str] = []
        repeat = 1
        while True:
            text, inner = self._sequence()
            out.append(text)
            repeat = max(repeat, inner)
            if self._peek() != "|":
                return "|".join(out), repeat
            self._at += 1

    def _sequence(self) -> tuple[str, int]:
        out: list[str] = []
        repeat = 1
        if self._depth == 0 and self._peek() == "^":
            self._at += 1
        while (character := self._peek()) not in ("", "|", ")"):
            if character == "$" and self._depth == 0 and self._text[self._at + 1 : self._at + 2] in ("", "|"):
                self._at += 1
                break
            start = self._at
            atom, inner = self._atom(character)
            quantifier, count = self._quantifier()
            repeat = max(repeat, inner * count)
            if repeat > MAX_PATTERN_REPEAT:
                raise BadPattern(f"repetitions multiply to more than {MAX_PATTERN_REPEAT}", start)
            out.append(atom + quantifier)
        return "".join(out), repeat

    def _atom(self, character: str) -> tuple[str, int]:
        start = self._at
        if character == "(":
            return self._group()
        self._at += 1
        if character == "[":
            return _class(self._class(start)), 1
        if character == ".":
            return _class(_complement([(0x0A, 0x0A)])), 1
        if character == "\\":
            ranges = self._escape(start)
            return (_literal(ranges[0][0]) if _is_single(ranges) else _class(ranges)), 1
        if character in "*+?":
            raise BadPattern(f"there is nothing for `{character}` to repeat", start)
        if character in "^$":
            raise BadPattern(
                f"`{character}` can only stand at an end of the pattern: the whole value is matched anyway", start
            )
        if character == "{":
            raise BadPattern("write `\\{` for a brace", start)
        return _literal(ord(character)), 1

    def _group(self) -> tuple[str, int]:
        start = self._at
        self._at += 1
        if self._text.startswith("?", self._at):
            self._group_head(start)
        self._depth += 1
        if self._depth > MAX_PATTERN_NESTING:
            raise BadPattern(f"groups are nested more than {MAX_PATTERN_NESTING} deep", start)
        text, repeat = self._alternatives()
        self._depth -= 1
        if self._peek() != ")":
            raise BadPattern("this group is not closed", start)
        self._at += 1
        return f"(?:{text})", repeat

    def _group_head(self, start: int) -> None:
        rest = self._text[self._at :]
        if rest.startswith("?:"):
            self._at += 2
            return
        if rest.startswith("?P<"):
            name, closed, _ = rest[3:].partition(">")
            if closed and name.isidentifier() and name.isascii():
                self._at += 4 + len(name)
                return
            raise BadPattern("the name of this group is not one", start)
        for head, reason in _REFUSED_GROUPS.items():
            if rest.startswith(head):
                raise BadPattern(reason, start)
        raise BadPattern("flags are not in the dialect", start)

    def _quantifier(self) -> tuple[str, int]:
        start = self._at
        character = self._peek()
        count = 1
        if character == "":
            return "", 1
        if character in "*+?":
            self._at += 1
            text = character
        elif character == "{":
            text, count = self._counted()
        else:
            return "", 1
        if self._peek() == "?":
            self._at += 1
            text += "?"
        if self._peek() == "+":
            raise BadPattern("possessive quantifiers are not in the dialect", start)
        if self._peek() != "" and self._peek() in "*?{":
            raise BadPattern("a repetition cannot be repeated; use a group", self._at)
        return text, count

    def _counted(self) -> tuple[str, int]:
        start = self._at
        body, closed, _ = self._text[start + 1 :].partition("}")
        low, comma, high = body.partition(",")
        if not closed or not _is_count(low) or (high and not _is_count(high)):
            raise BadPattern("a count is written `{n}`, `{n,}` or `{n,m}`; write `\\{` for a brace", start)
        most = int(high or low)
        if max(int(low), most) > MAX_PATTERN_REPEAT:
            raise BadPattern(f"a count is at most {MAX_PATTERN_REPEAT}", start)
        if int(low) > most:
            raise BadPattern("the least count is above the most", start)
        self._at += len(body) + 2
        return f"{{{int(low)}{comma}{int(high) if high else ''}}}", max(1, most)

    def _escape(self, start: int) -> Ranges:
        """The characters that an escape stands for; `_at` is behind the backslash."""
        letter = self._peek()
        self._at += 1
        if letter == "":
            raise BadPattern("a backslash at the end escapes nothing", start)
        if letter.lower() in _SETS:
            ranges = _SETS[letter.lower()]
            return ranges if letter.islower() else _complement(ranges)
        if letter in _CONTROLS:
            return [(ord(_CONTROLS[letter]),) * 2]
        if letter == "x":
            digits = self._text[self._at : self._at + 2]
            if len(digits) != 2 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise BadPattern("`\\x` needs two hexadecimal digits", start)
            self._at += 2
            return [(int(digits, 16),) * 2]
        if letter in _REFUSED_ESCAPES:
            raise BadPattern(_REFUSED_ESCAPES[letter], start)
        if letter.isdigit():
            raise BadPattern("back-references are not in the dialect", start)
        if letter.isalpha() or ord(letter) > 126 or ord(letter) < 32:
            raise BadPattern(f"there is no escape `\\{letter}`", start)
        return [(ord(letter),) * 2]

    def _class(self, start: int) -> Ranges:
        negated = self._peek() == "^"
        self._at += negated
        ranges: Ranges = []
        first = True
        while first or self._peek() != "]":
            low = self._class_item(start)
            first = False
            if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
                ranges.extend(low)
                continue
            dash = self._at
            self._at += 1
            high = self._class_item(start)
            if not _is_single(low) or not _is_single(high):
                raise BadPattern("a range runs between two characters", dash)
            if low[0][0] > high[0][0]:
                raise BadPattern("this range runs backwards", dash)
            ranges.append((low[0][0], high[0][0]))
        self._at += 1
        ranges = _complement(ranges) if negated else _merged(ranges)
        if not ranges:
            raise BadPattern("this class matches no character", start)
        return ranges

    def _class_item(self, start: int) -> Ranges:
        character = self._peek()
        if character == "":
            raise BadPattern("this class is not closed", start)
        at = self._at
        self._at += 1
        if character == "\\":
            return self._escape(at)
        if character == "[" and self._peek() != "" and self._peek() in ":.=":
            raise BadPattern("POSIX classes are not in the dialect", at)
        return [(ord(character),) * 2]

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _merged(ranges: Ranges) -> Ranges:
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def _complement(ranges: Ranges) -> Ranges:
    out: Ranges = []
    start = 0
    for low, high in _merged(ranges):
        if low > start:
            out.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        out.append((start, _LAST))
    return out


def _class(ranges: Ranges) -> str:
    """A class as text. Surrogates are no characters and are left out: text in UTF-8 never holds them."""
    out: list[str] = []
    for low, high in ranges:
        pieces = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)] if high >= 0xD800 else [(low, high)]
        for first, last in pieces:
            if first < last:
                out.append(f"{_literal(first)}-{_literal(last)}")
            elif first == last:
                out.append(_literal(first))
    return f"[{''.join(out)}]"


def _literal(code: int) -> str:
    """One character that means itself inside and outside of classes, in every engine."""
    character = chr(code)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if code < 0x7F and not character.isalnum() and character not in " _\"'%,:;<=>@`!/~#&":
        return "\\" + character
    return character
