"""Lint: a schema and queries checked against each other, without a graph. Only errors fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.diagnostics import Diagnostic, QueryTypeError, Severity, Span
from omnigraph.query import codes, ir
from omnigraph.query.lower.compile import compile_query
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import BrokenQuery, parse_tolerantly
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compile import check_schema
from omnigraph.schema.parse import parse_tolerantly as parse_schema_tolerantly

Status = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about a place in a file. `query` names the query it belongs to, if it belongs to one."""

    diagnostic: Diagnostic
    file: str
    query: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**self.diagnostic.to_json(), "file": self.file, "query": self.query}


@dataclass(frozen=True, slots=True)
class QueryLint:
    """What lint says about one query. A query with an error has no parameters, columns, reads or writes."""

    name: str | None
    file: str
    kind: Literal["read", "mutation"] | None
    status: Status
    error: str | None = None
    warnings: tuple[str, ...] = ()
    parameters: tuple[ir.Parameter, ...] = ()
    columns: tuple[ir.ResultColumn, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "name": self.name,
            "file": self.file,
            "kind": self.kind,
            "status": self.status,
            "error": self.error,
            "warnings": list(self.warnings),
            "parameters": [_typed(parameter) for parameter in self.parameters],
            "columns": [_typed(column) for column in self.columns],
            "reads": list(self.reads),
            "writes": list(self.writes),
        }


@dataclass(frozen=True, slots=True)
class LintReport:
    """Everything lint has to say. `sources` are the texts by file name, for showing the lines of findings."""

    queries: tuple[QueryLint, ...]
    findings: tuple[Finding, ...]
    sources: Mapping[str, str]

    @property
    def status(self) -> Status:
        """The worst of all findings; remarks of the severity `info` count as ok."""
        return _worst(finding.diagnostic for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return self.status != "error"

    def count(self, severity: Severity) -> int:
        """How many findings of one severity there are."""
        return sum(finding.diagnostic.severity is severity for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "status": self.status,
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "queries": [query.to_json() for query in self.queries],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def render(self) -> str:
        """The report as a person reads it: findings with their lines, then a line for each query, then the sum."""
        parts = [self._render(finding) for finding in self.findings if finding.diagnostic.severity is not Severity.INFO]
        remarks = [self._render(finding) for finding in self.findings if finding.diagnostic.severity is Severity.INFO]
        if remarks:
            parts.append("\n".join(remarks))
        lines = [_query_line(query) for query in self.queries]
        errors, warnings = self.count(Severity.ERROR), self.count(Severity.WARNING)
        lines.append(f"{_plural(len(self.queries), 'query', 'queries')}, {_plural(errors, 'error', 'errors')}, ")
        lines[-1] += _plural(warnings, "warning", "warnings")
        return "\n\n".join([*parts, "\n".join(lines)])

    def _render(self, finding: Finding) -> str:
        diagnostic = finding.diagnostic
        if diagnostic.severity is Severity.INFO:
            place = f"{finding.file}:{diagnostic.span.line}:{diagnostic.span.column}"
            return f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message} ({place})"
        return diagnostic.render(self.sources[finding.file], finding.file)


def lint(schema_source: str, queries: Mapping[str, str], schema_filename: str = "schema.pg") -> LintReport:
    """Check a schema and query texts (by file name) against it. Never raises for what the texts say.

    Properties that no update sets are only looked for when every mutation could be read.
    """
    schema = check_schema(schema_source)
    findings = [Finding(diagnostic, schema_filename) for diagnostic in schema.diagnostics]
    results: list[QueryLint] = []
    compiled: list[ir.CompiledQuery] = []
    for filename, source in queries.items():
        for result, found, query in _lint_text(source, filename, schema.catalog):
            results.append(result)
            findings.extend(found)
            if query is not None:
                compiled.append(query)
    known = all(result.kind == "read" or result.status != "error" for result in results)
    if schema.catalog is not None and results and known:
        places = _property_places(schema_source)
        findings.extend(Finding(each, schema_filename) for each in _unset(schema.catalog, compiled, places))
    return LintReport(tuple(results), tuple(findings), {**queries, schema_filename: schema_source})


# --- queries

_Linted = tuple[QueryLint, list[Finding], ir.CompiledQuery | None]


def _lint_text(source: str, filename: str, catalog: Catalog | None) -> Iterator[_Linted]:
    """The results for the queries of one text, in text order."""
    parsed = parse_tolerantly(source)
    results = [(each.diagnostics[0].span.start, _broken(each, filename)) for each in parsed.broken]
    results += [
        (each.span.start, _checked(each, syntax.QueryFile((each,), source, filename), catalog))
        for each in parsed.queries
    ]
    for _, result in sorted(results, key=lambda each: each[0]):
        yield result


def _broken(query: BrokenQuery, filename: str) -> _Linted:
    result = QueryLint(query.name, filename, None, "error", query.diagnostics[0].message)
    return result, [Finding(diagnostic, filename, query.name) for diagnostic in query.diagnostics], None


def _checked(query: syntax.Query, file: syntax.QueryFile, catalog: Catalog | None) -> _Linted:
    name = query.name.text
    kind: Literal["read", "mutation"] = "mutation" if isinstance(query.body, syntax.Mutation) else "read"
    warnings = list(_warnings(query))
    found = [Finding(diagnostic, file.filename, name) for diagnostic in warnings]
    texts = tuple(diagnostic.message for diagnostic in warnings)
    if catalog is None:
        result = QueryLint(name, file.filename, kind, "error", "the schema has errors", texts)
        return result, found, None
    try:
        compiled = compile_query(file, catalog)
    except QueryTypeError as error:
        found = [Finding(diagnostic, file.filename, name) for diagnostic in error.diagnostics] + found
        result = QueryLint(name, file.filename, kind, "error", error.diagnostics[0].message, texts)
        return result, found, None
    result = QueryLint(
        name,
        file.filename,
        kind,
        "warning" if warnings else "ok",
        None,
        texts,
        compiled.parameters,
        compiled.columns if isinstance(compiled, ir.ReadQuery) else (),
        compiled.reads,
        compiled.writes if isinstance(compiled, ir.MutationQuery) else (),
    )
    return result, found, compiled


def _warnings(query: syntax.Query) -> Iterator[Diagnostic]:
    body = query.body
    if isinstance(body, syntax.Mutation):
        if not query.parameters:
            message = f"mutation `{query.name.text}` has no parameters, so it does the same each time"
            yield _warning(codes.MUTATION_WITHOUT_PARAMETERS, message, query.name.span, "pass its values as parameters")
        return
    for key in (*body.order, *(key for stage in body.stages for key in stage.order)):
        call = key.expression
        if not isinstance(call, syntax.Call) or key.descending is None:
            continue
        name = call.function.text
        if name in {"bm25", "rrf"} and not key.descending:
            message = f"`{name}` is higher for better matches, so `asc` sorts the worst first"
            yield _warning(codes.WORST_FIRST, message, key.span, "leave out `asc`")
        elif name == "nearest" and key.descending:
            message = "`nearest` is a distance, so `desc` sorts the farthest first"
            yield _warning(codes.WORST_FIRST, message, key.span, "leave out `desc`")


def _warning(code: str, message: str, span: Span, hint: str) -> Diagnostic:
    return Diagnostic(code, message, span, Severity.WARNING, hint)


# --- the schema

_Places = dict[tuple[str, str], Span]


def _property_places(schema_source: str) -> _Places:
    """Where properties are declared, by type and name; a property of an interface stands for all that implement it."""
    parsed = parse_schema_tolerantly(schema_source)
    return {
        (declaration.name.text, item.name.text): item.span
        for declaration in parsed.file.declarations
        if declaration.body is not None
        for item in declaration.body.properties
    }


def _unset(catalog: Catalog, queries: Iterable[ir.CompiledQuery], places: _Places) -> Iterator[Diagnostic]:
    """`L201`: a warning when other properties of the type are updated, a remark when none is."""
    set_by_update: dict[str, set[str]] = {}
    for query in queries:
        for statement in query.statements if isinstance(query, ir.MutationQuery) else ():
            if isinstance(statement, ir.Update):
                names = set_by_update.setdefault(statement.table_key, set())
                names.update(assignment.property for assignment in statement.assignments)
    for table in catalog.types():
        updated = set_by_update.get(table.table_key)
        severity = Severity.INFO if updated is None else Severity.WARNING
        interfaces = table.implements if table.kind == "node" else ()
        for prop in table.properties:
            if not prop.nullable or prop.embed is not None or prop.name in (updated or ()):
                continue
            declared = [places[owner, prop.name] for owner in (table.name, *interfaces) if (owner, prop.name) in places]
            span = declared[0] if declared else Span(0, 1, 1, 1)
            message = f"`{table.name}.{prop.name}` is nullable and no update sets it"
            yield Diagnostic(codes.UNSET_PROPERTY, message, span, severity)


# --- rendering


def _worst(diagnostics: Iterable[Diagnostic]) -> Status:
    severities = {diagnostic.severity for diagnostic in diagnostics}
    if Severity.ERROR in severities:
        return "error"
    return "warning" if Severity.WARNING in severities else "ok"


def _typed(item: ir.Parameter | ir.ResultColumn) -> dict[str, Any]:
    shown = {"name": item.name, "type": str(item.type), "nullable": item.nullable}
    if isinstance(item, ir.Parameter) and item.default is not None:
        shown["has_default"] = True
    return shown


def _query_line(query: QueryLint) -> str:
    label = f"{query.status:<8} {query.name or '(unnamed)'}"
    if query.status == "error":
        return f"{label}: {query.error}"
    parameters = ", ".join(f"${each.name}: {each.type}{'?' if each.nullable else ''}" for each in query.parameters)
    if query.kind == "mutation":
        return f"{label}({parameters}) writes {', '.join(query.writes)}"
    columns = ", ".join(f"{each.name}: {each.type}{'?' if each.nullable else ''}" for each in query.columns)
    return f"{label}({parameters}) -> {columns}"


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
