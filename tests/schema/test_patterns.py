"""The dialect of `@check`: every engine that checks gives the same answer, in linear time."""

from __future__ import annotations

import re
import time

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.schema.limits import MAX_PATTERN_LENGTH
from omnigraph.schema.patterns import BadPattern, anchored_pattern, matches, portable_pattern

ALPHABET = "ab1_- é\nſK\t.\x0b٣"


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        ("[a-z0-9-]+", ["a-1"], ["", "A", "a b", "a\n"]),
        ("a", ["a"], ["ab", "ba", "aa"]),
        ("^a$", ["a"], ["a\n", "ba"]),
        ("^a|b$", ["a", "b"], ["ab", "ax", "xb"]),
        (".", ["x", "é", "😀", "\r"], ["\n", "", "xx"]),
        (r"\d+", ["123"], ["٣", "a"]),
        (r"\w+", ["aZ_9"], ["é", "-"]),
        (r"\s", [" ", "\t", "\n", "\r", "\f"], ["\x0b", "\u00a0", "x"]),
        (r"\D\W\S", ["x-x", "é é"], ["1-x", "xax", "x- "]),
        (r"[^\d\s]{2}", ["ab"], ["a1", "a "]),
        (r"[\D]", ["x"], ["1"]),
        (r"\x41\t\.", ["A\t."], ["A\tx"]),
        (r"[]a]+", ["]a"], ["b"]),
        (r"[a\]\-\\^]+", ["]-\\^a"], ["b"]),
        (r"[a-]", ["a", "-"], ["b"]),
        (r"(?:ab|c)*?", ["", "abc", "cc"], ["a"]),
        (r"(?P<year>\d{4})-(\d{2})", ["2026-01"], ["26-01"]),
        ("a{2}b{1,}c{0,2}", ["aab", "aabbcc"], ["ab", "aabccc"]),
        ("", [""], ["a"]),
        ("a||b", ["", "a", "b"], ["ab"]),
        ("ä+", ["ää"], ["a"]),
        (r"\$\^\{\}\(\)\[\]\|\*\+\?\/\-\ ", ["$^{}()[]|*+?/- "], [""]),
        ("}]", ["}]"], [""]),
    ],
)
def test_the_whole_value_is_matched(pattern: str, accepted: list[str], refused: list[str]) -> None:
    for value in accepted + refused:
        assert everywhere(pattern, value) is (value in accepted), (pattern, value)


@pytest.mark.parametrize(
    ("pattern", "offset", "reason"),
    [
        ("a(?=b)", 1, "look-ahead is not in the dialect"),
        ("(?!b)", 0, "look-ahead is not in the dialect"),
        ("(?<=b)a", 0, "look-behind is not in the dialect"),
        ("(?<!b)a", 0, "look-behind is not in the dialect"),
        (r"(a)\1", 3, "back-references are not in the dialect"),
        (r"(?P<n>a)(?P=n)", 8, "back-references are not in the dialect"),
        (r"\k<n>", 0, "back-references are not in the dialect"),
        ("(?i)a", 0, "flags are not in the dialect"),
        ("(?>a)", 0, "atomic groups are not in the dialect"),
        ("(?#a)", 0, "comments are not in the dialect"),
        ("(a)(?(1)b|c)", 3, "conditions are not in the dialect"),
        ("a++", 1, "possessive quantifiers are not in the dialect"),
        ("a**", 2, "a repetition cannot be repeated; use a group"),
        ("a{2}{3}", 4, "a repetition cannot be repeated; use a group"),
        (r"\bа", 0, "word boundaries are not in the dialect"),
        (r"a\Z", 1, "the whole value is matched anyway"),
        (r"\pL", 0, "Unicode classes are not in the dialect"),
        ("[[:alpha:]]", 1, "POSIX classes are not in the dialect"),
        ("a^b", 1, "`^` can only stand at an end of the pattern: the whole value is matched anyway"),
        ("a$b", 1, "`$` can only stand at an end of the pattern: the whole value is matched anyway"),
        ("(^a)", 1, "`^` can only stand at an end of the pattern: the whole value is matched anyway"),
        ("(a", 0, "this group is not closed"),
        ("a)", 1, "`)` closes no group"),
        ("[a", 0, "this class is not closed"),
        ("[z-a]", 2, "this range runs backwards"),
        (r"[a-\d]", 2, "a range runs between two characters"),
        (r"[^\d\D]", 0, "this class matches no character"),
        ("*a", 0, "there is nothing for `*` to repeat"),
        ("a{x}", 1, "a count is written `{n}`, `{n,}` or `{n,m}`; write `\\{` for a brace"),
        ("{a", 0, "write `\\{` for a brace"),
        ("a{,3}", 1, "a count is written `{n}`, `{n,}` or `{n,m}`; write `\\{` for a brace"),
        ("a{1001}", 1, "a count is at most 1000"),
        ("a{3,2}", 1, "the least count is above the most"),
        ("(a{100}){11}", 0, "repetitions multiply to more than 1000"),
        ("(?P<1>a)", 0, "the name of this group is not one"),
        ("a\\", 1, "a backslash at the end escapes nothing"),
        (r"\q", 0, r"there is no escape `\q`"),
        (r"\xg1", 0, r"`\x` needs two hexadecimal digits"),
        ("(" * 51 + ")" * 51, 50, "groups are nested more than 50 deep"),
        ("a" * (MAX_PATTERN_LENGTH + 1), 0, "a pattern has at most 1000 characters"),
    ],
)
def test_what_engines_disagree_on_is_refused(pattern: str, offset: int, reason: str) -> None:
    with pytest.raises(BadPattern) as caught:
        portable_pattern(pattern)
    assert (str(caught.value), caught.value.offset) == (reason, offset)


def everywhere(pattern: str, value: str) -> bool:
    """The answer of every engine, which must be one."""
    portable = portable_pattern(pattern)
    answers = {
        bool(re.fullmatch(portable, value)),
        bool(pc.match_substring_regex(pa.scalar(value), anchored_pattern(pattern)).as_py()),
        bool(duckdb.execute("select regexp_full_match(?, ?)", [value, portable]).fetchone()[0]),  # type: ignore[index]
        matches(pattern, value),
    }
    assert len(answers) == 1, (pattern, value, portable)
    return answers.pop()


def patterns() -> st.SearchStrategy[str]:
    atom = st.sampled_from(
        (
            "a",
            "b",
            "1",
            "_",
            "-",
            "é",
            ".",
            r"\d",
            r"\w",
            r"\s",
            r"\D",
            r"\W",
            r"\S",
            "[ab]",
            "[^a]",
            r"[\w-]",
            r"\.",
            " ",
        )
    ) | st.sampled_from((r"[^\s_]", r"\n", r"\x0b", r"\-", "[a-z]", r"[\d٣]"))
    return st.recursive(
        atom,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map("".join)
            | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
            | st.tuples(inner, st.sampled_from(("*", "+", "?", "{2}", "{0,2}", "*?", "+?"))).map(
                lambda p: f"(?:{p[0]}){p[1]}"
            )
        ),
        max_leaves=6,
    )


@settings(max_examples=150, deadline=None)
@given(patterns(), st.lists(st.text(ALPHABET, max_size=5), min_size=3, max_size=8))
def test_all_engines_agree(pattern: str, values: list[str]) -> None:
    for value in values:
        everywhere(pattern, value)


@settings(max_examples=300, deadline=None)
@given(st.text("ab1.*+?{}()[]|\\^$-,dwsDx:P<>=!#é", max_size=14))
def test_any_text_is_a_pattern_of_all_engines_or_is_refused(text: str) -> None:
    try:
        portable_pattern(text)
    except BadPattern:
        return
    everywhere(text, "ab")


def test_an_evil_pattern_does_not_hold_the_compiler_up() -> None:
    from omnigraph.schema.compiler.compile import check_schema

    source = f'node A {{ a: String @default("{"a" * 40}") @check(a, "(a+)+b") }}'
    start = time.perf_counter()
    assert [d.code for d in check_schema(source).diagnostics] == ["S156"]
    assert time.perf_counter() - start < 60
