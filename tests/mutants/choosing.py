"""Which tests to run for a change: those that call the changed function, quickest first."""

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
    """The tests by the functions that they call."""

    def __init__(self, path: Path) -> None:
        self._by_function: dict[str, list[Told]] = defaultdict(list)
        self._by_module: dict[str, list[Told]] = defaultdict(list)
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            told = Told(line["test"], line["seconds"])
            for place in line["calls"]:
                self._by_function[place].append(told)
            for module in {place.rpartition(":")[0] for place in line["calls"]}:
                self._by_module[module].append(told)

    def stages(self, module: Path, source: str, line: int, seconds: float) -> list[list[str]]:
        """Tests for a change at a line: first as many as take `seconds` together, then ten times as long."""
        place = _function_at(source, line)
        named, at = (self._by_module, f"{module}") if place is None else (self._by_function, f"{module}:{place}")
        stages: list[list[str]] = [[], []]
        spent = 0.0
        for told in sorted(set(named.get(at, [])), key=lambda told: (told.seconds, told.test)):
            spent += told.seconds
            if spent > 11 * seconds and stages[0]:
                break
            stages[0 if spent <= seconds or not stages[0] else 1].append(told.test)
        return [stage for stage in stages if stage]


def _function_at(source: str, line: int) -> int | None:
    """The first line, as a code object gives it, of the innermost function around a line; None outside of all."""
    found: int | None = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found = first if found is None else max(found, first)
    return found
