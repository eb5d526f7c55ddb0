"""Runs commands the way the program does, in this process; a few tests start real processes instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import main

SCHEMA = """\
node Person {
    slug: String @key
    age: I32?
    bio: String? @index
}
node Company {
    slug: String @key
}
edge WorksAt: Person -> Company @card(0..1)
"""

RECORDS = [
    {"type": "Person", "data": {"slug": "ada", "age": 36, "bio": "likes graphs"}},
    {"type": "Person", "data": {"slug": "bob", "age": 20}},
    {"type": "Company", "data": {"slug": "acme"}},
    {"edge": "WorksAt", "from": "ada", "to": "acme"},
]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*argv: object) -> Ran:
        capsys.readouterr()
        code = main([str(arg) for arg in argv])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.pg"
    path.write_text(SCHEMA)
    return path


@pytest.fixture
def graph(tmp_path: Path, schema: Path, run: Run) -> Path:
    """A graph with two people, a company and an edge."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    path = tmp_path / "g.omni"
    assert run("init", "--schema", schema, path).code == 0
    assert run("load", "--data", data, "--mode", "append", path).code == 0
    return path


def real_process(*argv: object, cwd: Path, stdin: str | None = None, timeout: float = 120) -> Ran:
    """The installed program in a process of its own."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "omnigraph"), *(str(arg) for arg in argv)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
