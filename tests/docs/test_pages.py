"""Every example in the README and the docs runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "sh", "console", "pg", "gq")


def runnable_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.not_run is None and block.language in LANGUAGES]


PAGES = [page for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]) if runnable_blocks(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_the_page_run(page: Path, tmp_path: Path) -> None:
    """In a process of its own: a page may start a Spark session, as its reader would."""
    runnable = runnable_blocks(page)
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.pages", str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == str(len(runnable))


def test_the_pages_have_examples() -> None:
    assert len(PAGES) > 20
