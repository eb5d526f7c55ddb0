"""The stored queries that a graph declares: a folder of `.gq` files, a list of files, or a map of names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from omnigraph.cluster.folder.cluster_file import FILE, ClusterFile, GraphFile
from omnigraph.cluster.folder.cluster_problems import Problems
from omnigraph.cluster.folder.placed_yaml import Place, Placed
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.query.text.parse import parse_queries
from omnigraph.sources import read_source


@dataclass(frozen=True, slots=True)
class DeclaredQuery:
    """One query: its own text, and the file it stands in."""

    name: str
    text: str
    file: str
    place: Place
    expose: bool = True
    tool_name: str | None = None


def inside(cluster: ClusterFile, file: str) -> Path:
    """The path of a file of the folder; `BadRequest` for one that lies elsewhere."""
    path = cluster.folder / file
    if Path(file).is_absolute() or ".." in Path(file).parts:
        raise BadRequest(f"`{file}` lies outside the folder: a deployment is the files of one folder")
    return path


def declared_queries(cluster: ClusterFile, graph: GraphFile, problems: Problems) -> list[DeclaredQuery]:
    """The queries of a graph, as far as they can be read; names that stand twice are told."""
    if graph.queries is None:
        return []
    found: dict[str, DeclaredQuery] = {}
    for query in _Declared(cluster, problems).all(graph.queries):
        if query.name in found:
            problems.add(query.file, f"the query `{query.name}` is in {found[query.name].file} already")
        else:
            found[query.name] = query
    return list(found.values())


class _Declared:
    def __init__(self, cluster: ClusterFile, problems: Problems) -> None:
        self._cluster = cluster
        self._problems = problems

    def all(self, declared: Placed) -> list[DeclaredQuery]:
        """Whatever form it is declared in."""
        match declared.value:
            case str():
                return self._folder(declared)
            case list():
                return [query for item in declared.value for query in self._file(str(item.value), item.place)]
            case dict():
                mapped = [self._mapped(declared, name) for name in declared.value]
                return [query for query in mapped if query is not None]
        self._tell("queries is a folder, a list of files, or a map of names to { file, expose }", declared.place)
        return []

    def _folder(self, declared: Placed) -> list[DeclaredQuery]:
        try:
            path = inside(self._cluster, declared.value)
        except BadRequest as error:
            self._tell(error.message, declared.place)
            return []
        if not path.is_dir():
            if path.suffix == ".gq":
                return self._file(declared.value, declared.place)
            self._tell(f"there is no folder {declared.value}", declared.place)
            return []
        names = [file.relative_to(self._cluster.folder).as_posix() for file in sorted(path.glob("*.gq"))]
        return [query for name in names for query in self._file(name, declared.place)]

    def _mapped(self, declared: Placed, name: str) -> DeclaredQuery | None:
        entry, place = declared.value[name], declared.keys[name]
        given = {"file": entry.value} if isinstance(entry.value, str) else entry.plain()
        known = ("file", "expose", "tool_name")
        if not isinstance(given, dict) or not isinstance(given.get("file"), str):
            self._tell(
                f"the query `{name}` is declared by {{ file, expose, tool_name }}, of which file is needed", place
            )
            return None
        for key in given:
            if key not in known:
                hint = did_you_mean(key, known) or f"use {', '.join(known)}"
                self._tell(f"unknown key `{key}`; {hint}", entry.keys[key])
        if not isinstance(given.get("expose", True), bool):
            self._tell(f"the query `{name}`: expose is true or false", entry.value["expose"].place)
        there = self._file(given["file"], place)
        for query in there:
            if query.name == name:
                return replace(query, expose=given.get("expose") is not False, tool_name=given.get("tool_name"))
        near = did_you_mean(name, [query.name for query in there])
        self._tell(f"{given['file']} has no query `{name}`{f'; {near}' if near else ''}", place)
        return None

    def _file(self, name: str, place: Place) -> list[DeclaredQuery]:
        try:
            source = read_source(inside(self._cluster, name), "query")
        except OmniGraphError as error:
            self._tell(error.message, place)
            return []
        try:
            parsed = parse_queries(source.text, filename=name)
        except OmniGraphError as error:
            self._problems.add_error(name, error)
            return []
        return [
            DeclaredQuery(
                query.name.text,
                source.text[query.span.start : query.span.end] + "\n",
                name,
                Place(query.span.line, query.span.column),
            )
            for query in parsed.queries
        ]

    def _tell(self, message: str, place: Place) -> None:
        self._problems.add(FILE, message, place)
