"""A compaction of a fork loses the indexes it inherited: maintenance drops and rebuilds them as long as this holds."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction


def test_an_inherited_index_is_looked_for_in_the_wrong_place_after_a_compaction_of_the_fork(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"r{n}" for n in range(50)]})
    main = lance.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True, data_storage_version="2.2")
    main.create_scalar_index("id", "BTREE")
    fork = main.create_branch("f", (None, main.version))
    fork.delete("id = 'r1'")
    fork = main.checkout_version(("f", None))
    plan = Compaction.plan(fork, {"materialize_deletions_threshold": 0.0})
    Compaction.commit(fork, [task.execute(fork) for task in plan.tasks])
    fork = main.checkout_version(("f", None))
    assert fork.scanner(filter="id = 'r2'", use_scalar_index=False).count_rows() == 1
    with pytest.raises((OSError, ValueError), match=r"[Nn]ot found"):
        fork.scanner(filter="id = 'r2'").to_table()
