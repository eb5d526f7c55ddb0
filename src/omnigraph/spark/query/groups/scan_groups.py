"""Groups of the rows of one variable, made where they are read: only what tasks know of groups goes through Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniGraphError
from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves
from omnigraph.query.predicates import conjuncts
from omnigraph.query.typing import type_of
from omnigraph.read.tables.values import evaluate
from omnigraph.schema.types import ValueType
from omnigraph.spark.query.bindings import KEY, Bindings, Names, type_name
from omnigraph.spark.query.expressions import BOOLEAN, spark_type
from omnigraph.spark.query.groups.aggregates import Asked, merged, states_schema
from omnigraph.spark.query.groups.group_tasks import SOMETHING, Batches, GroupStates, MergedStates
from omnigraph.spark.query.needs import Field, field_of, stored_type
from omnigraph.spark.query.snapshot_reads import SnapshotReads
from omnigraph.spark.query.tables import Tables, has_field, union
from omnigraph.spark.source.task_reads import ReadTable
from omnigraph.spark.spread import with_details
from omnigraph.spark.types import travelling_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW_STATES = 65_536
"""So many states of groups, from all tasks together, are put together by the driver."""


class ScanGroups:
    """The groupings of one query that look at one variable only."""

    def __init__(
        self,
        tables: Tables,
        reads: SnapshotReads,
        bind: Callable[[ir.Expr], ir.Expr],
        names: Names,
        *,
        at_once: bool,
    ) -> None:
        """`at_once`: the query is run now, and not made into a frame that somebody runs later."""
        self._at_once = at_once
        self._tables = tables
        self._reads = reads
        self._bind = bind
        self._names = names

    def lowered(self, operator: ir.GroupBy) -> Bindings | None:
        """The groups; None where rows have to go through Spark first, or all rows of a group are looked at together."""
        scan, conditions = _scanned(operator.input)
        asked = [Asked(each.expr, each.type, "") for each in operator.aggregates if isinstance(each.expr, ir.Aggregate)]
        states = [state for state in (each.state for each in asked) if state is not None]
        if scan is None or len(states) < len(operator.aggregates):
            return None
        if not operator.keys and any(each.aggregate.distinct for each in asked):
            # All different values of everything would come to one task.
            return None
        keys = [self._bind(key.expr) for key in operator.keys]
        arguments = [self._bind(each.aggregate.arg) for each in asked]
        checks = [self._bind(each) for each in conditions]
        looked_at = _leaves([*checks, *keys, *arguments])
        if not self._can_be_read(scan.var, keys, looked_at):
            return None
        key_names = {key.name: self._names() for key in operator.keys}
        names = {each.name: self._names() for each in operator.aggregates}
        asked = [Asked(each.aggregate, each.type, name) for each, name in zip(asked, names.values(), strict=True)]
        key_types = [key.type for key in operator.keys]
        argument_types = [type_of(each.aggregate.arg) or BOOLEAN for each in asked]
        schema = states_schema(_fields(key_names.values(), key_types), asked, states)
        reads = []
        for table_key in scan.all_tables:
            if table_key in self._tables.variables.tables(scan.var):
                columns, leaf_columns = self._columns(table_key, looked_at)
                task = _ReadGroups(
                    leaf_columns,
                    checks,
                    [*zip(keys, key_types), *zip(arguments, argument_types)],
                    GroupStates(len(keys), len(keys), states, tuple(schema.fieldNames())),
                )
                reads.append(
                    (self._reads.read(table_key, columns, self._tables.condition(table_key, scan, scan.var)), task)
                )
        frame = self._of_few(reads, schema, asked) if self._at_once else None
        if frame is None:
            parts = [self._reads.worked(read, task.run, schema) for read, task in reads]
            frame = merged(union(parts), list(key_names.values()), [], asked, states)
        return Bindings(frame, computed={**key_names, **names})

    def _of_few(
        self, reads: Sequence[tuple[ReadTable, _ReadGroups]], schema: Any, asked: Sequence[Asked]
    ) -> DataFrame | None:
        """The groups put together here, if there are so few that no shuffle is worth it; None if there are more."""
        from pyspark.sql.types import BooleanType, StructField, StructType

        groups = reads[0][1].groups
        most = max(1, FEW_STATES // sum(max(1, len(read.stretches)) for read, _ in reads))
        marked = StructType([*schema.fields, StructField(SOMETHING, BooleanType())])
        parts = [self._reads.worked(read, _FewStates(task, most).run, marked) for read, task in reads]
        found = union(parts).toArrow()
        if not pc.all(found.column(SOMETHING), min_count=0).as_py():
            return None
        result = StructType([*schema.fields[: groups.keys], *_fields([a.name for a in asked], [a.type for a in asked])])
        merging = MergedStates(groups.keys, groups.keys, groups.states, tuple(result.fieldNames()))
        typed = found.cast(pa.schema([*reads[0][1].state_fields(), pa.field(SOMETHING, pa.bool_())]))
        try:
            (made,) = merging.run(iter(typed.to_batches() or [_no_rows(typed.schema)]))
        except OmniGraphError:
            # A task tells what it met in the words that reach the caller.
            return None
        return self._reads.held(pa.Table.from_batches([made]), result)

    def _can_be_read(self, var: str, keys: Sequence[ir.Expr], looked_at: Sequence[ir.Expr]) -> bool:
        """Whether everything is in the columns of a table, and no key is an entity, which would stay bound."""
        mixed = self._tables.variables.is_mixed(var)
        for leaf in looked_at:
            match leaf:
                case ir.Prop(var=own) | ir.TypeOf(var=own) if own == var:
                    continue
                case ir.Entity(var=own) if own == var and not mixed:
                    continue
            return False
        return not any(isinstance(key, ir.Entity) for key in keys)

    def _columns(self, table_key: str, looked_at: Sequence[ir.Expr]) -> tuple[list[str], dict[ir.Expr, _Place]]:
        """The columns of a table to read, and where each leaf is found."""
        graph_type = self._tables.catalog.table(table_key)
        assert graph_type is not None
        columns: dict[str, None] = {}
        places: dict[ir.Expr, _Place] = {}
        for leaf in looked_at:
            match leaf:
                case ir.Prop() if field_of(leaf) != KEY:
                    field = Field(field_of(leaf), stored_type(leaf.type))
                    places[leaf] = _Place(field.type, field.column if has_field(graph_type, field) else None)
                case ir.TypeOf():
                    places[leaf] = _Place(pa.string(), None, type_name(table_key))
                case _:
                    places[leaf] = _Place(pa.string(), "id")
            name = places[leaf].column
            if name is not None:
                columns[name] = None
        return list(columns) or ["id"], places


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the values of a leaf are: in a column, or one for all rows, null where the table has no such column."""

    type: pa.DataType
    column: str | None
    value: str | None = None

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Those of a batch as it is stored."""
        if self.column is None:
            return pa.repeat(pa.scalar(self.value, self.type), batch.num_rows)
        stored = batch.column(self.column)
        return stored if stored.type == self.type else stored.cast(self.type)


@dataclass(frozen=True, slots=True)
class _ReadGroups:
    """What a task makes of the rows that it reads."""

    places: dict[ir.Expr, _Place]
    checks: Sequence[ir.Expr]
    wanted: Sequence[tuple[ir.Expr, ValueType]]
    groups: GroupStates

    def run(self, batches: Batches) -> Batches:
        """The states of the groups among them."""
        evaluated = with_details(self._evaluated)
        return self.groups.run(evaluated(batch) for batch in batches)

    def state_fields(self) -> list[pa.Field]:
        """The columns of the states, in the types in which tasks make them."""
        keys = [travelling_type(stored_type(type_)) for _, type_ in self.wanted[: self.groups.keys]]
        types = [*keys, *(type_ for state in self.groups.states for type_ in state.types)]
        return [pa.field(name, type_) for name, type_ in zip(self.groups.names, types, strict=True)]

    def _evaluated(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for check in self.checks:
            # One after the other: a later one may fail for rows that an earlier one leaves out.
            batch = batch.filter(pc.fill_null(self._value(check, batch), False))
        made = []
        for expr, type_ in self.wanted:
            value = self._value(expr, batch)
            target = travelling_type(stored_type(type_))
            made.append(value if value.type == target else value.cast(target))
        return pa.RecordBatch.from_arrays(made, names=[f"w{position}" for position in range(len(made))])

    def _value(self, expr: ir.Expr, batch: pa.RecordBatch) -> pa.Array:
        return evaluate(expr, batch.num_rows, lambda leaf: self.places[leaf].values(batch))


@dataclass(frozen=True, slots=True)
class _FewStates:
    """The states that a task has made, marked; if there are too many, nothing but one row that is not marked."""

    task: _ReadGroups
    most: int

    def run(self, batches: Batches) -> Batches:
        """No more of them than that."""
        sent = 0
        for made in self.task.run(batches):
            lists = [column for column in made.columns if pa.types.is_list(column.type)]
            sent += made.num_rows + sum(len(column.flatten()) for column in lists)
            if sent > self.most:
                nothing = [pa.nulls(1, column.type) for column in made.columns]
                yield pa.RecordBatch.from_arrays([*nothing, pa.array([False])], names=[*made.schema.names, SOMETHING])
                return
            yield made.append_column(SOMETHING, pa.array([True] * made.num_rows))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _scanned(operator: ir.Operator) -> tuple[ir.Scan | None, list[ir.Expr]]:
    """The scan that an operator is, and the conditions on its rows in their order; or None."""
    match operator:
        case ir.Scan():
            return operator, []
        case ir.Filter(input=below, predicate=predicate):
            scan, conditions = _scanned(below)
            return scan, [*conditions, *conjuncts(predicate)]
        case _:
            return None, []


def _leaves(exprs: Sequence[ir.Expr]) -> list[ir.Expr]:
    """What expressions look at besides constants, each once."""
    found: Iterator[ir.Expr] = (leaf for expr in exprs for leaf in leaves(expr))
    return list(dict.fromkeys(leaf for leaf in found if not isinstance(leaf, ir.Literal)))


def _fields(names: Iterable[str], types: Sequence[ValueType]) -> list[Any]:
    from pyspark.sql.types import StructField

    return [StructField(name, spark_type(type_)) for name, type_ in zip(names, types, strict=True)]
