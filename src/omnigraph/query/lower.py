"""From text to IR. What the executors can rely on is said here.

**Shape of a read.** From the root down:

    Project                                       always; its columns are the result columns, in order
      Limit                                       when the query has a `limit`
        Sort                                      always; `keys` is empty without `order`
          GroupBy                                 when the return has an aggregate
            Filter …                              for a bare ranking in `order`: rows with a score
            Rank / Fuse …                         one for each different ranking, named `$rank1`, `$rank2`, …
              AntiJoin …                          one for each `not` block, in text order
                block                             Scan, Expand, Join, Filter

**Block.** Variables that traversals connect make a component. Each component starts with a `Scan` of the first
variable that it declares (`$x: Type`), or of its first variable when it declares none. Its traversals follow in text
order, each as soon as one of its ends is bound: `Expand` from the source (`out`), or from the target (`in`) when only
that is bound, or `both` for `<edge>`. `to_bound` is set when both ends are bound, `$p knows $p` included. A component
without traversals is a bare `Scan`. Components are joined by `Join`, in the order of their first variable; they share
no variable, so this is a product. A `Filter` stands directly above the operator that binds the last variable it needs.
A `TextMatch` is always the whole predicate of a `Filter`, never a part of one.
A declared variable that is reached by an `Expand` has no scan of its own: the edge type fixes its type. A match block
that binds nothing starts from `Unit`.

**`not` block.** `AntiJoin.inner` is a block that starts from `Outer(vars)`: these variables are bound from the start,
and its other components are joined to it. `vars` are the outer variables that the block or a block inside it uses, in
binding order. A nested block's `Outer` may name variables of any block around it. A variable belongs to the block that
binds it: of variables with one name in sibling blocks, the later ones are called `x#2`, `x#3`, …

**Expressions.** Above `Rank`, `Fuse` and `GroupBy`, what they computed is read through `ColumnRef`. Below, none is
there. A `Project` over a `GroupBy` holds `ColumnRef`, literals, parameters and conditions over them only. Aliases are
replaced by what they stand for. `GroupBy.keys` and `aggregates` have the names of the result columns; aggregates that
are no result column of their own (sorted by only, or inside a comparison) are called `$aggregate1`, …

**Sort.** `tie_break` names the variables in order of binding (edge variables and anonymous ones included), by whose
ids ties are broken; over a `GroupBy` it names the key columns. Nulls are the smallest value. A bare ranking in `order`
means best first among the rows that have a score: a `Filter` directly above the rankings keeps those, `nearest` is
sorted ascending, `bm25` and `rrf` descending. A `nearest` that is sorted ascending by an alias or by `asc` is preceded
by the key `IsNull(score)`, so that rows without a vector come last.

**Mutations** are lists of statements; predicates look at the row through the variable `THIS`. `from`, `to` and `id`
are properties `src`, `dst` and `id`.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import Diagnostic, QueryTypeError, did_you_mean
from omnigraph.errors import BadRequest, NotFound
from omnigraph.query import ir, syntax
from omnigraph.query.check.match import MatchChecker
from omnigraph.query.check.mutation import check_statement, touched
from omnigraph.query.check.results import check_result
from omnigraph.query.check.scope import Problems, Scope, check_parameters
from omnigraph.query.lower_match import lower_block, tables_of
from omnigraph.query.lower_result import lower_result
from omnigraph.query.parse import parse_queries
from omnigraph.query.unique_names import with_unique_names
from omnigraph.schema.catalog import Catalog


def compile_query(source: str | syntax.QueryFile, catalog: Catalog, name: str | None = None) -> ir.CompiledQuery:
    """Compile one query of a text: the one called `name`, or the only one.

    Raises `QueryParseError`, `QueryTypeError` (with every error of that query), `NotFound` for an unknown name and
    `BadRequest` when a name is needed.
    """
    file = parse_queries(source) if isinstance(source, str) else source
    return _compile(_choose(file, name), file, catalog)


def compile_file(source: str | syntax.QueryFile, catalog: Catalog) -> tuple[ir.CompiledQuery, ...]:
    """Compile all queries of a text. Raises `QueryTypeError` with the errors of all of them."""
    file = parse_queries(source) if isinstance(source, str) else source
    compiled: list[ir.CompiledQuery] = []
    found: list[Diagnostic] = []
    for query in file.queries:
        try:
            compiled.append(_compile(query, file, catalog))
        except QueryTypeError as error:
            found.extend(error.diagnostics)
    if found:
        raise QueryTypeError(found, file.source, file.filename)
    return tuple(compiled)


def _choose(file: syntax.QueryFile, name: str | None) -> syntax.Query:
    names = [query.name.text for query in file.queries]
    if name is None:
        if len(file.queries) > 1:
            raise BadRequest(f"the text holds {len(names)} queries; name one of them: {', '.join(names)}")
        return file.queries[0]
    for query in file.queries:
        if query.name.text == name:
            return query
    hint = did_you_mean(name, names) or f"there are: {', '.join(names)}"
    raise NotFound(f"there is no query `{name}` in the text; {hint}")


def _compile(query: syntax.Query, file: syntax.QueryFile, catalog: Catalog) -> ir.CompiledQuery:
    problems = Problems()
    scope = Scope(catalog, check_parameters(query, problems), problems)
    body = query.body
    compiled = _mutation(query, body, scope) if isinstance(body, syntax.Mutation) else _read(query, body, scope)
    if compiled is None:
        found = sorted(problems.found, key=lambda each: each.span.start)
        raise QueryTypeError(found, file.source, file.filename)
    return compiled


def _read(query: syntax.Query, read: syntax.Read, scope: Scope) -> ir.ReadQuery | None:
    block = MatchChecker().block(read.clauses, scope)
    result = check_result(read, scope)
    if scope.problems.found:
        return None
    block = with_unique_names(block)
    root = lower_result(lower_block(block), result, tuple(variable.name for variable in block.variables))
    return ir.ReadQuery(
        query.name.text,
        tuple(scope.parameters.values()),
        root,
        tuple(ir.ResultColumn(column.name, column.type, column.nullable) for column in root.columns),
        block.variables,
        tuple(sorted(tables_of(block))),
        query.annotation("description"),
        query.annotation("instruction"),
    )


def _mutation(query: syntax.Query, mutation: syntax.Mutation, scope: Scope) -> ir.MutationQuery | None:
    statements: Sequence[ir.Statement | None] = [check_statement(each, scope) for each in mutation.statements]
    if scope.problems.found:
        return None
    checked = tuple(each for each in statements if each is not None)
    reads: set[str] = set()
    writes: set[str] = set()
    for statement in checked:
        read, written = touched(statement, scope.catalog)
        reads |= read
        writes |= written
    return ir.MutationQuery(
        query.name.text,
        tuple(scope.parameters.values()),
        checked,
        tuple(sorted(reads)),
        tuple(sorted(writes)),
        query.annotation("description"),
        query.annotation("instruction"),
    )
