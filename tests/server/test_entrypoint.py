"""The entrypoint of the container, as a script: what it refuses, and what it starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("env", "code", "told"),
    [
        ({}, 2, "set OMNIGRAPH_TARGET_URI"),
        ({"OMNIGRAPH_TARGET_URI": "a"}, 0, "started with: --workers 2"),
        ({"OMNIGRAPH_CLUSTER": "b"}, 2, "serves no clusters"),
        ({"OMNIGRAPH_TARGET_URI": "a", "OMNIGRAPH_CLUSTER": "b"}, 2, "serves no clusters"),
    ],
)
def test_the_entrypoint(tmp_path: Path, env: dict[str, str], code: int, told: str) -> None:
    program = tmp_path / "omnigraph-server"
    program.write_text('#!/bin/sh\necho "started with: $*"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", str(ROOT / "deploy" / "entrypoint.sh"), "--workers", "2"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True)


def test_what_it_starts_is_the_server() -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "deploy" / "entrypoint.sh")],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "OMNIGRAPH_TARGET_URI": "nowhere"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "no tokens are set" in done.stderr) == (1, True)


def test_the_container_file_uses_it() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    assert "COPY deploy/entrypoint.sh /usr/local/bin/omnigraph-entrypoint" in text
    assert 'ENTRYPOINT ["omnigraph-entrypoint"]' in text
