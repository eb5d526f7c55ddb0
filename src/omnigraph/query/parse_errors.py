"""Syntax errors in the words of the language: what was found, what could have stood there, what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from omnigraph.diagnostics import Diagnostic, Span, did_you_mean
from omnigraph.query.tokens import KEYWORD_TOKENS, WORD_TOKENS, span_of

if TYPE_CHECKING:
    from lark import Token

_WORDS = {
    "VARIABLE": "a variable",
    "NAME": "a name",
    "STRING": "a string",
    "INTEGER": "an integer",
    "FLOAT": "a number",
    "AT": "an annotation",
    "EQ": "`=`",
    "NE": "`!=`",
    "LT": "`<`",
    "LE": "`<=`",
    "GT": "`>`",
    "GE": "`>=`",
    "DOT": "`.`",
    "COLON": "`:`",
    "LPAREN": "`(`",
    "RPAREN": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LBRACKET": "`[`",
    "RBRACKET": "`]`",
    "COMMA": "`,`",
    "QUESTION": "`?`",
    "$END": "the end of the query",
}
_OPERATORS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "CONTAINS", "STARTS_WITH", "IN"})
_BOOLEAN = frozenset({"AND", "OR"})
_VALUES = frozenset({"STRING", "INTEGER", "FLOAT", "TRUE", "FALSE", "NULL", "LBRACKET"})
_OPERAND_ENDS = frozenset(
    {"NAME", "STRING", "INTEGER", "FLOAT", "TRUE", "FALSE", "NULL", "VARIABLE", "PARAMETER", "RPAREN", "RBRACKET"}
)


def unexpected_token(tokens: Sequence[Token], index: int, accepted: Iterable[str]) -> Diagnostic:
    """The finding for a token that cannot stand where it stands."""
    token = tokens[index]
    previous = tokens[index - 1] if index else None
    accepted = set(accepted)
    special = _special(tokens, index, accepted)
    if special is not None:
        return special
    message = f"expected {_expected(accepted, previous)}, found {_found(token)}"
    return Diagnostic("Q000", message, span_of(token), hint=_hint(token, accepted, previous))


def unexpected_end(tokens: Sequence[Token], accepted: Iterable[str]) -> Diagnostic:
    """The finding for a query that stops too early."""
    last = tokens[-1]
    end = span_of(last).end
    span = Span(end - 1, end, last.end_line or 1, max((last.end_column or 1) - 1, 1))
    message = f"the query ends too early: expected {_expected(set(accepted), last)}"
    return Diagnostic("Q000", message, span, hint=_unclosed(tokens))


def parameter_as_end(variable: str, span: Span) -> Diagnostic:
    """The finding for `$a knows $b` where `$a` is a parameter."""
    message = f"`{variable}` is a parameter and cannot be an end of an edge"
    return Diagnostic("Q000", message, span, hint="bind a variable of another name")


def _special(tokens: Sequence[Token], index: int, accepted: set[str]) -> Diagnostic | None:
    """Errors that deserve better words than a list of what was expected."""
    token = tokens[index]
    previous = tokens[index - 1] if index else None
    opens_block = index + 1 < len(tokens) and tokens[index + 1].type == "LBRACE"
    span = span_of(token)
    match token.type:
        case "OPEN_STRING":
            hint = 'close it with `"` on the same line; a line break in a string is written `\\n`'
            return Diagnostic("Q000", "the string is not closed", span, hint=hint)
        case "OPEN_COMMENT":
            opening = Span(span.start, span.start + 2, span.line, span.column)
            return Diagnostic("Q000", "the comment is not closed", opening, hint="close it with `*/`")
        case "BAD_NUMBER":
            return Diagnostic("Q000", f"`{_short(token.value)}` is neither a number nor a name", span)
        case "STRAY":
            return Diagnostic("Q000", f"unexpected character {_character(token.value)}", span, hint=_stray_hint(token))
    if previous is not None and previous.type == "PARAMETER" and token.type == "EDGE_OPEN":
        return parameter_as_end(previous.value, span_of(previous))
    if previous is None and "QUERY" in accepted:
        hint = did_you_mean(token.value, ["query"]) or "every query starts with `query name`"
        return Diagnostic("Q000", f"expected `query`, found {_found(token)}", span, hint=hint)
    if token.type in {"INSERT", "UPDATE", "DELETE"} and accepted & {"RETURN", "ORDER", "LIMIT"}:
        message = "a query is a read or a mutation, never both"
        return Diagnostic("Q000", message, span, hint="move the statement into a query of its own")
    if token.type == "MATCH" and opens_block and "INSERT" in accepted and "MATCH" not in accepted:
        message = "a query is a read or a mutation, never both"
        return Diagnostic("Q000", message, span, hint="move the match block into a query of its own")
    return None


def _expected(accepted: set[str], previous: Token | None) -> str:
    accepted = accepted - {"EDGE_OPEN", "EDGE_CLOSE", "PARAMETER", "COMMA"} or accepted
    words: list[str] = []
    if accepted >= _VALUES:
        words.extend(_value_words(accepted, previous))
        accepted = accepted - _VALUES - WORD_TOKENS - _OPERATORS - {"VARIABLE", "LPAREN"}
    elif accepted >= WORD_TOKENS:
        words.append(_name_words(previous))
        accepted = accepted - WORD_TOKENS
    if accepted >= _OPERATORS:
        words.append("an operator")
        accepted = accepted - _OPERATORS
    if "FLOAT" in accepted:
        accepted = accepted - {"INTEGER"}
    words.extend(sorted((_WORDS.get(kind, f"`{kind.lower()}`") for kind in accepted), key=_quoted_last))
    if not words:
        return "nothing more"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _value_words(accepted: set[str], previous: Token | None) -> list[str]:
    """What an expression may start with, or what may follow a finished one: operators and the next item of a list."""
    if _is_operand_end(previous):
        operators = ["an operator"] if "EQ" in accepted else []
        return [*operators, "`and`", "`or`", "the next item"]
    return ["a clause" if "RBRACE" in accepted else "a value"]


def _quoted_last(word: str) -> tuple[bool, str]:
    return word.startswith("`"), word


def _name_words(previous: Token | None) -> str:
    match previous.type if previous is not None else None:
        case "DOT":
            return "a property name"
        case "QUERY":
            return "the name of the query"
        case "AS":
            return "an alias"
        case "INSERT" | "UPDATE" | "DELETE":
            return "a type name"
        case "AT":
            return "`description` or `instruction`"
        case "COLON":
            return "a type"
        case _:
            return "a name"


def _found(token: Token) -> str:
    if token.type in KEYWORD_TOKENS:
        return f"the keyword `{token.value}`"
    return f"`{_short(token.value)}`"


def _hint(token: Token, accepted: set[str], previous: Token | None) -> str | None:
    if token.type == "NAME":
        keywords = [kind.lower() for kind in accepted & KEYWORD_TOKENS]
        suggestion = did_you_mean(token.value, keywords)
        if suggestion:
            return suggestion
    if previous is not None and previous.type in {"RETURN", "ORDER"} and token.type == "LBRACE":
        return f"is a `}}` missing before `{previous.value}`?"
    if previous is not None and previous.type == "NAME" and token.type not in WORD_TOKENS:
        suggestion = did_you_mean(previous.value, ["match", "return", "order", "limit"])
        if suggestion:
            return suggestion
    if token.type in _OPERATORS and "EQ" not in accepted and accepted >= _BOOLEAN and _is_operand_end(previous):
        return "comparisons do not chain: join them with `and`"
    if token.type == "MATCH" and "RETURN" in accepted:
        return "put all clauses into one match block"
    if token.type == "RETURN" and "MATCH" in accepted:
        return "a read starts with a match block"
    return None


def _is_operand_end(token: Token | None) -> bool:
    return token is not None and token.type in _OPERAND_ENDS


def _unclosed(tokens: Sequence[Token]) -> str | None:
    pairs = {"RPAREN": "LPAREN", "RBRACE": "LBRACE", "RBRACKET": "LBRACKET"}
    stack: list[Token] = []
    for token in tokens:
        if token.type in pairs.values():
            stack.append(token)
        elif token.type in pairs and stack and stack[-1].type == pairs[token.type]:
            stack.pop()
    return f"the `{stack[-1].value}` of line {stack[-1].line} is not closed" if stack else None


def _stray_hint(token: Token) -> str | None:
    hints = {
        "'": 'strings are written with double quotes: "…"',
        "`": "names are written without quotes",
        "$": "a variable is written `$name`",
        "/": "comments are `// …` and `/* … */`",
        "+": "there is no arithmetic in queries",
        "*": "there is no arithmetic in queries",
        "!": "write `!=` or `not`",
        ";": "statements are not separated by `;`",
        "&": "write `and`",
        "|": "write `or`",
    }
    return hints.get(token.value)


def _character(text: str) -> str:
    return f"`{text}`" if text.isprintable() else f"U+{ord(text):04X}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
