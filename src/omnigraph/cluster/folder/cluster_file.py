"""`cluster.yaml`: what it may say, as values. Files that it names are not opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from omnigraph.cluster.addresses import GRAPH_ID, WHOLE_CLUSTER
from omnigraph.cluster.folder.blob_bases import overlap, parse_base
from omnigraph.cluster.folder.cluster_problems import Problems
from omnigraph.cluster.folder.placed_yaml import Place, Placed, parse_placed
from omnigraph.diagnostics import did_you_mean
from omnigraph.embed.provider_settings import KINDS, EmbeddingSettings, from_mapping
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.sources import read_source
from omnigraph.storage.uri import Root, parse_root

FILE = "cluster.yaml"
VERSION = 1
RESERVED = ("aliases", "bindings", "pipelines", "ui")
"""Keys that later releases may give a meaning."""

_TOP = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
_GRAPH = ("schema", "queries", "embedding_provider", "blob_uris")
_PROVIDER = tuple(one.name for one in fields(EmbeddingSettings))
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A graph as it is declared. `queries` is the YAML value, a folder, a list or a map, with its place."""

    id: str
    schema: str
    place: Place
    schema_place: Place
    queries: Placed | None = None
    provider: str | None = None
    blob_bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy as it is declared: a file, and the graphs (or the whole cluster) that it is for."""

    name: str
    file: str
    applies_to: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """What `cluster.yaml` says, as far as it could be understood."""

    folder: Path
    name: str = ""
    storage: Root = field(default_factory=lambda: parse_root("."))
    lock: bool = True
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    graphs: tuple[GraphFile, ...] = ()
    policies: tuple[PolicyFile, ...] = ()


def read_cluster_file(folder: Path, problems: Problems) -> ClusterFile:
    """Read `cluster.yaml` of a folder. What is wrong with it is added to the problems."""
    source = read_source(folder / FILE, "cluster")
    document = parse_placed(source.text, lambda message, place: problems.add(FILE, message, place))
    if document is None:
        return ClusterFile(folder, storage=parse_root(folder))
    return _Reader(folder, problems).cluster(document)


def storage_of(folder: Path) -> Root:
    """Where the cluster of a folder is stored. Nothing else of the file is looked at, nor has to be right."""
    return read_cluster_file(folder, Problems()).storage


class _Reader:
    """Takes a document apart; whatever does not fit is told with its place."""

    def __init__(self, folder: Path, problems: Problems) -> None:
        self._folder = folder
        self._problems = problems

    def cluster(self, document: Placed) -> ClusterFile:
        """The whole file."""
        self._keys(document, _TOP, "a cluster")
        version = document.get("version")
        if version is None or version.value != VERSION or isinstance(version.value, bool):
            self._tell(f"version must be {VERSION}", version or document)
        metadata, state = self._map(document, "metadata"), self._map(document, "state")
        name = ""
        if metadata is not None:
            self._keys(metadata, ("name",), "metadata")
            name = self._text(metadata, "name") or ""
        if not name:
            self._tell("a cluster needs a name: metadata: { name: … }", metadata or document)
        lock = True
        if state is not None:
            self._keys(state, ("lock",), "state")
            given = state.get("lock")
            if given is not None and not isinstance(given.value, bool):
                self._tell("lock is true or false", given)
            lock = given is None or given.value is not False
        storage = self._storage(document)
        providers = self._providers(document)
        graphs = self._graphs(document, providers, storage)
        policies = self._policies(document, [graph.id for graph in graphs])
        return ClusterFile(self._folder, name, storage, lock, providers, graphs, policies)

    def _storage(self, document: Placed) -> Root:
        text = self._text(document, "storage")
        if text is None:
            return parse_root(self._folder)
        place = document.value["storage"]
        if "@" in urlsplit(text).netloc:
            self._tell("storage holds no credentials; those come from AWS_* variables", place)
        try:
            return parse_root(text if "://" in text else self._folder / text)
        except BadRequest as error:
            self._tell(error.message, place)
            return parse_root(self._folder)

    def _providers(self, document: Placed) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        groups = self._map(document, "providers")
        if groups is None:
            return found
        self._keys(groups, ("embedding",), "providers")
        for name, provider in self._named(groups, "embedding"):
            self._keys(provider, _PROVIDER, "an embedding provider")
            self._check_provider(name, provider)
            found[name] = provider.plain() if provider.is_map else {}
        return found

    def _check_provider(self, name: str, provider: Placed) -> None:
        before = len(self._problems.found)
        kind = provider.get("kind")
        if kind is None or kind.value not in KINDS:
            hint = did_you_mean(str(kind.value), KINDS) if kind else None
            self._tell(
                f"an embedding provider is of a kind: {', '.join(KINDS)}{f'; {hint}' if hint else ''}", kind or provider
            )
            return
        key, url = provider.get("api_key"), provider.get("base_url")
        if key is not None and not _VARIABLE.fullmatch(str(key.value)):
            self._tell("a key does not belong into a file; write api_key: ${NAME_OF_A_VARIABLE}", key)
        if url is not None and "@" in urlsplit(str(url.value)).netloc:
            self._tell("base_url holds no credentials; write api_key: ${NAME_OF_A_VARIABLE}", url)
        needed = {"openai-compatible": ("base_url", "model"), "gemini": ("model", "api_key")}
        for key_needed in needed.get(str(kind.value), ()):
            if provider.get(key_needed) is None:
                self._tell(f"the {kind.value} embedding provider needs a {key_needed}", provider)
        if len(self._problems.found) == before:
            # The key itself is looked up when it is used; here it only has to be named.
            written = {**provider.plain(), **({"api_key": "${KEY}"} if key else {})}
            try:
                from_mapping(written, f"providers.embedding.{name}", {"KEY": "set"})
            except BadRequest as error:
                self._tell(error.message, provider)

    def _graphs(self, document: Placed, providers: Mapping[str, Any], storage: Root) -> tuple[GraphFile, ...]:
        found = []
        bases: list[tuple[str, Root]] = [("the cluster's own storage", storage)]
        for name, graph in self._named(document, "graphs"):
            at = document.value["graphs"].keys[name]
            if not GRAPH_ID.fullmatch(name) or name == WHOLE_CLUSTER:
                self._problems.add(
                    FILE,
                    f"`{name}` is no name for a graph: letters, digits, `-` and `_`, and not `{WHOLE_CLUSTER}`",
                    at,
                )
                continue
            self._keys(graph, _GRAPH, "a graph")
            schema = self._text(graph, "schema")
            if schema is None:
                self._tell(f"the graph `{name}` needs a schema: the path of its .pg file", graph)
            provider = self._text(graph, "embedding_provider")
            if provider is not None and provider not in providers:
                hint = did_you_mean(provider, providers) or "declare it below providers.embedding"
                self._tell(f"there is no embedding provider `{provider}`; {hint}", graph.value["embedding_provider"])
            schema_at = graph.value["schema"].place if schema is not None else graph.place
            allowed = self._blob_bases(graph, name, bases)
            found.append(GraphFile(name, schema or "", at, schema_at, graph.get("queries"), provider, allowed))
        return tuple(found)

    def _blob_bases(self, graph: Placed, name: str, taken: list[tuple[str, Root]]) -> tuple[str, ...]:
        uris = self._map(graph, "blob_uris")
        if uris is None:
            return ()
        self._keys(uris, ("allow",), "blob_uris")
        allow = uris.get("allow")
        if allow is None or not isinstance(allow.value, list):
            self._tell("blob_uris: { allow: [ { base: s3://… } ] }", uris)
            return ()
        found = []
        for entry in allow.value:
            self._keys(entry, ("base",), "an allowed place")
            text = self._text(entry, "base") if entry.is_map else None
            if text is None:
                self._tell("an allowed place has a base: { base: s3://… }", entry)
                continue
            try:
                root = parse_base(text)
            except OmniGraphError as error:
                self._tell(error.message, entry.value["base"])
                continue
            for whose, other in taken:
                if overlap(root, other):
                    self._tell(f"`{text}` overlaps with {whose} ({other.uri})", entry.value["base"])
            taken.append((f"a base of graph `{name}`", root))
            found.append(text)
        return tuple(found)

    def _policies(self, document: Placed, graphs: list[str]) -> tuple[PolicyFile, ...]:
        found = []
        taken: dict[str, str] = {}
        for name, policy in self._named(document, "policies"):
            self._keys(policy, ("file", "applies_to"), "a policy")
            file, targets = self._text(policy, "file"), policy.get("applies_to")
            if file is None or targets is None or not isinstance(targets.value, list) or not targets.value:
                self._tell(
                    f"the policy `{name}` needs a file, and applies_to: a list of graphs, or of `{WHOLE_CLUSTER}`",
                    policy,
                )
                continue
            for target in targets.value:
                if target.value not in (*graphs, WHOLE_CLUSTER):
                    hint = did_you_mean(str(target.value), [*graphs, WHOLE_CLUSTER]) or "name a graph of this file"
                    self._tell(f"there is no graph `{target.value}`; {hint}", target)
                elif target.value in taken:
                    self._tell(
                        f"`{target.value}` has the policy `{taken[target.value]}` already; one place has one policy",
                        target,
                    )
                else:
                    taken[target.value] = name
            applies = tuple(dict.fromkeys(str(target.value) for target in targets.value))
            found.append(PolicyFile(name, file, applies, policy.value["file"].place))
        return tuple(found)

    def _named(self, parent: Placed, key: str) -> list[tuple[str, Placed]]:
        entries = self._map(parent, key)
        found = []
        for name, entry in entries.value.items() if entries is not None else ():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                # mypy does not see: without entries nothing is looked at.
                self._problems.add(FILE, f"`{name}` is no name: use letters, digits, `-` and `_`", entries.keys[name])  # type: ignore[union-attr]
            elif not entry.is_map:
                self._tell(f"`{name}` needs what belongs to it, as a mapping", entry)
            else:
                found.append((name, entry))
        return found

    def _map(self, parent: Placed, key: str) -> Placed | None:
        found = parent.get(key)
        if found is not None and not found.is_map:
            self._tell(f"{key} is a mapping", found)
            return None
        return found

    def _text(self, parent: Placed, key: str) -> str | None:
        found = parent.get(key)
        if found is None:
            return None
        if not isinstance(found.value, str) or not found.value.strip():
            self._tell(f"{key} is a text", found)
            return None
        return found.value

    def _keys(self, entry: Placed, known: tuple[str, ...], what: str) -> None:
        if not entry.is_map:
            return
        for key, place in entry.keys.items():
            if key in known:
                continue
            if key in RESERVED:
                self._problems.add(FILE, f"the key `{key}` is reserved for later releases", place)
            else:
                hint = did_you_mean(key, known) or f"{what} has {', '.join(known)}"
                self._problems.add(FILE, f"unknown key `{key}`; {hint}", place)

    def _tell(self, message: str, at: Placed) -> None:
        self._problems.add(FILE, message, at.place)
