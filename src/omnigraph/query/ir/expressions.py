"""Expressions: what a value is, for each row. Operators say which rows there are.

Every expression has one meaning, given on Arrow arrays by `query/evaluate`; engines call that and never compute values
themselves. The leaves are what an engine hands over as columns: `Prop`, `Entity` (its id), `TypeOf`, `PathValue`,
`ColumnRef` and `TextMatch` (a Boolean). Everything else is computed from them.

**Null.** A property of an entity that an `optional` left null is null, and so is all that an engine hands over for it.
**Errors.** Arithmetic and functions can fail for a row (`can_fail` in `query/typing.py`). An engine evaluates an
expression for exactly the rows that reach its operator, so that both engines raise the same errors; lowering puts the
conditions that can fail above all other conditions of their block, and a planner leaves them there, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.query.ir.search import Bm25, Nearest, Rrf, TextMatch
from omnigraph.schema.catalog import property_column
from omnigraph.schema.ids.given_ids import IdForm, spelled
from omnigraph.schema.types import ValueType

THIS = "@"
"""The variable of the row that an update or a delete looks at."""

EDGE = "@edge"
"""The variable of the edge that the condition of a traversal looks at (`Expand.where`)."""


class CompareOp(StrEnum):
    """Comparison operators. Null on either side is unknown; numbers of different types compare by exact value."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class ArithmeticOp(StrEnum):
    """Arithmetic. `%` has the sign of the dividend."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


class TimeUnit(StrEnum):
    """What a date or an instant is moved by. Months and years keep the day, or take the last one of a shorter month."""

    YEARS = "years"
    MONTHS = "months"
    WEEKS = "weeks"
    DAYS = "days"
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"


class PathPart(StrEnum):
    """What can be asked of a path: the number of hops (I64), the ids of its nodes, the ids of its edges."""

    HOPS = "hops"
    NODES = "nodes"
    EDGES = "edges"


class AggregateFunction(StrEnum):
    """Aggregates. Only `count` of an entity counts rows; all others skip nulls. See `Aggregate`."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"
    MEDIAN = "median"
    STDDEV = "stddev"


# --- leaves ------------------------------------------------------------------------------------------------------


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
    ids: tuple[IdForm, ...] = ()
    """Compared with an id of these forms: whatever spelling of it is given, the stored one is meant."""

    def taken(self, values: Mapping[str, Any]) -> Any:
        """Its value among those of all parameters."""
        value = values.get(self.name)
        if not self.ids or value is None:
            return value
        return tuple(map(self._id, value)) if isinstance(value, tuple | list) else self._id(value)

    def _id(self, value: Any) -> str:
        """The id that a value stands for; what is no value of the key becomes a text that is no id."""
        found = spelled(self.ids, value)
        return found if isinstance(found, str) else str(found)


@dataclass(frozen=True, slots=True)
class Now:
    """One instant per query run, a DateTime."""


@dataclass(frozen=True, slots=True)
class Prop:
    """A property of a bound entity; also its own fields `id`, and for edges `src` and `dst`.

    `declared` is set where the schema declares a property called `id`, `src` or `dst` and that one is meant; without
    it these three names are the entity's own fields.
    """

    var: str
    name: str
    type: ValueType
    nullable: bool = False
    declared: bool = False

    @property
    def column(self) -> str:
        """The column of the type's table that holds it."""
        return property_column(self.name) if self.declared else self.name


@dataclass(frozen=True, slots=True)
class Entity:
    """A bound entity as a whole; in a condition it is its id. `nullable`: an `optional` may leave it null."""

    var: str
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`$x.@type`: the name of the type of the entity, text. It differs from row to row over several tables only."""

    var: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class PathValue:
    """A part of a path that an `Expand` bound as `path_var`. Ids are given from the path's start to its end."""

    var: str
    part: PathPart
    type: ValueType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column that an operator below has made, by its name (aliases of a stage, scores, aggregates)."""

    name: str
    type: ValueType
    nullable: bool = False


# --- conditions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`, operands already of comparable types."""

    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class IsNull:
    """`x is null`; never unknown."""

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
class EndsWith:
    """Exact, case-sensitive suffix test."""

    text: Expr
    suffix: Expr


@dataclass(frozen=True, slots=True)
class Matches:
    """`text matches pattern`: the whole text matches the regular expression, in the dialect of `schema/patterns.py`.

    A literal pattern has been checked; one that comes from a parameter can fail. `source` is the text of it all.
    """

    text: Expr
    pattern: Expr
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """`item in list`."""

    item: Expr
    items: Expr


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued conjunction. A part that can fail is evaluated only for rows that the parts before it left open."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Three-valued disjunction. A part that can fail is evaluated only for rows that the parts before it left open."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued negation."""

    item: Expr


# --- values ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` on numbers, text or lists, null when either side is null.

    `type` is the result: `+` on text is String and on lists their type (both join); `/` is always F64; otherwise F64 if
    a side is a float, U64 if both are unsigned, else I64. Operands are brought to that type first. Integers are exact:
    what does not fit is an error, and so is a float result that is not finite, and a division (or `%`) by zero.
    `source` is the expression as it was written, for the words of these errors.
    """

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: ValueType
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Negate:
    """`-item`; of an integer it is I64."""

    item: Expr
    type: ValueType
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Shift:
    """`moment + days(amount)`, or `-` when `backwards`. An amount is an integer; what leaves the calendar is an error.

    A Date moved by hours, minutes or seconds is a DateTime (from midnight UTC); otherwise the type stays.
    """

    moment: Expr
    amount: Expr
    unit: TimeUnit
    backwards: bool
    type: ValueType
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Convert:
    """A number as another type of numbers, for a property that holds it; one that does not fit exactly is an error."""

    item: Expr
    type: ValueType
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """`case { when c then v … else w }`: the value of the first branch whose condition is true, else `otherwise`.

    Values are brought to `type`. A branch is evaluated only for the rows that take it, a condition only for the rows
    that no earlier branch took.
    """

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]` with at least one item that is no literal. An item that is null makes the list null."""

    items: tuple[Expr, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Index:
    """`list[i]`: from 0, negative from the end, null outside of the list."""

    items: Expr
    index: Expr
    type: ValueType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the table `query/functions`: `function` is its name there, its kernel gives the values."""

    function: str
    args: tuple[Expr, ...]
    type: ValueType
    nullable: bool = True
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the rows of a group; its meaning on Arrow is `query/evaluate/aggregates.py`.

    - `count` is I64: rows when the argument is an entity that is never null or a constant, else values that are not
      null; 0 over nothing. All others skip nulls and are null over nothing, save `collect` of rows without a value,
      which is the empty list.
    - `sum` of integers is exact, I64 or U64 as the argument is signed or not, and what does not fit is an error; of
      floats it is F64, whatever the order of rows.
    - `avg`, `median` (the mean of the two middle values when their number is even) and `stddev` (of a sample, null for
      fewer than two values) are F64.
    - `min` and `max` keep the type.
    - `collect` is the list of the values in the order of the rows (`GroupBy.row_order`).

    `distinct`: each different value once; for `collect` where it comes first.
    """

    function: AggregateFunction
    arg: Expr
    distinct: bool = False
    source: str = field(default="", compare=False)


Expr = (
    Literal
    | Param
    | Now
    | Prop
    | Entity
    | TypeOf
    | PathValue
    | ColumnRef
    | Compare
    | IsNull
    | Contains
    | StartsWith
    | EndsWith
    | Matches
    | In
    | And
    | Or
    | Not
    | Arithmetic
    | Negate
    | Shift
    | Convert
    | Case
    | ListOf
    | Index
    | Call
    | Aggregate
    | TextMatch
    | Nearest
    | Bm25
    | Rrf
)
