"""The typed IR: what a query means, as immutable values. Both engines run this and nothing else.

Expressions say what a value is; operators say which rows there are. One operator for each idea. The lowered tree is
*logical*: its order follows the text, and a planner may reorder the block of scans, expansions, joins, filters and
anti-joins below the first rank, aggregate or projection, since that block is a conjunction.

Rows are bindings: each variable stands for one entity. A row set is a set of bindings (no duplicates).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.schema.types import ValueType

THIS = "@"
"""The variable of the row that an update or a delete looks at."""


class CompareOp(StrEnum):
    """Comparison operators. Null on either side is unknown."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class AggregateFunction(StrEnum):
    """Aggregates. Only `count` of an entity counts rows; all others skip nulls."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


class TextPredicate(StrEnum):
    """Full-text filters: any token; all tokens in sequence; any token within an edit distance."""

    SEARCH = "search"
    MATCH_TEXT = "match_text"
    FUZZY = "fuzzy"


class Direction(StrEnum):
    """How an edge is followed: as declared, against it, or either way as a set."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


# --- expressions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Dates are `datetime.date`, datetimes aware `datetime.datetime`, lists tuples, null has no type."""

    value: Any
    type: ValueType | None


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter, bound when the query runs."""

    name: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """One instant per query run, a DateTime."""


@dataclass(frozen=True, slots=True)
class Prop:
    """A property of a bound entity; also `id`, and for edges `src` and `dst`."""

    var: str
    name: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """A bound entity as a whole."""

    var: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`, operands already of comparable types."""

    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class IsNull:
    """`x = null`; never unknown."""

    item: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Contains:
    """`haystack contains needle`: membership when the haystack is a list, substring when it is text."""

    haystack: Expr
    needle: Expr


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Exact, case-sensitive prefix test."""

    text: Expr
    prefix: Expr


@dataclass(frozen=True, slots=True)
class In:
    """`item in list`."""

    item: Expr
    items: Expr


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued conjunction."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Three-valued disjunction."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued negation."""

    item: Expr


@dataclass(frozen=True, slots=True)
class TextMatch:
    """`search`, `match_text` or `fuzzy` on a text property. `edits` None: by token length."""

    predicate: TextPredicate
    var: str
    table_key: str
    property: str
    query: Expr
    edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosine distance of a vector property to a query vector (or to text that is embedded). Smaller is better."""

    var: str
    table_key: str
    property: str
    dim: int
    query: Expr


@dataclass(frozen=True, slots=True)
class Bm25:
    """BM25 score of a text property for a query text. Higher is better; a row without a matching token scores null."""

    var: str
    table_key: str
    property: str
    query: Expr


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of two rankings. Higher is better."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expr | None = None


Ranking = Nearest | Bm25 | Rrf


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the rows of a group."""

    function: AggregateFunction
    arg: Prop | Entity


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column that an operator below has made, by its name (aliases, scores, aggregates)."""

    name: str
    type: ValueType
    nullable: bool = False


Expr = (
    Literal
    | Param
    | Now
    | Prop
    | Entity
    | Compare
    | IsNull
    | Contains
    | StartsWith
    | In
    | And
    | Or
    | Not
    | TextMatch
    | Nearest
    | Bm25
    | Rrf
    | Aggregate
    | ColumnRef
)


# --- operators ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unit:
    """One empty row: where a block without a scan of its own starts (inside `not { }`)."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The bindings of the enclosing block, inside `not { }`. `vars` are the outer variables that the block uses."""

    vars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """All nodes of one type, bound to `var`."""

    var: str
    table_key: str


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


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the predicate is true (neither false nor unknown)."""

    input: Operator
    predicate: Expr


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Rows of `input` for which `inner` has no row. `inner` starts from `Outer(vars)`."""

    input: Operator
    inner: Operator
    vars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """Adds the score of one ranking as a column. Scores nothing away: filters below have been applied already."""

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
    """One row per distinct tuple of `keys`; one row over everything when there are no keys."""

    input: Operator
    keys: tuple[Column, ...]
    aggregates: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """Nulls are the smallest value."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """A total order: `keys`, then ids of `tie_break` variables in order of binding (for groups: the group keys)."""

    input: Operator
    keys: tuple[SortKey, ...]
    tie_break: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first `count` rows."""

    input: Operator
    count: Expr


@dataclass(frozen=True, slots=True)
class Project:
    """The returned columns, in order. Always the root of a read."""

    input: Operator
    columns: tuple[Column, ...]


Operator = Unit | Outer | Scan | Join | Expand | Filter | AntiJoin | Rank | Fuse | GroupBy | Sort | Limit | Project


# --- queries -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A bound variable, in order of first binding in the text. Anonymous ones are named `$_1`, `$_2`, …"""

    name: str
    table_key: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter."""

    name: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A typed column of the result."""

    name: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A compiled read."""

    name: str
    parameters: tuple[Parameter, ...]
    root: Project
    columns: tuple[ResultColumn, ...]
    variables: tuple[Variable, ...]
    reads: tuple[str, ...]
    description: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value`."""

    property: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row, or an update of the row with the same key. `source` and `target` are the ends of an edge."""

    table_key: str
    assignments: tuple[Assignment, ...]
    source: Expr | None = None
    target: Expr | None = None
    id: Expr | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Set values on the rows that the predicate holds for. Properties in it have the variable `THIS`."""

    table_key: str
    assignments: tuple[Assignment, ...]
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the rows that the predicate holds for; edges that touch deleted nodes go too."""

    table_key: str
    predicate: Expr


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationQuery:
    """A compiled mutation: inserts and updates, or deletes, never both."""

    name: str
    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    description: str | None = None
    instruction: str | None = None


CompiledQuery = ReadQuery | MutationQuery
