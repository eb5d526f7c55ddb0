"""Syntax errors in the words of the language: what was found, what could have stood there, what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from omnigraph.diagnostics import Diagnostic, Span, did_you_mean
from omnigraph.query.text import syntax
from omnigraph.query.text.tokens import KEYWORD_TOKENS, KEYWORDS, WORD_TOKENS, span_of

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
_COMPARISONS = frozenset(
    {"EQ", "NE", "LT", "LE", "GT", "GE", "CONTAINS", "STARTS_WITH", "IN", "ENDS_WITH", "MATCHES", "IS"}
)
_OPERATORS = _COMPARISONS | {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}
_UNSAID = frozenset(
    {"EDGE_OPEN", "EDGE_CLOSE", "EDGE_ANY", "INDEX_OPEN", "LABEL", "PARAMETER", "COMMA", "VBAR", "DISTINCT"}
)
"""What may stand nearly everywhere, or needs no word of its own."""
_STARTS = frozenset({"OPTIONAL", "EXISTS", "EITHER", "CASE", "AT", "MINUS"})
"""What clauses and values may start with, besides literals and names."""
_BOOLEAN = frozenset({"AND", "OR"})
_VALUES = frozenset({"STRING", "INTEGER", "FLOAT", "TRUE", "FALSE", "NULL", "LBRACKET"})
_OPERAND_ENDS = frozenset(
    {"NAME", "STRING", "INTEGER", "FLOAT", "TRUE", "FALSE", "NULL", "VARIABLE", "PARAMETER", "RPAREN", "RBRACKET"}
)


_FOREIGN_WORDS = {
    "where": "a filter stands in the match block without `where`",
    "like": "use `contains` or `starts_with`",
    "is": "write `is null` or `is not null`",
    "between": "write `$x.p >= low and $x.p <= high`",
    "by": "write `order { … }`",
    "any": "write `$x.p in [ … ]`",
}
"""Words of other query languages, and what is written here instead."""


def unexpected_token(tokens: Sequence[Token], index: int, accepted: Iterable[str]) -> Diagnostic:
    """The finding for a token that cannot stand where it stands."""
    token = tokens[index]
    previous = tokens[index - 1] if index else None
    accepted = set(accepted)
    special = _special(tokens, index, accepted)
    if special is not None:
        return special
    message = f"expected {_expected(accepted, previous)}, found {_found(token)}"
    return Diagnostic("Q000", message, span_of(token), hint=_hint(tokens, index, accepted))


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


def bare_name(name: syntax.Reference, clause: syntax.FilterClause, before: syntax.Clause | None) -> Diagnostic:
    """The finding for a name on its own in a filter; `before` is the clause before that."""
    hint = _FOREIGN_WORDS.get(name.name.lower())
    if hint is None and name.name not in KEYWORDS:
        hint = did_you_mean(name.name, KEYWORDS)
    match before:
        case syntax.FilterClause(syntax.Variable(variable)):
            return parameter_as_end(f"${variable}", before.span)
        case syntax.FilterClause(syntax.Not(syntax.Variable(variable))):
            hint = f"write `not {{ ${variable} {name.name} … }}`"
    if hint is None and name.span.start > clause.span.start:
        # On the right of a comparison it is more likely a value than a property.
        hint = f'write "{name.name}" for a string or a value of an enum, or `$x.{name.name}` for a property'
    hint = hint or f"a property is written `$x.{name.name}`"
    return Diagnostic("Q000", f"unexpected `{name.name}` in a match block", name.span, hint=hint)


def _special(tokens: Sequence[Token], index: int, accepted: set[str]) -> Diagnostic | None:
    """Errors that deserve better words than a list of what was expected."""
    token = tokens[index]
    previous = tokens[index - 1] if index else None
    opens_block = index + 1 < len(tokens) and tokens[index + 1].type == "LBRACE"
    span = span_of(token)
    match token.type:
        case "OPEN_STRING":
            closing = 'close it with `"` on the same line; a line break in a string is written `\\n`'
            return Diagnostic("Q000", "the string is not closed", span, hint=closing)
        case "OPEN_COMMENT":
            opening = Span(span.start, span.start + 2, span.line, span.column)
            return Diagnostic("Q000", "the comment is not closed", opening, hint="close it with `*/`")
        case "BAD_NUMBER":
            return Diagnostic("Q000", f"`{_short(token.value)}` is neither a number nor a name", span)
        case "STRAY":
            meant = _STRAY_HINTS.get(token.value)
            return Diagnostic("Q000", f"unexpected character {_character(token.value)}", span, hint=meant)
    if previous is not None and previous.type == "PARAMETER" and token.type == "EDGE_OPEN":
        return parameter_as_end(previous.value, span_of(previous))
    if previous is None and "QUERY" in accepted:
        hint = did_you_mean(token.value, ["query"]) or "every query starts with `query name`"
        return Diagnostic("Q000", f"expected `query`, found {_found(token)}", span, hint=hint)
    if token.type in {"INSERT", "UPDATE", "DELETE"} and accepted & {"RETURN", "ORDER", "LIMIT"}:
        message = "a query is a read or a mutation, never both"
        return Diagnostic("Q000", message, span, hint="move the statement into a query of its own")
    if token.type == "MATCH" and opens_block and "INSERT" in accepted and not accepted & {"MATCH", "RETURN"}:
        message = "a match block stands before all statements of a mutation"
        return Diagnostic("Q000", message, span, hint="move it to the start, or into a query of its own")
    return None


def _expected(accepted: set[str], previous: Token | None) -> str:
    accepted = accepted - _UNSAID or accepted
    words: list[str] = []
    if accepted >= _VALUES:
        words.extend(_value_words(accepted, previous))
        accepted = accepted - _VALUES - WORD_TOKENS - _OPERATORS - _STARTS - {"VARIABLE", "LPAREN"}
    elif accepted >= WORD_TOKENS:
        words.append(_name_words(previous))
        accepted = accepted - WORD_TOKENS - {"AT"}
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


def _hint(tokens: Sequence[Token], index: int, accepted: set[str]) -> str | None:
    """What was probably meant, if that can be guessed."""
    token, before = tokens[index], _before(tokens, index)
    kind, previous = token.type, before[0]
    if kind == "NAME":
        if "VARIABLE" in accepted and "STRING" not in accepted:
            return f"a variable is written `${token.value}`"
        keywords = [each.lower() for each in accepted & KEYWORD_TOKENS]
        suggestion = did_you_mean(token.value, keywords) or _FOREIGN_WORDS.get(token.value.lower())
        if suggestion:
            return suggestion
    match kind, previous:
        case "STAR", "LPAREN" if before[1] == "NAME":
            return "count the rows of a variable: `count($x)`"
        case "GT" | "LT", "MINUS":
            return "a traversal is written `$a knows $b`"
        case "LBRACKET" | "INTEGER", "MINUS" if before[1] == "VARIABLE":
            return "a traversal is written `$a knows $b`"
        case "EQ", "EQ":
            return "equality is written `=`"
        case "COLON", _ if "EQ" in accepted and previous in WORD_TOKENS:
            return f"a variable is written `${tokens[index - 1].value}`"
        case "DOT", "INTEGER":
            return "bounds are written `{1,3}`" if before[1] == "LBRACE" else "a float is written `1.0`"
        case "DOT", _ if "FLOAT" in accepted:
            return "a float is written `0.5`"
        case "LBRACE", "RETURN" | "ORDER":
            return f"is a `}}` missing before `{tokens[index - 1].value}`?"
        case "MATCH", _ if "RETURN" in accepted:
            return "put all clauses into one match block"
        case "RETURN", _ if "MATCH" in accepted:
            return "a read starts with a match block"
        case _, "NAME" if before[1] in {"VARIABLE", "COLON"} and "VARIABLE" in accepted and "LBRACE" in accepted:
            return f"an edge has two ends; a node is bound by `$x: {tokens[index - 1].value}`"
        case _, "NAME" if kind not in WORD_TOKENS:
            return did_you_mean(tokens[index - 1].value, ["match", "return", "order", "limit"])
    if kind in _COMPARISONS and "EQ" not in accepted and accepted >= _BOOLEAN and previous in _OPERAND_ENDS:
        return "comparisons do not chain: join them with `and`"
    return None


def _before(tokens: Sequence[Token], index: int) -> tuple[str | None, str | None]:
    """The types of the two tokens before one, the nearer first."""
    return (
        tokens[index - 1].type if index > 0 else None,
        tokens[index - 2].type if index > 1 else None,
    )


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


_STRAY_HINTS = {
    "'": 'strings are written with double quotes: "…"',
    "`": "names are written without quotes",
    "$": "a variable is written `$name`",
    "!": "write `!=` or `not`",
    ";": "statements are not separated by `;`",
    "&": "write `and`",
}


def _character(text: str) -> str:
    return f"`{text}`" if text.isprintable() else f"U+{ord(text):04X}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
