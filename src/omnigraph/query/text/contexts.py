"""Words and signs whose meaning their neighbours decide.

A word such as `optional`, `matches` or `case` is a keyword only where nothing else can be meant; so a property, an
edge, a type or an alias may have any of these names. The rules look at the tokens around a word, never at the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from omnigraph.query.text.tokens import KEYWORD_TOKENS, WORD_TOKENS, as_name, retyped, type_at

if TYPE_CHECKING:
    from lark import Token

_LITERALS = frozenset({"STRING", "INTEGER", "FLOAT", "TRUE", "FALSE", "NULL"})
_OPERAND_STARTS = _LITERALS | {
    "LBRACKET",
    "INDEX_OPEN",
    "LPAREN",
    "VARIABLE",
    "PARAMETER",
    "NAME",
    "MINUS",
    "AT",
    "CASE",
}
_OPERAND_ENDS = _LITERALS | {"NAME", "VARIABLE", "PARAMETER", "RPAREN", "RBRACKET"}
_WORD_OPERATORS = frozenset({"IN", "CONTAINS", "STARTS_WITH"})
_SIGNS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})
_OPERAND_FOLLOWS = (
    _SIGNS
    | _WORD_OPERATORS
    | {"WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "DISTINCT", "MATCHES", "ENDS_WITH"}
    | {"LPAREN", "LBRACE", "LBRACKET", "INDEX_OPEN", "COMMA", "COLON"}
)
"""Behind these a value starts, so that a keyword there is the name of a property or an alias."""
_NAMES_FOLLOW = frozenset(
    {"COLON", "EDGE_OPEN", "VBAR", "DOT", "AT", "INSERT", "UPDATE", "DELETE", "QUERY", "AS", "NEW"}
)
"""Behind these a word is a name."""


def retype_words(tokens: list[Token], body: int) -> None:
    """Give the words and signs of a query's body the types that the grammar knows them by."""
    _brackets(tokens, body)
    depth = 0
    cases: list[int] = []
    for index in range(body, len(tokens)):
        kind = tokens[index].type
        if kind == "LBRACE":
            depth += 1
        elif kind == "RBRACE":
            depth -= 1
            if cases and cases[-1] > depth:
                cases.pop()
        elif kind == "NAME":
            inside_case = bool(cases) and cases[-1] == depth
            meant = _keyword(tokens, index, depth, inside_case)
            if meant is not None:
                tokens[index] = retyped(tokens[index], meant)
            if meant == "CASE":
                cases.append(depth + 1)
        elif kind in KEYWORD_TOKENS:
            if type_at(tokens, index + 1) == "COLON" or (kind == "NOT" and _is_not_property(tokens, index)):
                tokens[index] = as_name(tokens[index])
        elif kind == "LT":
            close = _edge_close(tokens, index)
            if close is not None:
                tokens[index] = retyped(tokens[index], "EDGE_OPEN")
                tokens[close] = retyped(tokens[close], "EDGE_CLOSE")
        elif kind == "STAR" and type_at(tokens, index - 1) in {"COLON", "EDGE_OPEN"}:
            tokens[index] = retyped(tokens[index], "EDGE_ANY")
    _labels(tokens, body)


# --- words


def _keyword(tokens: Sequence[Token], index: int, depth: int, inside_case: bool) -> str | None:
    """What a word is, if it is more than a name here."""
    word = tokens[index].value
    if _is_name_place(tokens, index) and word != "new":
        return None
    if word in _BRANCHES:
        return word.upper() if inside_case and not _is_named(tokens, index) else None
    rule = _RULES.get(word)
    return rule(tokens, index, depth) if rule is not None else None


def _is_name_place(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token before says that a name follows; behind a dot it is a name itself, whatever its type."""
    before, further = type_at(tokens, index - 1), type_at(tokens, index - 2)
    if before == "COLON":
        # `$x: case` is a type; in `p: case { … }` and `f(p: case { … })` a value follows.
        return further in {"VARIABLE", "PARAMETER"}
    is_name = before in WORD_TOKENS and further in _OPERAND_FOLLOWS | {"DOT", "AS", "AT"}
    return before in _NAMES_FOLLOW and not is_name


def _is_named(tokens: Sequence[Token], index: int) -> bool:
    return type_at(tokens, index + 1) in {"COLON", "DOT"}


def _block(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    """`optional { … }`: braces that are not the bounds of an edge, as in `$a optional{1,2} $b`."""
    opens = type_at(tokens, index + 1) == "LBRACE"
    is_edge = type_at(tokens, index - 1) == "VARIABLE" and _is_bounds(tokens, index + 1)
    return str(tokens[index].value).upper() if opens and not is_edge and depth > 1 else None


def _is_bounds(tokens: Sequence[Token], brace: int) -> bool:
    """Whether braces hold nothing but numbers, as in `knows{1,3}`; empty ones hold no clauses."""
    at = brace + 1
    while type_at(tokens, at) in {"INTEGER", "MINUS", "COMMA"}:
        at += 1
    return at > brace + 1 and type_at(tokens, at) == "RBRACE"


def _part(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    """`with { … }` and `having { … }`, behind the block before them."""
    following = index + 1
    if type_at(tokens, following) == "NAME" and tokens[following].value == "distinct":
        following += 1
    opens = type_at(tokens, following) == "LBRACE"
    return str(tokens[index].value).upper() if depth == 1 and opens else None


def _offset(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    """`offset 10` behind a block or a limit; in a `where` it may be a property."""
    counted = type_at(tokens, index + 1) in {"INTEGER", "MINUS", "PARAMETER", "VARIABLE"}
    return "OFFSET" if depth == 1 and counted and _ends_operand(tokens, index - 1) else None


def _distinct(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    previous, following = type_at(tokens, index - 1), type_at(tokens, index + 1)
    if previous in {"RETURN", "WITH"}:
        return "DISTINCT" if following == "LBRACE" and depth == 1 else None
    values = _OPERAND_STARTS | KEYWORD_TOKENS
    return "DISTINCT" if previous == "LPAREN" and following in values - _WORD_OPERATORS - {"AND", "OR"} else None


def _new(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    if type_at(tokens, index - 1) != "INSERT" or type_at(tokens, index + 1) not in WORD_TOKENS:
        return None
    behind = type_at(tokens, index + 2)
    return "NEW" if behind == "LBRACE" or (behind == "NAME" and tokens[index + 2].value == "from") else None


def _from(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    named = type_at(tokens, index - 2) in {"INSERT", "NEW"} and type_at(tokens, index - 1) in WORD_TOKENS
    return "FROM" if named and type_at(tokens, index + 1) in {"PARAMETER", "VARIABLE"} else None


def _case(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    opens = type_at(tokens, index + 1) == "LBRACE" and type_at(tokens, index + 2) == "NAME"
    return "CASE" if opens and tokens[index + 2].value == "when" and not _is_named(tokens, index + 2) else None


def _is(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    return "IS" if _tests_null(tokens, index) and _ends_operand(tokens, index - 1) else None


def _operator(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    """`$p.name matches "x"`; the parser knows where it is an edge between two variables (see `reads_as_edge`)."""
    starts = type_at(tokens, index + 1) in _OPERAND_STARTS | (KEYWORD_TOKENS - _WORD_OPERATORS - {"AND", "OR"})
    return str(tokens[index].value).upper() if starts and _ends_operand(tokens, index - 1) else None


def _nulls(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    place = type_at(tokens, index + 1) == "NAME" and tokens[index + 1].value in {"first", "last"}
    behind = type_at(tokens, index - 1) in {"ASC", "DESC"} or _ends_operand(tokens, index - 1)
    return "NULLS" if place and behind and depth > 1 else None


def _place(tokens: Sequence[Token], index: int, depth: int) -> str | None:
    return str(tokens[index].value).upper() if type_at(tokens, index - 1) == "NULLS" else None


_BRANCHES = frozenset({"when", "then", "else"})
_RULES: dict[str, Callable[[Sequence[Token], int, int], str | None]] = {
    "optional": _block,
    "exists": _block,
    "either": _block,
    "with": _part,
    "having": _part,
    "offset": _offset,
    "distinct": _distinct,
    "new": _new,
    "from": _from,
    "case": _case,
    "is": _is,
    "ends_with": _operator,
    "matches": _operator,
    "nulls": _nulls,
    "first": _place,
    "last": _place,
}


def _ends_operand(tokens: Sequence[Token], index: int) -> bool:
    kind, before = type_at(tokens, index), type_at(tokens, index - 1)
    if kind in KEYWORD_TOKENS and kind not in _OPERAND_ENDS:
        # `where order is null`; `not` before a value negates it.
        return before == "DOT" or (kind != "NOT" and before in _OPERAND_FOLLOWS)
    return kind in _OPERAND_ENDS or kind == "RBRACE"


def _is_not_property(tokens: Sequence[Token], index: int) -> bool:
    """`where not in [1, 2]` and `where not is null`: here `not` is the property; in `not in is null` it is `in`."""
    if type_at(tokens, index + 1) in _WORD_OPERATORS:
        return type_at(tokens, index + 2) in _OPERAND_STARTS and not _tests_null(tokens, index + 2)
    return _tests_null(tokens, index + 1)


def _tests_null(tokens: Sequence[Token], index: int) -> bool:
    """Whether `is null` or `is not null` stands here."""
    if type_at(tokens, index) not in WORD_TOKENS or tokens[index].value != "is":
        return False
    following = type_at(tokens, index + 1)
    return following == "NULL" or (following == "NOT" and type_at(tokens, index + 2) == "NULL")


# --- signs


def _brackets(tokens: list[Token], body: int) -> None:
    """A bracket that follows a value without a blank takes an item of it."""
    for index in range(body, len(tokens)):
        token, before = tokens[index], tokens[index - 1]
        adjacent = token.type == "LBRACKET" and before.end_pos == token.start_pos
        if adjacent and (_ends_operand(tokens, index - 1) or before.type == "STAR"):
            tokens[index] = retyped(token, "INDEX_OPEN")


def _labels(tokens: list[Token], body: int) -> None:
    """`f(x, exact: true)`."""
    for index in range(body, len(tokens)):
        if tokens[index].type != "NAME" or type_at(tokens, index + 1) != "COLON":
            continue
        if type_at(tokens, index - 1) in {"COMMA", "LPAREN"} and _in_parentheses(tokens, index):
            tokens[index] = retyped(tokens[index], "LABEL")


def _in_parentheses(tokens: Sequence[Token], index: int) -> bool:
    depth = 0
    for at in range(index - 1, max(index - 200, -1), -1):
        kind = tokens[at].type
        if kind in {"RPAREN", "RBRACE", "RBRACKET"}:
            depth += 1
        elif kind in {"LPAREN", "LBRACE", "LBRACKET", "INDEX_OPEN"}:
            if not depth:
                return kind == "LPAREN"
            depth -= 1
    return False


def _edge_close(tokens: Sequence[Token], index: int) -> int | None:
    """Where the `>` of `<knows>`, `<a|b>` or `<knows{1,2}>` stands when the `<` at `index` opens an undirected edge."""
    if type_at(tokens, index - 1) not in {"VARIABLE", "COLON"}:
        return None
    if type_at(tokens, index + 1) not in WORD_TOKENS | {"STAR"}:
        return None
    close = index + 2
    while type_at(tokens, close) == "VBAR" and type_at(tokens, close + 1) in WORD_TOKENS:
        close += 2
    if type_at(tokens, close) == "LBRACE":
        while close < len(tokens) and type_at(tokens, close) in {"LBRACE", "INTEGER", "MINUS", "COMMA"}:
            close += 1
        close += 1
    return close if type_at(tokens, close) == "GT" else None
