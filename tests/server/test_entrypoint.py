"""The entrypoint of the container, as a script: what it refuses, and what it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import make
from tests.server.running import serving

ROOT = Path(__file__).resolve().parents[2]
ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"


@pytest.mark.parametrize(
    ("env", "code", "told"),
    [
        ({"OMNIGRAPH_TARGET_URI": "a"}, 0, "started with: --workers 2"),
        ({"OMNIGRAPH_CLUSTER": "b"}, 0, "started with: --workers 2"),
        ({"OMNIGRAPH_TARGET_URI": "a", "OMNIGRAPH_CLUSTER": "b"}, 2, "unset one of the two"),
        ({"OMNIGRAPH_CLUSTER": "b", "OMNIGRAPH_POLICY": "p"}, 2, "unset OMNIGRAPH_POLICY"),
        ({"OMNIGRAPH_CLUSTER": "b", "OMNIGRAPH_QUERIES": "q"}, 2, "unset OMNIGRAPH_QUERIES"),
    ],
)
def test_the_entrypoint(tmp_path: Path, env: dict[str, str], code: int, told: str) -> None:
    program = tmp_path / "omnigraph-server"
    program.write_text('#!/bin/sh\necho "started with: $*"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", str(ENTRYPOINT), "--workers", "2"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True)


def test_without_anything_to_serve_it_says_what_to_set() -> None:
    done = subprocess.run(["sh", str(ENTRYPOINT)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, "set OMNIGRAPH_TARGET_URI" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--help"], 0, "usage: omnigraph-server"),
        (["--unauthenticated"], 1, "no graph to serve"),
        (["nowhere.omni", "--cluster", "c"], 1, "serve one of the two"),
    ],
)
def test_its_arguments_are_those_of_the_server(words: list[str], code: int, told: str) -> None:
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["sh", str(ENTRYPOINT), *words], env=env, capture_output=True, text=True)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    ("variable", "told"),
    [("OMNIGRAPH_TARGET_URI", "no tokens are set"), ("OMNIGRAPH_CLUSTER", "run `omnigraph cluster apply`")],
)
def test_what_it_starts_is_the_server(tmp_path: Path, variable: str, told: str) -> None:
    done = subprocess.run(
        ["sh", str(ENTRYPOINT)],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", variable: "nowhere"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr


def test_the_health_check_asks_where_the_server_listens(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    [check] = [json.loads(line.partition("CMD")[2]) for line in text.splitlines() if line.startswith("HEALTHCHECK")]

    def asked(bind: str) -> int:
        return subprocess.run(
            [sys.executable, *check[1:]], env={"OMNIGRAPH_BIND": bind}, capture_output=True
        ).returncode

    with serving(GraphSettings("default", make(tmp_path))) as running:
        port = running.url.rpartition(":")[2]
        assert asked(f"0.0.0.0:{port}") == 0
    assert asked(f"0.0.0.0:{port}") != 0


def test_the_container_file_uses_it() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    assert "COPY deploy/entrypoint.sh /usr/local/bin/omnigraph-entrypoint" in text
    assert 'ENTRYPOINT ["omnigraph-entrypoint"]' in text
    assert os.access(ENTRYPOINT, os.X_OK)
    for line in text.splitlines():
        if line.startswith("COPY"):
            assert all((ROOT / place).exists() for place in line.split()[1:-1]), line


def test_the_package_is_made_of_what_the_container_file_copies() -> None:
    """What `pip install` reads: the description of the project names no other file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = {"pyproject.toml", "README.md", "src"}
    assert project["project"]["readme"] in copied
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {place.partition("/")[0] for place in packages} <= copied
    assert "server" in project["project"]["optional-dependencies"]
