"""When a revert may put tables back as they were: only while the branch shows just what it takes back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from omnigraph.ledger.values import TablePin
from omnigraph.merge.undo.revert import _is_still


def state(digest: str, version: int) -> Any:
    pin = TablePin("node:Person", "n1", "nodes/n1", None, version, 3, "i")
    return SimpleNamespace(schema_digest=digest, tables={pin.table_key: pin})


def test_neither_the_schema_nor_a_table_may_have_moved_since() -> None:
    span: Any = SimpleNamespace(after=state("after", 5))
    assert _is_still(state("after", 5), span)
    assert not _is_still(state("later", 5), span)
    assert not _is_still(state("after", 6), span)
