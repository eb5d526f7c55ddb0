"""The statements of a mutation, each over what the earlier ones left and for every binding of what it names.

A statement reads first and writes then: whatever its bindings ask of a row is the row as it was before the statement.
Bindings that want the same of one row want it once; bindings that want different things of it are an error.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, Violation
from omnigraph.query import ir
from omnigraph.query.evaluate import evaluate, matching_rows
from omnigraph.query.typing import BOOL
from omnigraph.schema.catalog import EdgeType, GraphType, NodeType, column_title, property_column
from omnigraph.schema.ids.given_ids import IdForm, NoId, own_forms
from omnigraph.write.bindings import Bindings, with_values
from omnigraph.write.decode.records import decode_plain_rows
from omnigraph.write.mutate.blob_uris import read_blob_uri
from omnigraph.write.mutate.pending import MutationStaging
from omnigraph.write.rows.overlay import changed_rows
from omnigraph.write.rows.row_columns import ENDS, working_schema
from omnigraph.write.rows.row_ids import normal_ids, with_ids
from omnigraph.write.rows.rows import Rows, concat_rows
from omnigraph.write.validate import messages
from omnigraph.write.validate.collector import Kind, ViolationCollector
from omnigraph.write.validate.duplicates import has_repeats
from omnigraph.write.validate.key_changes import one_array
from omnigraph.write.validate.value_rules import check_values

_ALWAYS = ir.Literal(True, BOOL)
_RECORD_NAME = {"src": "from", "dst": "to"}


class Statements:
    """Runs statements over pending rows. `params` are bound, with the bytes of blobs."""

    def __init__(
        self,
        staging: MutationStaging,
        bindings: Bindings,
        params: Mapping[str, Any],
        now: datetime.datetime,
        violations: ViolationCollector,
    ) -> None:
        self._staging = staging
        self._bindings = bindings
        self._params = params
        self._now = now
        self._violations = violations

    def run(self, statements: Sequence[ir.Statement]) -> None:
        """Run them in order."""
        # Neighbouring inserts into one table are one batch: one look-up for all of them.
        for _, group in groupby(
            statements, key=lambda s: (type(s), s.table_key if isinstance(s, ir.Insert) else id(s))
        ):
            batch = list(group)
            match batch[0]:
                case ir.Insert():
                    self._insert([statement for statement in batch if isinstance(statement, ir.Insert)])
                case ir.InsertRows() as insert:
                    self._insert_rows(insert)
                case ir.Update() as update:
                    self._update(update)
                case ir.Delete() as delete:
                    self._delete(delete)

    # --- insert --------------------------------------------------------------------------------------------------

    def _insert(self, inserts: Sequence[ir.Insert]) -> None:
        type_ = self._staging.type(inserts[0].table_key)
        parts: list[Rows] = []
        must_be_new: list[bool] = []
        for insert in inserts:
            rows = with_ids(type_, self._rows(type_, insert), self._violations)
            rows = self._one_per_id(type_, rows, insert.new)
            parts.append(rows)
            must_be_new += [insert.new or insert.id is not None] * rows.count
        self._put(type_, concat_rows(parts), must_be_new)

    def _insert_rows(self, insert: ir.InsertRows) -> None:
        if not self._bindings.count:
            return
        type_ = self._staging.type(insert.table_key)
        given = enumerate(self._params[insert.parameter] or (), 1)
        rows = decode_plain_rows(self._staging.catalog, type_, given, f"${insert.parameter}", self._violations)
        own_ids = pc.is_valid(rows.table["id"]).to_pylist()
        rows = with_ids(type_, rows, self._violations)
        self._put(type_, rows, [insert.new or (given and not type_.key) for given in own_ids])

    def _put(self, type_: GraphType, rows: Rows, must_be_new: Sequence[bool]) -> None:
        """Merge rows into what is there; those that have no identity are reported and left out."""
        self._refuse_missing_ends(type_, rows)
        ids = one_array(rows.table["id"])
        if ids.null_count:
            check_values(type_, rows.take(pc.indices_nonzero(pc.is_null(ids))), self._violations, partial=True)
            known = pc.indices_nonzero(pc.is_valid(ids))
            rows, must_be_new = rows.take(known), [must_be_new[position] for position in known.to_pylist()]
        if any(must_be_new):
            self._refuse_existing(type_, rows, must_be_new)
        if rows.count:
            self._staging.upsert(rows, known_new=not type_.key and not any(must_be_new))

    def _rows(self, type_: GraphType, insert: ir.Insert) -> Rows:
        bindings = self._bindings.distinct(insert.vars)
        given: dict[str, ir.Expr] = {property_column(a.property): a.value for a in insert.assignments}
        own = {"id": insert.id, "src": insert.source, "dst": insert.target}
        forms = own_forms(self._staging.catalog, type_)
        schema = working_schema(type_)
        arrays = [
            self._ids(own[field.name], forms[field.name], bindings)
            if field.name in forms
            else self._values(given.get(field.name), field.type, bindings)
            for field in schema
        ]
        unmentioned = pa.repeat(pa.scalar(False), bindings.count)
        mentioned = {column: unmentioned for column in type_.by_column if column not in given}
        return Rows(type_.table_key, pa.table(arrays, schema=schema), mentioned=mentioned)

    def _ids(self, expr: ir.Expr | None, form: IdForm, bindings: Bindings) -> pa.Array:
        """Given ids, or what the key makes of its values."""
        if expr is None:
            return pa.nulls(bindings.count, pa.string())
        if isinstance(expr, ir.Literal):
            return pa.array([_taken(form, expr.value)] * bindings.count, pa.string())
        found = evaluate(expr, bindings.column, self._params, self._now, bindings.count)
        if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
            return one_array(normal_ids(form, pa.chunked_array([found.cast(pa.string())])))
        return pa.array([_taken(form, value) for value in found.to_pylist()], pa.string())

    def _values(self, expr: ir.Expr | None, type_: pa.DataType, bindings: Bindings) -> pa.Array:
        if expr is None:
            return pa.nulls(bindings.count, type_)
        return self._evaluated(expr, type_, bindings, None)

    def _evaluated(self, expr: ir.Expr, type_: pa.DataType, bindings: Bindings, rows: pa.Table | None) -> pa.Array:
        """The values of an expression over bindings, and over `rows`: the row that each of them is about."""
        count = bindings.count
        if isinstance(expr, ir.Literal) and isinstance(expr.value, str) and pa.types.is_large_binary(type_):
            return pa.array([read_blob_uri(expr.value)] * count, type_)

        def column(leaf: Any) -> Any:
            if rows is not None and isinstance(leaf, ir.Prop) and leaf.var == ir.THIS:
                return rows[leaf.column]
            return bindings.column(leaf)

        value = evaluate(expr, column, self._params, self._now, count)
        return value if value.type == type_ else value.cast(type_)

    def _one_per_id(self, type_: GraphType, rows: Rows, new: bool) -> Rows:
        """Rows of one statement with one id are one row, if they are the same."""
        if new or not type_.key or rows.count < 2 or not has_repeats(rows.table["id"]):
            return rows
        first = self._agreed(type_, rows.table)
        return rows.take(first)

    def _agreed(self, type_: GraphType, rows: pa.Table) -> pa.Array:
        """The first row of each id. `BadRequest` when two rows with one id are different."""
        ids = rows["id"].to_pylist()
        seen: dict[Any, int] = {}
        keys = ((id_, number if id_ is None else None) for number, id_ in enumerate(ids))
        firsts = np.array([seen.setdefault(key, number) for number, key in enumerate(keys)], np.int64)
        differs = changed_rows(rows, rows, firsts)
        if bool(differs.any()):
            self._disagree(type_, rows, int(np.flatnonzero(differs)[0]), firsts)
        return pa.array(sorted(seen.values()), pa.int64())

    def _disagree(self, type_: GraphType, rows: pa.Table, row: int, firsts: np.ndarray) -> None:
        one, other = rows.slice(int(firsts[row]), 1), rows.slice(row, 1)
        name = next(name for name in rows.column_names if not one[name].equals(other[name]))
        values = " and ".join(messages.show(part[name][0].as_py()) for part in (one, other))
        id_ = messages.show(one["id"][0].as_py())
        raise BadRequest(
            f"two bindings of the match set `{column_title(name)}` of {type_.name} {id_} to different values, "
            f"{values}; match one binding for each row",
            table_key=type_.table_key,
            row_id=one["id"][0].as_py(),
        )

    def _refuse_existing(self, type_: GraphType, rows: Rows, must_be_new: Sequence[bool]) -> None:
        """Report ids that exist already, or come twice, where the row must be a new one."""
        taken = set(self._staging.rows_by_id(type_.table_key, one_array(rows.table["id"]))["id"].to_pylist())
        for row, (id_, new) in enumerate(zip(rows.table["id"].to_pylist(), must_be_new)):
            if new and id_ in taken:
                self._report(type_, Kind.EXISTING_ID, rows, row, "id", messages.existing_row(id_))
            taken.add(id_)

    def _refuse_missing_ends(self, type_: GraphType, rows: Rows) -> None:
        if not isinstance(type_, EdgeType) or rows.records is not None:  # decoding has reported those of rows
            return
        for end in ENDS:
            for row in pc.indices_nonzero(pc.is_null(rows.table[end])).to_pylist():
                self._report(type_, Kind.MISSING_VALUE, rows, row, end, messages.missing_value(_RECORD_NAME[end]))

    def _report(self, type_: GraphType, kind: Kind, rows: Rows, row: int, column: str, message: str) -> None:
        place = rows.place(row)
        self._violations.add(
            Violation(
                kind.value,
                type_.table_key,
                message,
                row_id=rows.table["id"][row].as_py(),
                property=column_title(column),
                source=place.source,
                record=place.record,
            )
        )

    # --- update and delete ---------------------------------------------------------------------------------------

    def _update(self, update: ir.Update) -> None:
        type_ = self._staging.type(update.table_key)
        rows, bindings = self._targets(update, whole=True)
        if not rows.num_rows:
            return
        assigned: set[str] = set()
        changed = rows
        for assignment in update.assignments:
            column = property_column(assignment.property)
            position = rows.schema.get_field_index(column)
            field = rows.schema.field(position)
            values = self._evaluated(assignment.value, field.type, bindings, rows)
            changed = changed.set_column(position, field, values)
            assigned.add(column)
        if update.vars and has_repeats(changed["id"]):
            changed = changed.take(self._agreed(type_, changed))
        self._staging.replace(update.table_key, changed, assigned)

    def _delete(self, delete: ir.Delete) -> None:
        staging = self._staging
        rows, _ = self._targets(delete, whole=False)
        ids = staging.delete(delete.table_key, one_array(rows["id"]))
        type_ = staging.type(delete.table_key)
        if len(ids) and isinstance(type_, NodeType):
            self._cascade(type_, ids)

    def _targets(self, statement: ir.Update | ir.Delete, *, whole: bool) -> tuple[pa.Table, Bindings]:
        """The rows that a statement is about, one for each binding that is about it, and those bindings."""
        bindings = self._bindings.distinct(statement.vars)
        if not bindings.count:
            return self._matching(statement.table_key, ir.Literal(False, BOOL), whole), bindings
        if statement.var is not None:
            return self._bound_targets(statement, statement.var, bindings)
        if not statement.vars:
            rows = self._matching(statement.table_key, statement.predicate, whole)
            return rows, bindings.take(pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows))
        parts: list[pa.Table] = []
        about: list[int] = []
        for number, values in enumerate(bindings.each()):
            parts.append(self._matching(statement.table_key, with_values(statement.predicate, values), whole))
            about += [number] * parts[-1].num_rows
        return pa.concat_tables(parts), bindings.take(pa.array(about, pa.int64()))

    def _matching(self, table_key: str, predicate: ir.Expr, whole: bool) -> pa.Table:
        if whole:
            return self._staging.matching(table_key, predicate, self._params, self._now)
        ids = self._staging.matching_ids(table_key, predicate, self._params, self._now)
        return pa.table({"id": ids})

    def _bound_targets(
        self, statement: ir.Update | ir.Delete, variable: str, bindings: Bindings
    ) -> tuple[pa.Table, Bindings]:
        """The rows that a variable of the match is bound to, as they are now; what is gone by now is left out."""
        ids = bindings.ids(variable)
        there = self._staging.rows_by_id(statement.table_key, pc.unique(ids).drop_null())
        found = pc.index_in(ids, value_set=one_array(there["id"]))
        known = pc.indices_nonzero(pc.and_(pc.is_valid(found), pc.is_valid(ids)))
        bindings, rows = bindings.take(known), there.take(found.take(known))
        if statement.predicate == _ALWAYS:
            return rows, bindings

        def column(leaf: Any) -> Any:
            return rows[leaf.column] if isinstance(leaf, ir.Prop) and leaf.var == ir.THIS else bindings.column(leaf)

        holds = matching_rows(statement.predicate, column, self._params, self._now, rows.num_rows)
        return rows.filter(holds), bindings.take(pc.indices_nonzero(holds))

    def _cascade(self, type_: NodeType, ids: pa.Array) -> None:
        """Delete the edges that touch deleted nodes, on every edge type."""
        committed = self._staging.committed
        for edge in self._staging.catalog.edges_touching(type_.name):
            if not committed.count(edge.table_key):
                continue
            for end, node in (("src", edge.source), ("dst", edge.target)):
                if node == type_.name:
                    found = self._staging.rows_at(edge.table_key, end, ids)
                    if len(found):
                        self._staging.delete(edge.table_key, found)


def _taken(form: IdForm, value: Any) -> str | None:
    if value is None:
        return None
    try:
        return form.take(value)
    except NoId as problem:
        why = f": {problem}" if str(problem) else ""
        raise BadRequest(f"{messages.show(value)} is no id{why}") from None
