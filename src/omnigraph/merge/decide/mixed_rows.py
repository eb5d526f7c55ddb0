"""Rows put together from both sides of a merge: the target's, with some columns of the source's.

The rule is a function on Arrow rows; whoever writes the rows decides where it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.config import settings
from omnigraph.merge.compare.images import whole_rows
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.values import TableVersion
from omnigraph.write.validate.key_changes import one_array

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore


def put_together(ours: pa.Table, theirs: pa.Table, columns: pa.Array) -> pa.Table:
    """Rows of `ours` with the columns that `columns` lists for each row from `theirs`. All three in one order."""
    named, rows = pc.list_flatten(columns), pc.list_parent_indices(columns)
    for position, name in enumerate(ours.column_names):
        taken = np.zeros(ours.num_rows, dtype=bool)
        taken[rows.filter(pc.equal(named, name)).to_numpy(zero_copy_only=False)] = True
        if taken.any():
            chosen = pc.if_else(pa.array(taken), one_array(theirs[name]), one_array(ours[name]))
            ours = ours.set_column(position, ours.schema.field(name), chosen)
    return ours


def mixed_rows(
    store: GraphStore,
    type_: GraphType,
    source: TableVersion,
    target: TableVersion,
    mixed: pa.Table,
    *,
    with_blobs: bool = True,
) -> Iterator[pa.Table]:
    """The whole rows of `mixed` (`fields.MIXED`) in pieces and in no particular order, blobs as their bytes."""
    step = settings().merge_stage_batch_rows
    for start in range(0, mixed.num_rows, step):
        piece = mixed.slice(start, step)
        ids = one_array(piece["id"])
        ours, theirs = (
            pa.concat_tables(whole_rows(store, table, type_, ids, with_blobs=with_blobs)) for table in (target, source)
        )
        theirs = theirs.take(pc.index_in(one_array(ours["id"]), value_set=one_array(theirs["id"])))
        columns = one_array(piece["columns"]).take(pc.index_in(one_array(ours["id"]), value_set=ids))
        yield put_together(ours, theirs.cast(ours.schema), columns)
