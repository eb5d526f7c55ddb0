"""Which edge a record without an id means: the one with the same first unique tuple, else a new one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.catalog import GraphType
from omnigraph.write.rows.ulids import new_ulids
from omnigraph.write.validate.duplicates import match_tuples, tuple_codes
from omnigraph.write.validate.graph_rules import best_lookup
from omnigraph.write.validate.key_changes import Committed, distinct, one_array
from omnigraph.write.validate.zeros import with_both_zeros


def assign_edge_ids(type_: GraphType, given: pa.Table, committed: Committed) -> pa.Array:
    """An id for each row of `given` (its `id`, and the columns of the first unique tuple).

    A given id stays. Rows without one take the id of the committed edge with the same tuple, else that of the first row
    of the input with the same tuple; a tuple with a null in it is nobody's, so such a row is new.
    """
    unique = type_.uniques[0]
    columns = [given[name] for name in unique]
    missing = pc.is_null(one_array(given["id"])).to_numpy(zero_copy_only=False)
    codes, complete = tuple_codes(columns)
    own = pc.coalesce(one_array(given["id"]), new_ulids(len(missing)))
    # The first row with a tuple lends its id to the others; a tuple with a null in it is nobody's.
    lender = np.arange(len(missing))
    rows = np.flatnonzero(complete)
    _, first, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
    lender[rows] = rows[first[inverse]]
    ids = own.take(pa.array(lender))
    if committed.count(type_.table_key):
        lookup = best_lookup(type_, unique)
        values = with_both_zeros(distinct(given[lookup]))
        found = committed.rows_with(type_.table_key, lookup, values, ["id", *unique])
        if found.num_rows:
            rows, partners = match_tuples(columns, [found[name] for name in unique])
            theirs = np.full(len(missing), -1, np.int64)
            theirs[rows] = partners
            both = pa.concat_arrays([ids, one_array(found["id"])])
            ids = both.take(pa.array(np.where(theirs >= 0, len(missing) + theirs, np.arange(len(missing)))))
    return pc.coalesce(one_array(given["id"]), ids)
