"""Which tests to run for a change: those that run the changed line, quickest first."""

from __future__ import annotations

import ast
import functools
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
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            told = Told(line["test"], line["seconds"])
            for module, numbers in line["lines"].items():
                for number in numbers:
                    self._by_line[module, number].add(told)

    def tests(self, module: Path, source: str, line: int, seconds: float) -> list[str]:
        """The tests that run a line, quickest first, as many as take so long together."""
        lines = lines_of_statement(source, line) or range(0)
        found = {told for number in lines for told in self._by_line[str(module), number]}
        chosen, spent = [], 0.0
        for told in sorted(found, key=lambda told: (told.seconds, told.test)):
            spent += told.seconds
            if spent > seconds and chosen:
                break
            chosen.append(told.test)
        return chosen


def lines_of_statement(source: str, line: int) -> range | None:
    """The lines of the innermost statement around a line, without the body of a compound one; None outside functions.

    What stands outside of functions runs at the import, before any test is watched.
    """
    around = [each for each in _statements(source) if each.first <= line <= each.last]
    if not any(each.is_function and each.first != line for each in around):
        return None
    return min((each.own for each in around if line in each.own), key=len, default=None)


@dataclass(frozen=True)
class Statement:
    """Where a statement begins and ends, and the lines that are not those of statements inside it."""

    first: int
    last: int
    own: range
    is_function: bool


@functools.lru_cache(maxsize=4)
def _statements(source: str) -> list[Statement]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            own = range(node.lineno, body[0].lineno if body else last + 1)
            found.append(Statement(node.lineno, last, own, isinstance(node, ast.FunctionDef)))
    return found
