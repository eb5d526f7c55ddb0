"""The examples, run as their reader runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOLD = {
    "agent_memory.py": ["conflict: ", "branches of a table share their files", "BranchMerge"],
    "agent_review.py": [
        "tools: hire, staff, query, diff, branch_create\n",
        "on main, refused: `scout` may not change on branch `main`",
        "review: insert Person {'@id': 'cleo', 'slug': 'cleo', 'role': 'research'}",
        "made by: scout",
        "merged: fast_forward",
        "staff: [{'p.slug': 'cleo', 'p.role': 'research'}, {'p.slug': 'dora', 'p.role': 'operations'}]",
    ],
}


def test_there_are_no_others() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_an_example(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for words in TOLD[name]:
        assert words in done.stdout, done.stdout
    assert list(tmp_path.iterdir()) == []
