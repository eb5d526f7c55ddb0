"""`.gq` text to a syntax tree, or to every syntax error with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import Diagnostic, QueryParseError, Span, did_you_mean
from omnigraph.query import syntax
from omnigraph.query.parse_errors import bare_name, unexpected_end, unexpected_token
from omnigraph.query.tokens import (
    MAX_NESTING,
    WORD_TOKENS,
    as_name,
    classify,
    deepest,
    parser,
    reads_as_edge,
    span_of,
    split_queries,
    tokenize,
)

if TYPE_CHECKING:
    from lark import Token

MAX_SOURCE_LENGTH = 250_000
"""Characters in one file."""

MAX_CLAUSES = 200
"""Clauses in the match block of one query, those in `not` blocks included: plans are walked recursively."""

MAX_ERRORS = 100
"""Syntax errors reported for one file."""

ANNOTATIONS = ("description", "instruction")

_START = Span(0, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class BrokenQuery:
    """A query that does not parse. `name` is None when not even that could be read."""

    name: str | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class ParsedText:
    """What could be read of a text: the queries that hold, those that do not, and all findings in text order."""

    queries: tuple[syntax.Query, ...]
    broken: tuple[BrokenQuery, ...]
    diagnostics: tuple[Diagnostic, ...]


def parse_queries(source: str, filename: str = "<query>") -> syntax.QueryFile:
    """Parse a `.gq` text. Raises `QueryParseError` with at least one finding for each query that is broken."""
    parsed = parse_tolerantly(source)
    if parsed.diagnostics:
        raise QueryParseError(parsed.diagnostics, source[:MAX_SOURCE_LENGTH], filename)
    return syntax.QueryFile(parsed.queries, source, filename)


def parse_tolerantly(source: str) -> ParsedText:
    """Parse what can be parsed. Never raises; reports at most `MAX_ERRORS` findings."""
    if len(source) > MAX_SOURCE_LENGTH:
        message = f"the text is {len(source)} characters long; at most {MAX_SOURCE_LENGTH} are allowed"
        return _nothing(Diagnostic("Q000", message, _START, hint="split the file"))
    queries: list[syntax.Query] = []
    broken: list[BrokenQuery] = []
    seen: dict[str, int] = {}
    for chunk in split_queries(tokenize(source)):
        outcome = _parse_chunk(chunk)
        if isinstance(outcome, Diagnostic):
            broken.append(BrokenQuery(_name_of(chunk), (outcome,)))
        else:
            problems = [*_duplicate(outcome, seen), *_problems(outcome)]
            if problems:
                broken.append(BrokenQuery(outcome.name.text, tuple(problems)))
            else:
                queries.append(outcome)
        if len(broken) == MAX_ERRORS:
            break
    if not queries and not broken:
        hint = "write `query name { match { … } return { … } }`"
        return _nothing(Diagnostic("Q000", "there is no query in this text", _START, hint=hint))
    found = sorted((d for each in broken for d in each.diagnostics), key=lambda each: each.span.start)
    return ParsedText(tuple(queries), tuple(broken), tuple(found[:MAX_ERRORS]))


def _nothing(reason: Diagnostic) -> ParsedText:
    return ParsedText((), (BrokenQuery(None, (reason,)),), (reason,))


def _name_of(tokens: Sequence[Token]) -> str | None:
    named = len(tokens) > 1 and tokens[0].type == "QUERY" and tokens[1].type in WORD_TOKENS
    return str(tokens[1].value) if named else None


def _parse_chunk(tokens: Sequence[Token]) -> syntax.Query | Diagnostic:
    from lark import UnexpectedToken

    from omnigraph.query.build import SyntaxProblem

    too_deep = deepest(tokens)
    if too_deep is not None:
        message = f"more than {MAX_NESTING} brackets or negations within each other"
        return Diagnostic("Q000", message, span_of(too_deep), hint="simplify the query")
    tokens = classify(tokens)
    interactive: Any = parser().parse_interactive(start="query")
    try:
        for index, token in enumerate(tokens):
            # An undirected edge may stand exactly where a keyword may be an edge: behind the start of a traversal.
            if reads_as_edge(tokens, index) and "EDGE_OPEN" in interactive.choices():
                token = as_name(token)
            try:
                interactive.feed_token(token)
            except UnexpectedToken:
                return unexpected_token(tokens, index, interactive.accepts())
        try:
            result = interactive.feed_eof(tokens[-1])
        except UnexpectedToken:
            return unexpected_end(tokens, interactive.accepts())
    except SyntaxProblem as problem:
        return problem.diagnostic
    assert isinstance(result, syntax.Query)
    return result


def _problems(query: syntax.Query) -> list[Diagnostic]:
    """What a grammar cannot say: the mixing rule, annotations, bare names in a match block, too many clauses."""
    problems = list(_annotation_problems(query))
    if isinstance(query.body, syntax.Mutation):
        problems.extend(_mixing(query.name.text, query.body))
        return problems
    count = _count_clauses(query.body.clauses)
    if count > MAX_CLAUSES:
        message = f"the match block has {count} clauses; at most {MAX_CLAUSES} are allowed"
        problems.append(Diagnostic("Q000", message, query.name.span, hint="split the query"))
    problems.extend(_bare_names(query.body.clauses))
    return problems


def _annotation_problems(query: syntax.Query) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    seen: set[str] = set()
    for annotation in query.annotations:
        name = annotation.name.text
        if name not in ANNOTATIONS:
            hint = did_you_mean(name, ANNOTATIONS) or "a query takes `@description` and `@instruction`"
            problems.append(Diagnostic("Q000", f"unknown annotation `@{name}`", annotation.span, hint=hint))
        elif name in seen:
            problems.append(Diagnostic("Q000", f"`@{name}` is given twice", annotation.span))
        seen.add(name)
    return problems


def _mixing(name: str, mutation: syntax.Mutation) -> list[Diagnostic]:
    first = isinstance(mutation.statements[0], syntax.Delete)
    for statement in mutation.statements[1:]:
        if isinstance(statement, syntax.Delete) != first:
            message = (
                f"mutation '{name}' mixes inserts/updates and deletes; split it into separate mutations: "
                "(1) inserts and updates, then (2) deletes"
            )
            return [Diagnostic("Q000", message, statement.span)]
    return []


def _count_clauses(clauses: Sequence[syntax.Clause]) -> int:
    """Clauses, and searches joined by `and` within one, since each becomes a step of the plan."""
    count = 0
    for clause in clauses:
        count += 1
        if isinstance(clause, syntax.NotBlock):
            count += _count_clauses(clause.clauses)
        elif isinstance(clause, syntax.FilterClause) and isinstance(clause.expression, syntax.And):
            count += _count_calls(clause.expression)
    return count


def _count_calls(conjunction: syntax.And) -> int:
    inner = (_count_calls(item) for item in conjunction.items if isinstance(item, syntax.And))
    return sum(isinstance(item, syntax.Call) for item in conjunction.items) + sum(inner)


def _bare_names(clauses: Sequence[syntax.Clause]) -> list[Diagnostic]:
    """A filter has no bare names: whoever writes one has misspelt an operator or left the variable out."""
    for index, clause in enumerate(clauses):
        if isinstance(clause, syntax.NotBlock):
            found = _bare_names(clause.clauses)
            if found:
                return found
        elif isinstance(clause, syntax.FilterClause):
            name = _first_reference(clause.expression)
            if name is not None:
                return [bare_name(name, clause, clauses[index - 1] if index else None)]
    return []


def _first_reference(expression: syntax.Expression) -> syntax.Reference | None:
    match expression:
        case syntax.Reference():
            return expression
        case syntax.Comparison(_, left, right):
            return _first_reference(left) or _first_reference(right)
        case syntax.And(items) | syntax.Or(items) | syntax.ListLiteral(items) | syntax.Call(_, items):
            return next((found for item in items if (found := _first_reference(item))), None)
        case syntax.Not(item):
            return _first_reference(item)
        case _:
            return None


def _duplicate(query: syntax.Query, seen: dict[str, int]) -> list[Diagnostic]:
    name, span = query.name.text, query.name.span
    if name not in seen:
        seen[name] = span.line
        return []
    message = f"query `{name}` is defined twice; the first one is on line {seen[name]}"
    return [Diagnostic("Q000", message, span, hint="rename one of them")]
