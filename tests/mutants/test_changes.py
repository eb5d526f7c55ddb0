"""The changes themselves: each kind is made, each is another program, and each differs from the text it came from."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutants.changes import changes_of

SAMPLE = """
def f(a, b, known=True):
    if a == 1 and not b:
        return [x for x in a if x > 2]
    g(a)
    return a + b if known else None
"""


def test_every_kind_of_change_is_made() -> None:
    told = {f"{change.kind}: {change.old} → {change.new}" for change in changes_of(SAMPLE)}
    assert told == {
        "branches swapped: a == 1 and not b → (not (a == 1 and (not b)))",
        "branches swapped: known → (not (known))",
        "condition dropped: a == 1 and not b → (a == 1)",
        "condition dropped: a == 1 and not b → (not b)",
        "condition dropped: not b → (b)",
        "condition dropped: x > 2 → True",
        "operator: a + b → (a - b)",
        "operator: a == 1 and not b → (a == 1 or not b)",
        "operator: a == 1 → (a != 1)",
        "operator: x > 2 → (x >= 2)",
        "statement dropped: g(a) → pass",
    }


def test_what_runs_before_a_change_can_be_switched_on_is_left_alone() -> None:
    source = """
class Kept:
    def f(self, a: int | None, known: bool = True) -> int | None:
        def g(b: int | None = 1 + 2) -> bool:
            found: bool | None = b is None
            return found
        return zip(a, known, strict=True)
"""
    assert [change.old for change in changes_of(source)] == ["b is None"]


def test_a_change_is_another_program_of_the_same_file() -> None:
    source = (Path(__file__).parents[2] / "src/omnigraph/ledger/recovery/decide.py").read_text(encoding="utf-8")
    changes = changes_of(source)
    assert len(changes) > 10
    for change in changes:
        assert ast.dump(ast.parse(change.apply(source))) != ast.dump(ast.parse(source))
