"""The reference pages say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["errors.md", "settings.md", "developers/failpoints.md", "query-reference.md"])
def test_the_page_is_up_to_date(page: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, 'scripts'); import write_reference as w; sys.stdout.write(w.PAGES[{page!r}]())"
    )
    written = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == written, "run `python scripts/write_reference.py`"
