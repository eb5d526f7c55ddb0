"""Which tests to run for a change: those that run the changed line, quickest first."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Told:
    """What the recording says of one test."""

    test: str
    seconds: float


class Recording:
    """The tests by the lines that they run."""

    def __init__(self, path: Path) -> None:
        self._by_line: dict[tuple[str, int], set[Told]] = defaultdict(set)
        self._by_module: dict[str, set[Told]] = defaultdict(set)
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            told = Told(line["test"], line["seconds"])
            for module, numbers in line["lines"].items():
                self._by_module[module].add(told)
                for number in numbers:
                    self._by_line[module, number].add(told)

    def stages(self, module: Path, source: str, line: int, first: float, most: float) -> list[list[str]]:
        """Tests for a change at a line: as many as take `first` seconds together, then the rest up to `most`."""
        lines = lines_of_statement(source, line)
        found = (
            self._by_module[str(module)]
            if lines is None
            else {told for number in lines for told in self._by_line[str(module), number]}
        )
        stages: list[list[str]] = [[], []]
        spent = 0.0
        for told in sorted(found, key=lambda told: (told.seconds, told.test)):
            spent += told.seconds
            if spent > most and stages[0]:
                break
            stages[0 if spent <= first or not stages[0] else 1].append(told.test)
        return [stage for stage in stages if stage]


def lines_of_statement(source: str, line: int) -> range | None:
    """The lines of the innermost statement around a line, without the body of a compound one; None outside functions.

    What stands outside of functions runs at the import, before any test is watched.
    """
    inside = False
    found: range | None = None
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        inside = inside or (isinstance(node, ast.FunctionDef) and node.lineno != line)
        body = getattr(node, "body", None)
        lines = range(node.lineno, body[0].lineno if body else (node.end_lineno or 0) + 1)
        if line in lines and (found is None or len(lines) <= len(found)):
            found = lines
    return found if inside else None
