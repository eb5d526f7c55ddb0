"""The stored queries of a graph: found in a folder, a list or a map, and checked against the schema before any runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, LanguageError, NotFound, OmniGraphError
from omnigraph.sources import read_source

if TYPE_CHECKING:
    from omnigraph.query.ir import CompiledQuery
    from omnigraph.schema.catalog import Catalog

Declared = str | PathLike[str] | list[str] | Mapping[str, Any]
"""A folder (its `*.gq`), a `.gq` file, a YAML file with a list or a map, a list of files, a map of names to files."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A query as it is declared, not yet checked."""

    name: str
    text: str
    file: str
    expose: bool = True
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query that fits the schema. One that is not exposed can be called by name and stands in no listing."""

    name: str
    text: str
    file: str
    compiled: CompiledQuery
    expose: bool = True
    tool_name: str = ""

    @property
    def mutates(self) -> bool:
        """Whether it changes data."""
        from omnigraph.query.ir import MutationQuery

        return isinstance(self.compiled, MutationQuery)


class Registry:
    """The stored queries of one graph, by name."""

    def __init__(self, queries: Mapping[str, StoredQuery] | None = None) -> None:
        self._queries = dict(queries or {})

    def __len__(self) -> int:
        return len(self._queries)

    def __iter__(self) -> Iterator[StoredQuery]:
        return iter(self._queries.values())

    def exposed(self) -> list[StoredQuery]:
        """Those that listings show, by name."""
        return [query for _, query in sorted(self._queries.items()) if query.expose]

    def get(self, name: str) -> StoredQuery:
        """The query of that name; `NotFound` otherwise, in the same words for all that cannot be called."""
        found = self._queries.get(name)
        if found is None:
            raise NotFound(f"there is no stored query `{name}`", query=name)
        return found

    def by_tool(self, tool_name: str) -> StoredQuery | None:
        """The exposed query that agents know by this name."""
        return next((query for query in self.exposed() if query.tool_name == tool_name), None)


def read_registry(declared: Declared | None, catalog: Catalog) -> Registry:
    """The stored queries that fit a schema; `BadRequest` with every problem when one does not."""
    return checked(read_texts(declared), catalog) if declared is not None else Registry()


def checked(texts: list[StoredText], catalog: Catalog) -> Registry:
    """Compile every query; all problems at once."""
    from omnigraph.query.lower.compile import compile_query

    found: dict[str, StoredQuery] = {}
    problems: list[str] = []
    for text in texts:
        if text.name in found:
            problems.append(f"{text.file}: the query `{text.name}` is in {found[text.name].file} already")
            continue
        try:
            compiled = compile_query(text.text, catalog, text.name)
        except LanguageError as error:
            problems.append(type(error)(error.diagnostics, error.source, text.file).message)
        except OmniGraphError as error:
            problems.append(f"{text.file}: {error.message}")
        else:
            tool = text.tool_name or text.name
            found[text.name] = StoredQuery(text.name, text.text, text.file, compiled, text.expose, tool)
    tools = [query.tool_name for query in found.values()]
    problems += [f"two queries have the tool name `{name}`" for name in sorted(set(tools)) if tools.count(name) > 1]
    if problems:
        raise BadRequest("stored queries do not fit:\n" + "\n".join(dict.fromkeys(problems)), problems=problems)
    return Registry(found)


def read_texts(declared: Declared) -> list[StoredText]:
    """What is declared, read from its files."""
    if isinstance(declared, Mapping):
        return [_mapped(name, entry, Path()) for name, entry in declared.items()]
    if isinstance(declared, list):
        return [text for file in declared for text in _queries_of(Path(file))]
    path = Path(os.fspath(declared))
    if path.is_dir():
        return [text for file in sorted(path.glob("*.gq")) for text in _queries_of(file)]
    if path.suffix in (".yaml", ".yml"):
        return _from_yaml(path)
    return _queries_of(path)


def _from_yaml(path: Path) -> list[StoredText]:
    from omnigraph.yaml_text import read_yaml

    content = read_yaml(path, "query list")
    if isinstance(content, dict):
        return [_mapped(name, entry, path.parent) for name, entry in content.items()]
    if isinstance(content, list) and all(isinstance(file, str) for file in content):
        return [text for file in content for text in _queries_of(path.parent / file)]
    raise BadRequest(f"{path} must be a list of files, or a map of names to {{file, expose}}")


def _mapped(name: str, entry: Any, folder: Path) -> StoredText:
    given = {"file": entry} if isinstance(entry, str) else entry
    keys = {"file", "expose", "tool_name"}
    if not isinstance(given, dict) or given.keys() - keys or not isinstance(given.get("file"), str):
        raise BadRequest(
            f"the stored query `{name}` is declared by {{file, expose, tool_name}}, of which file is needed"
        )
    if not isinstance(given.get("expose", True), bool):
        raise BadRequest(f"the stored query `{name}`: expose is true or false")
    found = _queries_of(folder / given["file"])
    for text in found:
        if text.name == name:
            return StoredText(name, text.text, text.file, given.get("expose", True), given.get("tool_name"))
    hint = did_you_mean(str(name), [text.name for text in found])
    raise BadRequest(f"{given['file']} has no query `{name}`{f'; {hint}' if hint else ''}")


def _queries_of(path: Path) -> list[StoredText]:
    from omnigraph.query.text.parse import parse_queries

    source = read_source(path, "query")
    parsed = parse_queries(source.text, filename=str(path))
    return [StoredText(query.name.text, source.text, str(path)) for query in parsed.queries]
