"""Binding a variable to the rows of its table, and testing entities that were reached another way.

What can be decided by one variable is decided here, before anything is joined: plain predicates by the scan itself,
text predicates by the table's text index, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.query import ir
from omnigraph.query.ir.expression_parts import leaves, rebuild, searches_in
from omnigraph.query.typing import STRING
from omnigraph.read.codes.arrays import Codes, Mask, distinct_codes
from omnigraph.read.plan.steps import ScanStep
from omnigraph.read.search.row_sets import matching_rows, table_mask
from omnigraph.read.search.searched import searched_by
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.spaces import SMALL_TABLE, EdgeRowSpace, GrowingSpace, SortedSpace, identity_of
from omnigraph.read.state.union import UnionSpace
from omnigraph.read.tables.values import conjunction, true_mask
from omnigraph.schema.catalog import OWN_COLUMNS, Catalog, GraphType, NodeType
from omnigraph.schema.ids.given_ids import NoId, id_form
from omnigraph.schema.types import INTEGERS, Scalar, ScalarType

MANY = 2000
"""From so many reached entities on, one filtered scan beats a look-up by id."""


def scan(run: Run, step: ScanStep) -> Frame:
    """The entities for which all filters hold."""
    space = run.entities(run.variables[step.var])
    found = [_scan_table(run, step, table_key) for table_key in step.tables]
    if isinstance(space, UnionSpace):
        found = [space.code(key, part) for key, part in zip(step.tables, found, strict=True)]
    codes = found[0] if len(found) == 1 else np.concatenate(found)
    return Frame(len(codes), {step.var: codes})


def _scan_table(run: Run, step: ScanStep, table_key: str) -> Codes:
    plain, texts = parted(run, table_key, step.filters)
    space = run.space(table_key)
    carried = carried_along(run, step.var, table_key)
    first = _searched_first(run, table_key, plain, texts)
    if first is not None:
        names = list(dict.fromkeys(["id", *carried]))
        found = [space.bind(rows, carried) for rows in matching_rows(run, table_key, first, conjunction(plain), names)]
        codes = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *found]))
        for match in texts:
            codes = codes if match is first else codes[_text_mask(run, match, table_key, codes)]
        return codes
    identity = next((p for p in plain if identity_of(p) is not None), None)
    if identity is not None and not isinstance(space, GrowingSpace):
        codes = space.scan(identity, carried)
        rest = conjunction([p for p in plain if p is not identity])
        if rest is not None and len(codes):
            codes = codes[true_mask(run.evaluate_in(rest, table_key, codes))]
    else:
        codes = space.scan(conjunction(plain), carried)
    for match in texts:
        codes = codes[_text_mask(run, match, table_key, codes)]
    return codes


def _searched_first(
    run: Run, table_key: str, plain: Sequence[ir.Expr], texts: Sequence[ir.Expr]
) -> ir.TextMatch | None:
    """The text predicate that a scan starts from: one that an index answers, or any when the table is large.

    A small table without an index is read as a whole and kept, and a look-up by id leaves one row to judge.
    """
    matches = [each for each in texts if isinstance(each, ir.TextMatch) and run.has(table_key, each)]
    if not matches or any(identity_of(each) is not None for each in plain):
        return None
    for match in matches:
        searched = searched_by(run.catalog, match, table_key)
        if run.reader.text_coverage(table_key, searched.column, searched.settings) is not None:
            return match
    return matches[0] if run.reader.row_count(table_key) > SMALL_TABLE else None


def carried_along(run: Run, var: str, table_key: str) -> list[str]:
    """The properties of a variable that are read along with the scan of one of its tables."""
    type_ = run.catalog.table(table_key)
    assert type_ is not None
    return [name for name in run.carried.get(var, ()) if name in type_.by_column or name in OWN_COLUMNS]


def _text_mask(run: Run, predicate: ir.Expr, table_key: str, codes: Codes) -> Mask:
    """Which entities pass a predicate that is a search, has one in it, or asks for what the table has not."""
    if isinstance(predicate, ir.TextMatch) and run.has(table_key, predicate):
        return table_mask(run, predicate, table_key, codes)
    return true_mask(run.evaluate_in(predicate, table_key, codes))


def entity_mask(run: Run, var: str, codes: Codes, filters: Sequence[ir.Expr]) -> Mask:
    """Which of these entities pass all filters of their variable. The same entity may come more than once."""
    if not filters or len(codes) == 0:
        return np.ones(len(codes), dtype=bool)
    tables = run.variables[var]
    space = run.entities(tables)
    if isinstance(space, SortedSpace | EdgeRowSpace) and 2 * space.size() <= len(codes):
        # Most entities come, and often: to ask of all of them is cheaper than to find out which.
        every = np.arange(space.size(), dtype=np.int64)
        return _table_mask(run, var, tables[0], every, filters)[codes]
    distinct, inverse = distinct_codes(codes)
    if len(tables) == 1:
        return _table_mask(run, var, tables[0], distinct, filters)[inverse]
    assert isinstance(space, UnionSpace)
    kept = np.zeros(len(distinct), dtype=bool)
    for table_key in tables:
        at, local = space.part(distinct, table_key)
        kept[at] = _table_mask(run, var, table_key, local, filters)
    return kept[inverse]


def _table_mask(run: Run, var: str, table_key: str, codes: Codes, filters: Sequence[ir.Expr]) -> Mask:
    plain, texts = parted(run, table_key, filters)
    space = run.space(table_key)
    predicate = conjunction(plain)
    if predicate is None or len(codes) == 0:
        kept = np.ones(len(codes), dtype=bool)
    elif isinstance(space, GrowingSpace) and len(codes) > MANY:
        kept = np.isin(codes, space.scan(predicate, carried_along(run, var, table_key)))
    else:
        kept = true_mask(run.evaluate_in(predicate, table_key, codes))
    for match in texts:
        at = np.flatnonzero(kept)
        kept[at] = _text_mask(run, match, table_key, codes[at])
    return kept


def parted(run: Run, table_key: str, filters: Sequence[ir.Expr]) -> tuple[list[ir.Expr], list[ir.Expr]]:
    """Plain predicates, which the table itself can decide, and the others."""
    known = [of_table(run.bind(p), table_key) for p in filters]
    others = [p for p in known if searches_in(p) or not _is_of(run, table_key, p)]
    plain = [by_identity(run.catalog, table_key, p) for p in known if p not in others]
    return plain, others


def _is_of(run: Run, table_key: str, predicate: ir.Expr) -> bool:
    """Whether the table has all properties that a predicate looks at."""
    return all(run.has(table_key, leaf) for leaf in leaves(predicate) if isinstance(leaf, ir.Prop))


def of_table(predicate: ir.Expr, table_key: str) -> ir.Expr:
    """The predicate for entities of one table, whose type is known, as one over columns of that table."""
    match predicate:
        case ir.TypeOf():
            return ir.Literal(table_key.split(":", 1)[1], STRING)
        case ir.Entity(var=var):
            return ir.Prop(var, "id", STRING)
        case _:
            return rebuild(predicate, lambda part: of_table(part, table_key))


def by_identity(catalog: Catalog, table_key: str, predicate: ir.Expr) -> ir.Expr:
    """Equality with the only key property is equality of the id, which is always indexed. Ids are spelled as stored."""
    match predicate:
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Prop() as prop, right=ir.Literal(value=value)):
            pass
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Literal(value=value), right=ir.Prop() as prop):
            pass
        case _:
            return predicate
    graph_type = catalog.table(table_key)
    if graph_type is not None and prop.column == "id" and isinstance(value, str):
        return ir.Compare(ir.CompareOp.EQ, prop, ir.Literal(_as_stored(catalog, graph_type, value), prop.type))
    if (
        not isinstance(graph_type, NodeType)
        or graph_type.key != (prop.column,)
        or not isinstance(prop.type, ScalarType)
    ):
        return predicate
    text = None
    if prop.type.scalar is Scalar.STRING and isinstance(value, str):
        text = value
    elif prop.type.scalar in INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        text = str(value)
    if text is None:
        return predicate
    string = ScalarType(Scalar.STRING)
    return ir.Compare(ir.CompareOp.EQ, ir.Prop(prop.var, "id", string), ir.Literal(text, string))


def _as_stored(catalog: Catalog, graph_type: GraphType, given: str) -> str:
    try:
        return id_form(catalog, graph_type).take(given)
    except NoId:
        return given
