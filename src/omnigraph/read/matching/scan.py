"""Binding a variable to the rows of its table, and testing entities that were reached another way.

What can be decided by one variable is decided here, before anything is joined: plain predicates by the scan itself,
text predicates by the token index.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, Mask, distinct_codes
from omnigraph.read.plan.steps import ScanStep
from omnigraph.read.search.ranking import text_mask
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.state.spaces import GrowingSpace, identity_of
from omnigraph.read.tables.values import conjunction
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.types import INTEGERS, Scalar, ScalarType

MANY = 2000
"""From so many reached entities on, one filtered scan beats a look-up by id."""


def scan(run: Run, step: ScanStep) -> Frame:
    """The entities for which all filters hold."""
    plain, texts = _parted(run, step.table_key, step.filters)
    space = run.space(step.table_key)
    carried = run.carried.get(step.var, ())
    identity = next((p for p in plain if identity_of(p) is not None), None)
    if identity is not None and not isinstance(space, GrowingSpace):
        codes = space.scan(identity, carried)
        plain = [p for p in plain if p is not identity]
        codes = codes[_plain_mask(run, step.var, codes, plain)]
    else:
        codes = space.scan(conjunction(plain), carried)
    for match in texts:
        codes = codes[text_mask(run, match, codes)]
    return Frame(len(codes), {step.var: codes})


def entity_mask(run: Run, var: str, codes: Codes, filters: Sequence[ir.Expr]) -> Mask:
    """Which of these entities pass all filters of their variable. The same entity may come more than once."""
    if not filters or len(codes) == 0:
        return np.ones(len(codes), dtype=bool)
    table_key = run.tables[var]
    plain, texts = _parted(run, table_key, filters)
    distinct, inverse = distinct_codes(codes)
    space = run.space(table_key)
    if plain and isinstance(space, GrowingSpace) and len(distinct) > MANY:
        kept = np.isin(distinct, space.scan(conjunction(plain), run.carried.get(var, ())))
    else:
        kept = _plain_mask(run, var, distinct, plain)
    for match in texts:
        at = np.flatnonzero(kept)
        kept[at] = text_mask(run, match, distinct[at])
    return kept[inverse]


def _plain_mask(run: Run, var: str, codes: Codes, filters: Sequence[ir.Expr]) -> Mask:
    mask = np.ones(len(codes), dtype=bool)
    if len(codes) and filters:
        predicate = conjunction(filters)
        assert predicate is not None
        mask = run.mask(predicate, Frame(len(codes), {var: codes}))
    return mask


def _parted(run: Run, table_key: str, filters: Sequence[ir.Expr]) -> tuple[list[ir.Expr], list[ir.TextMatch]]:
    texts = [p for p in filters if isinstance(p, ir.TextMatch)]
    plain = [by_identity(run.catalog, table_key, run.bind(p)) for p in filters if not isinstance(p, ir.TextMatch)]
    return plain, texts


def by_identity(catalog: Catalog, table_key: str, predicate: ir.Expr) -> ir.Expr:
    """Equality with the only key property is equality of the id, which is always indexed."""
    match predicate:
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Prop() as prop, right=ir.Literal(value=value)):
            pass
        case ir.Compare(op=ir.CompareOp.EQ, left=ir.Literal(value=value), right=ir.Prop() as prop):
            pass
        case _:
            return predicate
    graph_type = catalog.table(table_key)
    if not isinstance(graph_type, NodeType) or graph_type.key != (prop.name,) or not isinstance(prop.type, ScalarType):
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
