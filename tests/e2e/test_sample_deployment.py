"""The sample deployment: the four commands of its README, from its files to served queries."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import httpx

from tests.cli.conftest import real_process
from tests.server.running import process

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cluster"


def test_four_commands_lead_from_nothing_to_served_queries(tmp_path: Path) -> None:
    folder = tmp_path / "deployment"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__cluster", "__locks", "graphs"))
    block = re.search(r"```sh\n(.*?)```", (SAMPLE / "README.md").read_text(), re.DOTALL)
    assert block is not None
    commands = [shlex.split(line) for line in block[1].strip().splitlines()]
    assert [command[0] for command in commands[:3]] == ["omnigraph"] * 3
    for command in commands[:3]:
        ran = real_process(*command[1:], cwd=folder)
        assert ran.code == 0, ran
    variable, server, *argv = commands[3]
    assert (server, argv) == ("omnigraph-server", ["--cluster", "."])
    name, _, value = variable.partition("=")
    tokens = {"act-ada": "change-me-token-of-ada", "act-bob": "change-me-token-of-bob"}
    with process("--cluster", folder, folder=tmp_path, env={name: str(folder / value)}) as running:

        def ask(actor: str, path: str, **params: object) -> httpx.Response:
            headers = {"Authorization": f"Bearer {tokens[actor]}"}
            return httpx.post(f"{running.url}/graphs/{path}", json={"params": params}, headers=headers, timeout=60)

        found = ask("act-bob", "library/queries/books_about", text="how to bake bread").json()["rows"]
        assert found[0] == {"b.slug": "bread", "b.title": "Bread at Home"}
        assert [row["b.title"] for row in ask("act-bob", "library/queries/read_by", reader="mina").json()["rows"]] == [
            "Night Sky",
            "The Open Sea",
        ]
        assert ask("act-bob", "work/queries/finish", slug="t1").status_code == 200
        assert [row["t.slug"] for row in ask("act-ada", "work/queries/open_tasks").json()["rows"]] == ["t2"]
