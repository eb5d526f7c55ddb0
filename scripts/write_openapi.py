"""Writes `docs/openapi.json`, the description of the HTTP API, from the routes. A test keeps it true."""

from __future__ import annotations

import json
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"


def document() -> str:
    """The document as it is to be."""
    from omnigraph.server.app import bare_app

    return json.dumps(bare_app().openapi(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
