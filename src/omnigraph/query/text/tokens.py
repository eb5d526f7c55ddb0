"""Source text to tokens, and tokens to queries.

The lexer never fails: what it does not know becomes a token that no rule takes. A file is cut into queries here, so
that a broken query does not hide the errors of the next one. What one token of look-ahead cannot decide is decided
here too, by looking at the neighbours: which variables are parameters, which words between two variables are edges
although they are also keywords, which angle brackets belong to an undirected edge, and where words such as `optional`
or `case` are keywords (see contexts.py): everywhere else they are names.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import Span
from omnigraph.query.text.parse_tables import load_parser

if TYPE_CHECKING:
    from lark import Lark, Token

KEYWORDS = (
    "query",
    "match",
    "return",
    "order",
    "limit",
    "as",
    "asc",
    "desc",
    "insert",
    "update",
    "delete",
    "set",
    "where",
    "and",
    "or",
    "not",
    "contains",
    "starts_with",
    "in",
    "true",
    "false",
    "null",
)
"""Words that the lexer knows; the grammar takes them as names wherever it can."""

SOFT_KEYWORDS = (
    "optional",
    "exists",
    "either",
    "with",
    "having",
    "offset",
    "distinct",
    "new",
    "from",
    "case",
    "when",
    "then",
    "else",
    "is",
    "ends_with",
    "matches",
    "nulls",
    "first",
    "last",
)
"""Words that are keywords in their contexts only, and plain names everywhere else."""

KEYWORD_TOKENS = frozenset(keyword.upper() for keyword in KEYWORDS)
SOFT_TOKENS = frozenset(keyword.upper() for keyword in SOFT_KEYWORDS)
WORD_TOKENS = KEYWORD_TOKENS | {"NAME"}

_MAYBE_EDGES = KEYWORD_TOKENS | {"STAR", "MATCHES", "ENDS_WITH"}
_OPENERS = frozenset({"LPAREN", "LBRACE", "LBRACKET", "INDEX_OPEN"})
_CLOSERS = frozenset({"RPAREN", "RBRACE", "RBRACKET"})

MAX_NESTING = 64
"""Brackets and negations within each other."""


_loading = threading.Lock()


def parser() -> Lark:
    """The parser, loaded once per process when the first query is parsed."""
    # Threads that come together wait for the one that loads it: each for itself, they would slow each other down.
    with _loading:
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Lark:
    from omnigraph.query.text.build import SyntaxBuilder

    return load_parser(SyntaxBuilder())


def tokenize(source: str) -> list[Token]:
    """All tokens of a source text, comments and white space left out."""
    interactive: Any = parser().parse_interactive(source, start="query")
    return list(interactive.lexer_thread.lex(interactive.parser_state))


def span_of(token: Any) -> Span:
    """Where a token stands."""
    return Span(token.start_pos, token.end_pos, token.line, token.column)


def split_queries(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Cut the tokens of a file where a query starts.

    That is at `query` outside all braces, and also at `query <name>` followed by `(`, `{` or `@` where it can only be
    the start of the next query: a missing brace then breaks one query and not the rest of the file.
    """
    chunk: list[Token] = []
    depth = 0
    for index, token in enumerate(tokens):
        if token.type == "QUERY" and chunk and _starts_query(tokens, index, depth):
            yield chunk
            chunk, depth = [], 0
        elif token.type == "LBRACE":
            depth += 1
        elif token.type == "RBRACE":
            depth -= 1
        chunk.append(token)
    if chunk:
        yield chunk


def _starts_query(tokens: Sequence[Token], index: int, depth: int) -> bool:
    previous = tokens[index - 1]
    if previous.type in {"DOT", "AS", "COLON", "AT", "LBRACKET", "QUERY"}:
        return False
    if depth <= 0:
        return True
    if previous.line == tokens[index].line or index + 2 >= len(tokens):
        return False
    return tokens[index + 1].type in WORD_TOKENS and tokens[index + 2].type in {"LPAREN", "LBRACE", "AT"}


def deepest(tokens: Sequence[Token]) -> Token | None:
    """The first token that is nested deeper than `MAX_NESTING`, if there is one."""
    depth = 0
    negations = 0
    for token in tokens:
        if token.type in _OPENERS:
            depth += 1 + negations
            negations = 0
        elif token.type in _CLOSERS:
            depth = max(0, depth - 1)
        elif token.type in {"NOT", "MINUS"}:
            negations += 1
        else:
            negations = 0
        if depth + negations > MAX_NESTING:
            return token
    return None


def classify(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of one query with the types that the grammar tells apart but the lexer cannot."""
    from omnigraph.query.text.contexts import retype_words

    parameters, body = header_of(tokens)
    result = list(tokens)
    for index in range(body, len(result)):
        token = result[index]
        if token.type == "VARIABLE" and token.value in parameters:
            result[index] = retyped(token, "PARAMETER")
    retype_words(result, body)
    return result


def header_of(tokens: Sequence[Token]) -> tuple[set[str], int]:
    """The declared parameters, with their dollar signs, and where the header ends."""
    parameters: set[str] = set()
    for index, token in enumerate(tokens):
        if token.type == "LBRACE":
            return parameters, index
        if token.type == "VARIABLE":
            parameters.add(token.value)
    return parameters, len(tokens)


def reads_as_edge(tokens: Sequence[Token], index: int) -> bool:
    """Whether a keyword behind a variable is an edge: `$a in $b` with a variable that is no parameter, `$a in{1,2} $b`.

    Only the parser knows whether the variable before it can be the start of a traversal at all.
    """
    if tokens[index].type not in _MAYBE_EDGES or type_at(tokens, index - 1) != "VARIABLE":
        return False
    following = type_at(tokens, index + 1)
    if following == "LBRACE":
        return type_at(tokens, index + 2) in {"INTEGER", "MINUS", "COMMA"}
    if following in {"VBAR", "INDEX_OPEN"}:
        return True
    return following == "VARIABLE" and type_at(tokens, index + 2) != "DOT"


def as_name(token: Token) -> Token:
    """The token of a keyword as that of a name, and a star as any edge."""
    return retyped(token, "EDGE_ANY" if token.type == "STAR" else "NAME")


def type_at(tokens: Sequence[Token], index: int) -> str | None:
    """The type of the token at a place; None outside."""
    return tokens[index].type if 0 <= index < len(tokens) else None


def retyped(token: Token, kind: str) -> Token:
    """The same token with another type."""
    from lark import Token as LarkToken

    return LarkToken.new_borrow_pos(kind, token.value, token)
