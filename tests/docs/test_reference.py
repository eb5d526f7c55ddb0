"""The reference pages say what the code says."""

from __future__ import annotations

import ast
import re
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


def defined(path: Path) -> set[str]:
    """The functions and classes of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names.update(f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))
    return names


def test_links_to_functions_lead_to_functions() -> None:
    found = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for target, name in re.findall(r"\]\(([^)#\s]+\.py)#([\w.]+)\)", page.read_text(encoding="utf-8")):
            module = (page.parent / target).resolve()
            assert module.exists(), f"{page.name}: {target}"
            assert name in defined(module), f"{page.name}: {target}#{name}"
            found += 1
    assert found > 40
