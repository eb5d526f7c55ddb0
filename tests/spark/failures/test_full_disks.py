"""No room on the store or in an executor's scratch directory: small file systems that are really full."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.failures.graph_files import write_people

ROOT = Path(__file__).resolve().parents[3]
MOUNTED = "mount -t tmpfs -o size=3m none {store} && mount -t tmpfs -o size=8m none {scratch} && exec {program}"


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not _may_mount(), reason="only who may mount file systems can make a small one")
def test_a_full_store_and_a_full_scratch_directory_are_told_and_leave_nothing(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("store", "scratch")}
    for place in places.values():
        place.mkdir()
    data = write_people(tmp_path / "people.jsonl", 4000, note=" and a few words more about this person")
    program = [sys.executable, "-m", "tests.spark.failures.full_disks", *map(str, places.values()), str(data)]
    script = MOUNTED.format(**places, program=shlex.join(program))
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    for place in ("store", "scratch"):
        assert "No space left on device" in told[place]
        assert "while decoding, checking and writing" in told[place]
        assert "Nothing was published" in told[place]
    assert told["left over"] == []
    assert told["rows"] == [3999, 4000]
