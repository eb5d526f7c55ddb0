"""All changes in one copy of the source, each behind a switch: `(new if MUTANT == 7 else old)`.

So the product and its tests are loaded once, and a change is tried by forking and setting the switch. `MUTANT` is a
builtin, set from the environment where the package is loaded, so that child processes of tests have it too.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.changes import Change, changes_of
from tests.mutants.choosing import lines_of_statement

PACKAGE = Path("src", "omnigraph")
SWITCH = 'import builtins, os; builtins.MUTANT = int(os.environ.get("MUTANT", "-1"))\n'


@dataclass(frozen=True)
class Place:
    """One change of one module."""

    module: Path
    change: Change


def chosen(root: Path, rooms: list[str], count: int, seed: int) -> list[Place]:
    """As many changes of each room, of modules in the measure of their size, none inside another; same for one seed."""
    dice = random.Random(seed)
    places: list[Place] = []
    for room in rooms:
        here = [
            Place(path.relative_to(root), change)
            for path in sorted((root / PACKAGE / room).rglob("*.py"))
            for change in _inside_functions(path.read_text(encoding="utf-8"))
        ]
        dice.shuffle(here)
        taken: dict[Path, list[Change]] = defaultdict(list)
        wanted = -(-count // len(rooms))
        for place in here:
            mine = taken[place.module]
            if wanted and all(place.change.end <= each.start or each.end <= place.change.start for each in mine):
                mine.append(place.change)
                places.append(place)
                wanted -= 1
    dice.shuffle(places)
    return places[:count]


def _inside_functions(source: str) -> list[Change]:
    """What stands outside of functions runs at the import, before a switch can be set."""
    return [change for change in changes_of(source) if lines_of_statement(source, change.line) is not None]


def write_switches(copy: Path, places: list[Place]) -> None:
    """Put all changes into a copy of the source, numbered in their order."""
    by_module: dict[Path, list[tuple[int, Change]]] = defaultdict(list)
    for number, place in enumerate(places):
        by_module[place.module].append((number, place.change))
    for module, changes in by_module.items():
        file = copy / module.relative_to("src")
        data = file.read_bytes()
        for number, change in sorted(changes, key=lambda each: -each[1].start):
            new = "None" if change.kind == "statement dropped" else change.new
            switched = f"({new} if MUTANT == {number} else ({change.old}))"
            data = data[: change.start] + switched.encode() + data[change.end :]
        ast.parse(data)
        file.write_bytes(data)
    entrance = copy / "omnigraph" / "__init__.py"
    text = entrance.read_text(encoding="utf-8")
    future = "from __future__ import annotations\n"
    assert future in text
    entrance.write_text(text.replace(future, future + SWITCH, 1), encoding="utf-8")
