"""An import contract of this project: a sub-room is used through its entrances only.

A sub-room is a package inside a room, such as `omnigraph.ledger.commit`. The modules that its `__all__` names are its
entrances; nobody outside it imports another of its modules, lazily or for types neither.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class EntrancesContract(Contract):
    """`rooms`: the package whose sub-rooms are checked, at any depth below its own rooms."""

    type_name = "entrances"

    package = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Every direct import of a module that is no entrance, from outside its sub-room."""
        root = Path(str(importlib.util.find_spec(str(self.package)).origin)).parent  # type: ignore[union-attr]
        broken: list[tuple[str, str, str]] = []
        for room, entrances in _sub_rooms(root, str(self.package)).items():
            for module in sorted(m for m in graph.modules if m.startswith(f"{room}.")):
                inside = module.removeprefix(f"{room}.").split(".")[0]
                if inside in entrances:
                    continue
                broken += [
                    (importer, module, room)
                    for importer in sorted(graph.find_modules_that_directly_import(module))
                    if not importer.startswith(f"{room}.") and importer != room
                ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Who imports what, and which list would make it an entrance."""
        for importer, module, room in check.metadata["broken"]:
            output.print_error(f"{importer} imports {module}, which `__all__` of {room} does not name as an entrance")


def _sub_rooms(root: Path, package: str) -> dict[str, frozenset[str]]:
    rooms = {}
    for init in sorted(root.glob("*/*/**/__init__.py")):
        name = ".".join([package, *init.parent.relative_to(root).parts])
        rooms[name] = frozenset(_all(init))
    return rooms


def _all(init: Path) -> list[str]:
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return []
