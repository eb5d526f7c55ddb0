"""Runs the examples of a Markdown page, top to bottom, in one empty directory.

- A block after `<!-- file: name -->` is written to that file.
- `python` blocks share one namespace; `sh` blocks run in a shell with `omnigraph` on the path and must succeed.
- `console` blocks hold `$ command` lines, each followed by what it prints; `...` stands for anything.
- `pg` and `gq` blocks must parse (a `gq` block is checked against the last `pg` block of its page).
- A block after `<!-- not run: reason -->` is left out.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!--\s*(file|not run):\s*(.*?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    file: str | None
    not_run: str | None


def blocks(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(source):
        mark = _MARK.search(source[: match.start()].rstrip())
        kind, value = (mark.group(1), mark.group(2)) if mark else (None, None)
        found.append(
            Block(
                language=match.group(1),
                text=match.group(2),
                line=source.count("\n", 0, match.start()) + 1,
                file=value if kind == "file" else None,
                not_run=value if kind == "not run" else None,
            )
        )
    return found


def run_page(page: Path, directory: Path) -> int:
    """Run every example of the page; returns how many ran."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    schema: str | None = None
    ran = 0
    for block in blocks(page):
        if block.not_run is not None:
            continue
        place = f"{page.name}:{block.line}"
        if block.file is not None:
            target = directory / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        if block.language == "python":
            exec(compile(block.text, place, "exec"), names)
        elif block.language == "sh":
            done = _shell(block.text, directory)
            assert done.returncode == 0, f"{place} failed:\n{done.stdout}{done.stderr}"
        elif block.language == "console":
            _console(block.text, directory, place)
        elif block.language == "pg":
            from omnigraph.schema.compile import compile_schema

            compile_schema(block.text, filename=place)
            schema = block.text
        elif block.language == "gq":
            _check_queries(block.text, schema, place)
        else:
            continue
        ran += 1
    return ran


def _shell(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-e", "-c", command],
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


def _console(text: str, directory: Path, place: str) -> None:
    checker = doctest.OutputChecker()
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = _shell(command, directory)
        printed = done.stdout + done.stderr
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected, printed, flags), (
            f"{place}: $ {command}\nexpected:\n{expected}\ngot:\n{printed}"
        )


def _check_queries(text: str, schema: str | None, place: str) -> None:
    from omnigraph.query.text.parse import parse_queries

    parse_queries(text, filename=place)
    if schema is not None:
        from omnigraph.query.lower.compile import compile_file
        from omnigraph.schema.compile import compile_schema

        compile_file(text, compile_schema(schema))


if __name__ == "__main__":
    print(run_page(Path(sys.argv[1]), Path.cwd()))
