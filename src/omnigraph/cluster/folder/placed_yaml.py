"""YAML with the place of every key and value, so that an error can point at it. Every duplicate key is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A value and where it stands. `value` is plain: a scalar, a list of placed values, or entries by key."""

    value: Any
    place: Place
    keys: dict[str, Place] = field(default_factory=dict)

    @property
    def is_map(self) -> bool:
        """Whether it has entries."""
        return isinstance(self.value, dict)

    def get(self, key: str) -> Placed | None:
        """The value of a key; None where the key is not there, or has nothing behind it."""
        found: Placed | None = self.value.get(key) if self.is_map else None
        return None if found is None or found.value is None else found

    def plain(self) -> Any:
        """The data without places."""
        if isinstance(self.value, dict):
            return {key: entry.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain() for entry in self.value]
        return self.value


Tell = Callable[[str, Place], None]


def parse_placed(text: str, tell: Tell) -> Placed | None:
    """The one document of a YAML text; None, with the reason told, when it is none."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            tell("the file is empty", Place(1, 1))
            return None
        return _placed(loader, node, tell, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        tell(f"this is no YAML: {error.problem}", Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        tell(f"this is no YAML: {error or 'nested too deeply'}", Place(1, 1))
    finally:
        loader.dispose()
    return None


def _placed(loader: yaml.SafeLoader, node: yaml.Node, tell: Tell, depth: int) -> Placed:
    place = _place(node)
    if depth > _DEEPEST:
        raise yaml.constructor.ConstructorError(None, None, "nested too deeply", node.start_mark)
    if isinstance(node, yaml.MappingNode):
        keys: dict[str, Place] = {}
        entries: dict[str, Placed] = {}
        for key, at, value in _entries(loader, node, tell):
            if key in entries:
                tell(f"the key `{key}` stands twice; the first is on line {keys[key].line}", at)
                continue
            keys[key] = at
            entries[key] = _placed(loader, value, tell, depth + 1)
        return Placed(entries, place, keys)
    if isinstance(node, yaml.SequenceNode):
        return Placed([_placed(loader, item, tell, depth + 1) for item in node.value], place)
    return Placed(loader.construct_object(node, deep=True), place)


def _entries(loader: yaml.SafeLoader, node: Any, tell: Tell) -> Iterator[tuple[str, Place, Any]]:
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True) if isinstance(key_node, yaml.ScalarNode) else None
        if isinstance(key, str):
            yield key, _place(key_node), value_node
        else:
            tell("a key is a plain word", _place(key_node))


def _place(node: Any) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
