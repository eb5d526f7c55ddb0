"""YAML as people write it by hand: a key that stands twice is a mistake, and a mistake has a place."""

from __future__ import annotations

from os import PathLike
from typing import Any

import yaml

from omnigraph.errors import BadRequest
from omnigraph.sources import read_source


class _Strict(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """Plain data only, and each key of a mapping once."""


def _mapping(loader: _Strict, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(None, None, "a key is a plain word", key_node.start_mark)
        if key in found:
            raise yaml.constructor.ConstructorError(None, None, f"the key `{key}` stands twice", key_node.start_mark)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: str | PathLike[str], what: str) -> Any:
    """The content of a YAML file, with an error that names the file and the place in it."""
    source = read_source(path, what)
    return parse_yaml(source.text, f"the {what} file {source.filename}")


def parse_yaml(text: str, what: str) -> Any:
    """The content of a YAML text."""
    try:
        return yaml.load(text, Loader=_Strict)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadRequest(f"{what} cannot be read{place}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadRequest(f"{what} is no YAML: {error or 'nested too deeply'}") from None
