"""Operators: which rows there are. A row binds variables to entities and paths, and holds computed columns.

Within a block (the operators between a start and the next rank, aggregate, stage or projection) everything but
`Optional` is a conjunction, and a planner may reorder it freely, save conditions that can fail (see expressions).
`Optional` applies to all that is below it; what is above it may look at the variables it binds.

**Names.** No two things of a query have one name, in whatever block they stand: lowering calls a variable as it was
written if that name is free in the whole query, else `name#2` and so on. `Variable.written` keeps the word for display.

**Several tables.** A variable of an interface, of edge alternatives or of `either` arms may range over several tables.
Then its table key says so (`interface:Named`, `node:A|B`, `edge:Knows|Follows`) and `tables` lists them in the order of
their names. An entity is the pair of its table and its id: equal ids of two types are two entities, and where ids
break ties the type's name comes second.

**Null.** Only an `Optional` binds a variable to null. A traversal from null or to null is no match. Nulls sort first
where ids break ties.

**Duplicates.** The rows of a block are different from each other, until a `Stage` drops variables: from there on rows
are a bag, as they are in a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.query.ir.expressions import Expr
from omnigraph.query.ir.search import Bm25, Nearest, Rrf
from omnigraph.schema.types import ValueType


class Direction(StrEnum):
    """How an edge is followed: as declared, against it, or either way as a set."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Variable:
    """A bound variable, in order of first binding in the text. Anonymous ones are named `$_1`, `$_2`, …"""

    name: str
    table_key: str
    tables: tuple[str, ...] = ()
    nullable: bool = False
    written: str = ""

    @property
    def all_tables(self) -> tuple[str, ...]:
        """The tables that it ranges over."""
        return self.tables or (self.table_key,)


# --- the match block ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """One empty row: where a block without a scan of its own starts."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The bindings of the enclosing block, inside `not`, `exists`, `optional` and the arms of `either`.

    `vars` are the variables of enclosing blocks that the block uses, each different binding of them once; `columns`
    the computed columns of an earlier stage that it reads, which belong to the binding.
    """

    vars: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """All nodes of one type (or of each of `tables`), bound to `var`."""

    var: str
    table_key: str
    tables: tuple[str, ...] = ()

    @property
    def all_tables(self) -> tuple[str, ...]:
        """The tables that are scanned."""
        return self.tables or (self.table_key,)


@dataclass(frozen=True, slots=True)
class Join:
    """Natural join on the variables that both sides bind; the product when there is none."""

    left: Operator
    right: Operator


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow an edge type from `from_var`.

    Without `edge_var` each (from, to) pair comes once, `to` at a breadth-first distance within the bounds. With
    `edge_var` there is one row per edge (a single hop; for `both`, an edge is reported once per orientation that
    matches, and a self-loop once). `to_bound`: the input binds `to_var` already, so this only checks that they
    are connected.

    `edges` lists the edge types when there are several (`knows|follows`, `*`); `edge` then joins their names with `|`.
    A hop takes an edge of any of them, in `direction`; walks may pass through nodes of any type. `to_tables` lists the
    types that `to_var` may have when there are several. An edge type that does not fit a node is not followed there.

    `where`: every edge of the walk satisfies this condition; edges that do not are as if they were not there. Its
    properties have the variable `EDGE`; it looks at nothing else but parameters and constants.

    `path_var`: bind a shortest walk from `path_start` (one of the two ends) to the other end, of those that the
    traversal may take. Of several, the one whose list of node ids from the start is the least, then whose list of edge
    ids is the least; over several types an entity compares by id, then by the name of its type. A self-loop is a walk
    of one hop. `PathValue` reads it.
    """

    input: Operator
    from_var: str
    edge: str
    direction: Direction
    to_var: str
    to_table: str
    min_hops: int = 1
    max_hops: int = 1
    edge_var: str | None = None
    to_bound: bool = False
    edges: tuple[str, ...] = ()
    to_tables: tuple[str, ...] = ()
    where: Expr | None = None
    path_var: str | None = None
    path_start: str | None = None

    @property
    def all_edges(self) -> tuple[str, ...]:
        """The names of the edge types that are followed."""
        return self.edges or (self.edge,)

    @property
    def all_to_tables(self) -> tuple[str, ...]:
        """The tables that `to_var` ranges over."""
        return self.to_tables or (self.to_table,)


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the predicate is true (neither false nor unknown). Above a `GroupBy` it is `having`."""

    input: Operator
    predicate: Expr


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """`not { … }`: rows of `input` for which `inner` has no row. `inner` starts from `Outer(vars, columns)`."""

    input: Operator
    inner: Operator
    vars: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """`exists { … }`: rows of `input` for which `inner` has a row. `inner` starts from `Outer(vars, columns)`."""

    input: Operator
    inner: Operator
    vars: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional { … }`: each row of `input` with every match of `inner`, or once with `binds` null.

    `inner` starts from `Outer(vars, columns)`; it has each different binding of `vars` and `binds` once. `binds` are
    the variables that it binds newly; `paths` are the paths it binds.
    """

    input: Operator
    inner: Operator
    vars: tuple[str, ...]
    binds: tuple[Variable, ...]
    columns: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """`either { … } or { … }`: each row of `input` with every different binding of `binds` that some arm matches.

    Every arm starts from `Outer(vars, columns)`, or from a `Unit` or scans of its own when `vars` is empty. `binds` are
    the variables that all arms bind newly; other variables of an arm are dropped. Without `binds` this keeps the rows
    for which some arm has a match.
    """

    input: Operator
    arms: tuple[Operator, ...]
    vars: tuple[str, ...]
    binds: tuple[Variable, ...]
    columns: tuple[str, ...] = ()


# --- above the block ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rank:
    """Adds the score of one ranking as a column. Scores nothing away: filters below have been applied already.

    A `Filter` of `IsNull(ColumnRef(column), negated=True)` above it keeps the rows that have a score (a bare ranking
    in `order`).
    """

    input: Operator
    ranking: Nearest | Bm25
    column: str


@dataclass(frozen=True, slots=True)
class Fuse:
    """Adds the reciprocal-rank fusion of two rankings as a column."""

    input: Operator
    ranking: Rrf
    column: str


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed expression."""

    name: str
    expr: Expr
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class GroupBy:
    """One row per distinct tuple of `keys`; one row over everything when there are no keys.

    Null equals null in keys, `-0.0` equals `0.0`, NaN equals NaN. A key `Entity(x)` keeps `x` bound above.
    `return distinct` is a grouping without aggregates. `row_order` is set when a `collect` needs to know the order of
    the rows: by the ids of these variables (or by these columns), as in `Sort.tie_break`.
    """

    input: Operator
    keys: tuple[Column, ...]
    aggregates: tuple[Column, ...]
    row_order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SortKey:
    """Nulls are the smallest value, unless `nulls_first` says where they come. NaN is the greatest number."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def nulls_lead(self) -> bool:
        """Whether nulls come before the other values."""
        return not self.descending if self.nulls_first is None else self.nulls_first


@dataclass(frozen=True, slots=True)
class Sort:
    """A total order: `keys`, then `tie_break`: ids of variables in order of binding, and computed columns by value.

    A name that is no bound variable is a computed column (a group key, an alias of an earlier stage). All ascending,
    nulls first.
    """

    input: Operator
    keys: tuple[SortKey, ...]
    tie_break: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `count` rows (None: all) behind the first `offset` ones (None: from the first on)."""

    input: Operator
    count: Expr | None
    offset: Expr | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """`with { … }`: one row for each row of `input`, with just these variables bound and just these computed columns.

    The next block starts from here. Columns are computed all at once from the input, so one may have the name of an
    input column that it replaces. Below stand the stage's `Limit`, `Sort`, `Filter` (its `where`) and `GroupBy`; a
    `Sort` without a `Limit` above it is left out, since only a limit makes it matter.
    """

    input: Operator
    variables: tuple[str, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """The returned columns, in order. Always the root of a read."""

    input: Operator
    columns: tuple[Column, ...]


Operator = (
    Unit
    | Outer
    | Scan
    | Join
    | Expand
    | Filter
    | AntiJoin
    | SemiJoin
    | Optional
    | Either
    | Rank
    | Fuse
    | GroupBy
    | Sort
    | Limit
    | Stage
    | Project
)
