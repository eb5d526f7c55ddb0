"""The house: rooms of a size that a person can take in, doors that are used, names that mean one thing.

Read from the source by itself, so that imports inside functions and for types count like all others.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "omnigraph"
GLOSSARY = ROOT / "docs" / "developers" / "glossary.md"

MOST_MODULES = 15

ONE_MEANING = {
    "aggregates": "aggregates of the query language, by stage",
    "bindings": "what the variables of a query are bound to",
    "blocks": "blocks of a match, by stage",
    "branches": "the branches of a graph: made and deleted, and the commands for that",
    "changes": "changes of entities, and how they are shown",
    "codes": "the codes of a language's errors",
    "comparisons": "comparisons of the query language, by stage",
    "compile": "the compiler of a language",
    "copy": "a copy of a graph, in process and on Spark",
    "entities": "nodes and edges as they are shown",
    "export": "a graph written out, in process and on Spark",
    "expressions": "expressions of the query language, by stage",
    "format": "the formatter of a language",
    "literals": "literals of a language",
    "load": "a load, in process and on Spark",
    "match": "match blocks, by stage",
    "merge": "a merge, in process and on Spark",
    "moments": "dates and times, as values and in functions",
    "needs": "which properties a query needs, by engine",
    "numbers": "numbers of the query language, by stage",
    "parse": "the parser of a language",
    "progress": "how far work is, and how that is shown",
    "queries": "whole queries, by stage",
    "results": "results: of a query, by stage, and of a write",
    "run": "a compiled read run by an engine",
    "sources": "texts and inputs that a caller gives",
    "tables": "the tables of a graph",
    "types": "the types of columns, of functions, and on Spark",
    "values": "the plain values that a room speaks in",
}
"""Module names that stand in several rooms, and the one thing that each means."""


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> dict[str, frozenset[str]]:
    known = modules()
    graph = {}
    for name, path in known.items():
        used = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    used.add(whole if whole in known else node.module)
            elif isinstance(node, ast.Import):
                used.update(alias.name for alias in node.names)
        graph[name] = frozenset(used & known.keys()) - {name}
    return graph


def sub_rooms() -> list[Path]:
    return sorted(init.parent for init in PACKAGE.glob("*/*/**/__init__.py"))


def circles() -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    graph = imports()
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        path.append(name)
        for used in sorted(graph[name]):
            if used not in number:
                visit(used)
            if used in path:
                lowest[name] = min(lowest[name], lowest[used])
        if lowest[name] == number[name]:
            group = path[path.index(name) :]
            del path[path.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found


def test_modules_that_import_each_other_lie_in_one_folder() -> None:
    assert [group for group in circles() if len({name.rpartition(".")[0] for name in group}) > 1] == []


def test_the_ledger_has_no_circle_at_all() -> None:
    assert [group for group in circles() if any(name.startswith("omnigraph.ledger") for name in group)] == []


def test_no_folder_holds_more_modules_than_a_person_takes_in() -> None:
    sizes = {
        str(folder.relative_to(ROOT)): len([p for p in folder.glob("*.py") if p.name != "__init__.py"])
        for folder in [PACKAGE, *(p.parent for p in PACKAGE.rglob("__init__.py"))]
    }
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


@pytest.mark.parametrize("room", sub_rooms(), ids=lambda room: str(room.relative_to(PACKAGE)))
def test_a_sub_room_says_what_it_is_for_and_names_its_entrances(room: Path) -> None:
    tree = ast.parse((room / "__init__.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree) or "") > 30
    entrances = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
    ]
    assert len(entrances) == 1
    there = {path.stem for path in room.glob("*.py")} | {path.parent.name for path in room.glob("*/__init__.py")}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            there |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            there.add(node.name)
    assert set(entrances[0]) <= there


def test_one_name_means_one_thing() -> None:
    rooms = defaultdict(list)
    for name in modules():
        if modules()[name].name != "__init__.py":
            rooms[name.rpartition(".")[2]].append(name)
    twice = {name: places for name, places in rooms.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in ONE_MEANING} == {}
    assert ONE_MEANING.keys() <= twice.keys()


def test_the_glossary_names_things_that_the_code_has() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    places = re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", text)
    assert len(places) > 20
    assert [place for place in places if not (PACKAGE / place).exists()] == []
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", text, flags=re.M)
    assert words == sorted(words, key=str.lower)
