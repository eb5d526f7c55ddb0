"""Source text to tokens, and tokens to queries.

The lexer never fails: what it does not know becomes a token that no rule takes. A file is cut into queries here, so
that a broken query does not hide the errors of the next one. What one token of look-ahead cannot decide is decided
here too, by looking at the neighbours: which variables are parameters, which words between two variables are edges
although they are also keywords, and which angle brackets belong to an undirected edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import Span

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
KEYWORD_TOKENS = frozenset(keyword.upper() for keyword in KEYWORDS)
WORD_TOKENS = KEYWORD_TOKENS | {"NAME"}

_COMPARISONS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE"})
_WORD_OPERATORS = frozenset({"IN", "CONTAINS", "STARTS_WITH"})
_OPENERS = frozenset({"LPAREN", "LBRACE", "LBRACKET"})
_CLOSERS = frozenset({"RPAREN", "RBRACE", "RBRACKET"})
_OPERAND_STARTS = frozenset({"STRING", "INTEGER", "FLOAT", "LBRACKET", "LPAREN", "VARIABLE", "PARAMETER", "NAME"})

MAX_NESTING = 64
"""Brackets and negations within each other."""


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser, built once per process when the first query is parsed."""
    from lark import Lark

    from omnigraph.query.build import SyntaxBuilder

    grammar = resources.files("omnigraph.query").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", start=["query", "broken"], transformer=SyntaxBuilder())


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
        elif token.type == "NOT":
            negations += 1
        else:
            negations = 0
        if depth + negations > MAX_NESTING:
            return token
    return None


def classify(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of one query with the types that the grammar tells apart but the lexer cannot."""
    parameters, body = _header(tokens)
    result = list(tokens)
    for index in range(body, len(result)):
        token = result[index]
        if token.type == "VARIABLE" and token.value in parameters:
            result[index] = _retyped(token, "PARAMETER")
    for index in range(body, len(result)):
        kind = result[index].type
        if kind in KEYWORD_TOKENS:
            if kind == "NOT" and _is_not_property(result, index):
                result[index] = as_name(result[index])
        elif kind == "LT":
            close = _edge_close(result, index)
            if close is not None:
                result[index] = _retyped(result[index], "EDGE_OPEN")
                result[close] = _retyped(result[close], "EDGE_CLOSE")
    return result


def _header(tokens: Sequence[Token]) -> tuple[set[str], int]:
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
    if tokens[index].type not in KEYWORD_TOKENS or _type(tokens, index - 1) != "VARIABLE":
        return False
    following = _type(tokens, index + 1)
    if following == "LBRACE":
        return _type(tokens, index + 2) in {"INTEGER", "COMMA"}
    return following == "VARIABLE" and _type(tokens, index + 2) != "DOT"


def as_name(token: Token) -> Token:
    """The token of a keyword as that of a name."""
    return _retyped(token, "NAME")


def _is_not_property(tokens: Sequence[Token], index: int) -> bool:
    """`where not in [1, 2]`: here `not` is the property."""
    return _type(tokens, index + 1) in _WORD_OPERATORS and _type(tokens, index + 2) in _OPERAND_STARTS


def _edge_close(tokens: Sequence[Token], index: int) -> int | None:
    """Where the `>` of `<knows>` or `<knows{1,2}>` stands when the `<` at `index` opens an undirected edge."""
    if _type(tokens, index - 1) not in {"VARIABLE", "COLON"} or _type(tokens, index + 1) not in WORD_TOKENS:
        return None
    close = index + 2
    if _type(tokens, close) == "LBRACE":
        while close < len(tokens) and _type(tokens, close) in {"LBRACE", "INTEGER", "COMMA"}:
            close += 1
        close += 1
    return close if _type(tokens, close) == "GT" else None


def _type(tokens: Sequence[Token], index: int) -> str | None:
    return tokens[index].type if 0 <= index < len(tokens) else None


def _retyped(token: Token, kind: str) -> Token:
    from lark import Token as LarkToken

    return LarkToken.new_borrow_pos(kind, token.value, token)
