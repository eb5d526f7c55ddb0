"""The API is described by one document, which is checked in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_up_to_date() -> None:
    code = "import sys; sys.path.insert(0, 'scripts'); import write_openapi as w; sys.stdout.write(w.document())"
    written = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert (ROOT / "docs" / "openapi.json").read_text() == written, "run `python scripts/write_openapi.py`"


def test_older_paths_are_marked_and_every_path_says_how_it_fails() -> None:
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    older = {path for path, methods in paths.items() if any(m.get("deprecated") for m in methods.values())}
    assert older == {f"/graphs/{{graph_id}}/{name}" for name in ("read", "change", "ingest")}
    for path, methods in paths.items():
        for method, described in methods.items():
            assert {"200", "default"} <= described["responses"].keys(), (path, method)
            assert "422" not in described["responses"]
