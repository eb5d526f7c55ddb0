"""From text to IR. What the executors can rely on is said here.

**Shape of a read.** From the root down:

    Project                                       always; its columns are the result columns, in order
      Limit                                       when the query has a `limit` or an `offset`
        Sort                                      always; `keys` is empty without `order`
          GroupBy                                 for `return distinct`: no aggregates
            Filter …                              one for each condition of `having`
              GroupBy                             when the return has an aggregate
                Filter                            for a bare ranking in `order`: its score is not null
                  Rank / Fuse …                   one for each different ranking, named `$rank1`, `$rank2`, …
                    block                         the last match block; it starts from a Stage when there are several

A `Stage` stands between two blocks. Below it is what stands above a block, with its `where` as the Filter; its Sort is
there only when it has a limit or an offset.

**Block.** Variables that traversals connect make a component. Each component starts with a `Scan` of the first
variable that it declares (`$x: Type`), or of its first variable when it declares none. Its traversals follow in text
order, each as soon as one of its ends is bound: `Expand` from the source (`out`), or from the target (`in`) when only
that is bound, or `both` for `<edge>`. `to_bound` is set when both ends are bound, `$p knows $p` included. A component
without traversals is a bare `Scan`. Components are joined by `Join`, in the order of their first variable; they share
no variable, so this is a product. A `Filter` stands directly above the operator that binds the last variable it needs.
A `TextMatch` that is joined by `and` is the whole predicate of a `Filter`; one under `or` or `not` is part of one.
A declared variable that is reached by an `Expand` has no scan of its own: the edge type fixes its type. A match block
that binds nothing starts from `Unit`. Above all this, in this order: `Either` blocks, filters on what they bind,
`AntiJoin` and `SemiJoin`, and the filters that can fail (`can_fail`), each in text order. Then follow the `Optional`
blocks in text order, each with the filters and blocks above it that look at what it binds.

**Blocks inside.** `AntiJoin.inner` and the like are blocks that start from `Outer(vars, columns)`: these variables are
bound from the start, and other components are joined to it. `vars` are the outer variables that the block or a block
inside it uses, in binding order; `columns` the aliases of an earlier stage that it reads. A nested block's `Outer` may
name variables of any block around it. When there are neither, the block starts like one that stands alone.

**Names.** Every variable has one name in the whole query (see ir/operators.py). A condition of a block on a variable
from outside that is narrowed inside (`TypeOf(x) in […]`, `x is not null`) is an ordinary filter of that block.

**Expressions.** Above `Rank`, `Fuse`, `GroupBy` and `Stage`, what they computed is read through `ColumnRef`. A
`Project` over a `GroupBy` holds `ColumnRef`, literals, parameters and what is computed from them only. Aliases are
replaced by what they stand for. `GroupBy.keys` and `aggregates` have the names of the result columns; aggregates that
are no result column of their own (sorted by only, or inside an expression) are called `$aggregate1`, …

**Sort.** `tie_break` names the variables in order of binding (edge variables and anonymous ones included), by whose
ids ties are broken; behind a stage also its columns that are no lists; over a `GroupBy` the key columns. Nulls are the
smallest value. A `nearest` that is sorted ascending (which is what a bare one means) is preceded by the key
`IsNull(score)`, so that rows without a vector come last. A bare `bm25` or `rrf` is sorted descending.

**Mutations** are lists of statements; predicates look at the row through the variable `THIS`. `from`, `to` and `id`
are properties `src`, `dst` and `id`. `MutationQuery.match` is a block without anything above it.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import Diagnostic, did_you_mean
from omnigraph.errors import BadRequest, NotFound, QueryTypeError
from omnigraph.query import ir
from omnigraph.query.check.blocks import Block
from omnigraph.query.check.match import MatchChecker
from omnigraph.query.check.mutation import check_statement, touched
from omnigraph.query.check.parameters import check_parameters
from omnigraph.query.check.results import CheckedResult, check_result, check_stage
from omnigraph.query.check.scope import Problems, Scope
from omnigraph.query.lower.blocks import lower_block, tables_of
from omnigraph.query.lower.results import RankNames, lower_result, lower_stage, sortable
from omnigraph.query.text import syntax
from omnigraph.query.text.parse import parse_queries
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
    scope = Scope(catalog, check_parameters(query, catalog, problems), problems)
    body = query.body
    compiled = _mutation(query, body, scope) if isinstance(body, syntax.Mutation) else _read(query, body, scope)
    if compiled is None:
        found = sorted(problems.found, key=lambda each: each.span.start)
        raise QueryTypeError(found, file.source, file.filename)
    return compiled


def _variables(checker: MatchChecker) -> dict[str, ir.Variable]:
    """Every variable of the query, by its name."""
    return {found.name: found for bound in checker.variables if (found := bound.variable()) is not None}


def _read(query: syntax.Query, read: syntax.Read, scope: Scope) -> ir.ReadQuery | None:
    checker = MatchChecker()
    blocks = [checker.block(read.clauses, scope)]
    stages: list[tuple[CheckedResult, Scope]] = []
    for stage in read.stages:
        result = check_stage(stage, scope)
        scope = _next_scope(result, scope)
        stages.append((result, scope))
        blocks.append(checker.block(stage.clauses, scope))
    result = check_result(read, scope)
    if scope.problems.found:
        return None
    variables = _variables(checker)
    ranks = RankNames()
    tree = lower_block(blocks[0], variables)
    rows = [variable.name for variable in blocks[0].variables]
    for (ended, after), block in zip(stages, blocks[1:], strict=True):
        tree = lower_stage(tree, ended, rows, ranks)
        kept = list(tree.variables)
        tree = lower_block(block, variables, tree, kept)
        columns = [name for name, column in after.columns.items() if sortable(column.type)]
        rows = [*kept, *columns, *(variable.name for variable in block.variables if variable.name not in kept)]
    root = lower_result(tree, result, rows, ranks)
    return ir.ReadQuery(
        query.name.text,
        tuple(scope.parameters.values()),
        root,
        tuple(ir.ResultColumn(column.name, column.type, column.nullable) for column in root.columns),
        tuple(variables[name] for name in rows if name in variables),
        _reads(blocks, variables),
        query.annotation("description"),
        query.annotation("instruction"),
        tuple(variables.values()),
    )


def _next_scope(result: CheckedResult, scope: Scope) -> Scope:
    """What is known behind a `with`: just the variables and the aliases that it lists."""
    kept = {column.expr.var for column in result.columns if isinstance(column.expr, ir.Entity)}
    variables = {name: bound for name, bound in scope.variables.items() if bound.name in kept}
    columns = {
        column.name: ir.ColumnRef(column.name, column.type, column.nullable)
        for column in result.columns
        if not isinstance(column.expr, ir.Entity)
    }
    order = [column.name for column in result.columns]
    listed = dict(sorted(variables.items(), key=lambda item: order.index(item[0])))
    left = scope.left_behind | (scope.variables.keys() - listed.keys())
    return Scope(scope.catalog, scope.parameters, scope.problems, listed, columns, left)


def _reads(blocks: Sequence[Block], variables: dict[str, ir.Variable]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(tables_of(block, variables) for block in blocks))))


def _mutation(query: syntax.Query, mutation: syntax.Mutation, scope: Scope) -> ir.MutationQuery | None:
    checker = MatchChecker()
    block = None if mutation.clauses is None else checker.block(mutation.clauses, scope)
    statements: Sequence[ir.Statement | None] = [check_statement(each, scope) for each in mutation.statements]
    if scope.problems.found:
        return None
    checked = tuple(each for each in statements if each is not None)
    variables = _variables(checker)
    reads = set() if block is None else set(_reads([block], variables))
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
        None if block is None else lower_block(block, variables),
        () if block is None else block.variables,
        tuple(variables.values()),
    )
