"""Executors that have nothing of the driver but an archive of its Python: all kinds of work, a worker killed in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.spark.packed.hidden_cluster import can_hide
from tests.spark.packed.round_on_hidden_cluster import judge, packed_round

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.skipif(not can_hide(), reason="this system lets nobody but root have file systems of their own")
def test_a_packed_environment_is_all_that_a_cluster_needs() -> None:
    # Not in the folder of the test, which is kept: it is some gigabytes.
    with tempfile.TemporaryDirectory(prefix="omnigraph-packed-") as directory:
        judge(packed_round(Path(directory)))
