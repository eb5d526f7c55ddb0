"""Every example in the README and the docs runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_of_the_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runnable = [b for b in blocks(page) if b.not_run is None and b.language in ("python", "sh", "console", "pg", "gq")]
    assert run_page(page, tmp_path) == len(runnable)
