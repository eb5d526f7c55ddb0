"""`.gq` text to a syntax tree, or to every syntax error with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import Diagnostic, Span, did_you_mean
from omnigraph.errors import QueryParseError
from omnigraph.query.text import syntax
from omnigraph.query.text.parse_errors import bare_name, unexpected_end, unexpected_token
from omnigraph.query.text.tokens import (
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

MAX_DEPTH = 200
"""Parts of a query within each other, such as the operators of a long sum."""

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

    from omnigraph.query.text.build_expressions import SyntaxProblem

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
    return _too_deep(result) or result


def _too_deep(query: syntax.Query) -> Diagnostic | None:
    """A chain of operators is a deep tree, which is walked recursively later on: say so before anyone does."""
    waiting: list[tuple[Any, int]] = [(query.body, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} parts within each other"
            return Diagnostic("Q000", message, node.span, hint="simplify the expression, or put parts in parentheses")
        for name in node.__dataclass_fields__:
            value = getattr(node, name)
            for item in value if isinstance(value, tuple) else (value,):
                inner = item if isinstance(item, tuple) else (item,)
                waiting.extend((each, depth + 1) for each in inner if hasattr(each, "span"))
    return None


def _problems(query: syntax.Query) -> list[Diagnostic]:
    """What a grammar cannot say: the mixing rule, annotations, bare names in a match block, too many clauses."""
    problems = list(_annotation_problems(query))
    body = query.body
    if isinstance(body, syntax.Mutation):
        problems.extend(_mixing(query.name.text, body))
    blocks = [(body.clauses or (), frozenset[str]())]
    stages = body.stages if isinstance(body, syntax.Read) else ()
    blocks.extend((stage.clauses, frozenset(_aliases(stage))) for stage in stages)
    count = sum(_count_clauses(clauses) for clauses, _ in blocks)
    if count > MAX_CLAUSES:
        message = f"the match block has {count} clauses; at most {MAX_CLAUSES} are allowed"
        problems.append(Diagnostic("Q000", message, query.name.span, hint="split the query"))
    for clauses, aliases in blocks:
        problems.extend(_bare_names(clauses, aliases))
    return problems


def _aliases(stage: syntax.Stage) -> Iterator[str]:
    """The bare names that the clauses behind a `with` may use."""
    for projection in stage.projections:
        if projection.alias is not None:
            yield projection.alias.text
        elif isinstance(projection.expression, syntax.Reference):
            yield projection.expression.name


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
        count += 1 + sum(_count_clauses(block) for block in syntax.blocks_in(clause))
        if isinstance(clause, syntax.FilterClause) and isinstance(clause.expression, syntax.And):
            count += _count_calls(clause.expression)
    return count


def _count_calls(conjunction: syntax.And) -> int:
    inner = (_count_calls(item) for item in conjunction.items if isinstance(item, syntax.And))
    return sum(isinstance(item, syntax.Call) for item in conjunction.items) + sum(inner)


def _bare_names(clauses: Sequence[syntax.Clause], aliases: frozenset[str]) -> list[Diagnostic]:
    """A filter has no bare names but aliases: whoever writes one has misspelt an operator or left the variable out."""
    for index, clause in enumerate(clauses):
        for block in syntax.blocks_in(clause):
            found = _bare_names(block, aliases)
            if found:
                return found
        if isinstance(clause, syntax.FilterClause):
            name = _first_reference(clause.expression, aliases)
            if name is not None:
                return [bare_name(name, clause, clauses[index - 1] if index else None)]
    return []


def _first_reference(expression: syntax.Expression, aliases: frozenset[str]) -> syntax.Reference | None:
    if isinstance(expression, syntax.Reference):
        return None if expression.name in aliases else expression
    return next((found for part in syntax.parts(expression) if (found := _first_reference(part, aliases))), None)


def _duplicate(query: syntax.Query, seen: dict[str, int]) -> list[Diagnostic]:
    name, span = query.name.text, query.name.span
    if name not in seen:
        seen[name] = span.line
        return []
    message = f"query `{name}` is defined twice; the first one is on line {seen[name]}"
    return [Diagnostic("Q000", message, span, hint="rename one of them")]
