"""The whole folder: read, checked without the store, and turned into resources with digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from omnigraph.cluster.addresses import graph_address, policy_address, provider_address, query_address, schema_address
from omnigraph.cluster.folder.cluster_file import FILE, ClusterFile, GraphFile, read_cluster_file
from omnigraph.cluster.folder.cluster_problems import ClusterInvalid, Problem, Problems
from omnigraph.cluster.folder.declared_queries import DeclaredQuery, declared_queries, inside
from omnigraph.cluster.resource_values import Resource, digest_of, digest_of_bytes, graph_digest
from omnigraph.errors import OmniGraphError
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.decide_access import Policy
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.catalog_json import catalog_to_json
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.sources import read_source
from omnigraph.storage.uri import Root
from omnigraph.stored.registry import StoredText, checked
from omnigraph.yaml_text import parse_yaml


@dataclass(frozen=True, slots=True)
class Desired:
    """What a folder asks for. `schemas` are the texts of schemas, by graph."""

    folder: Path
    name: str
    storage: Root
    lock: bool
    resources: Mapping[str, Resource] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def config_digest(self) -> str:
        """The digest of all that is asked for."""
        digests = {address: resource.digest for address, resource in self.resources.items()}
        return digest_of({"name": self.name, "resources": digests})


def read_folder(folder: Path) -> Desired:
    """What the folder asks for; `ClusterInvalid` with every problem when it cannot be had."""
    desired, problems = check_folder(folder)
    if problems:
        raise ClusterInvalid.of(problems)
    return desired


def check_folder(folder: Path) -> tuple[Desired, tuple[Problem, ...]]:
    """What the folder asks for as far as it makes sense, and everything that does not."""
    problems = Problems()
    cluster = read_cluster_file(folder, problems)
    resources: dict[str, Resource] = {}
    schemas: dict[str, str] = {}
    for name, provider in cluster.providers.items():
        digest = digest_of(provider)
        resources[provider_address(name)] = Resource(provider_address(name), digest, provider, own_digest=digest)
    for graph in cluster.graphs:
        schema = _schema(cluster, graph, problems)
        queries = declared_queries(cluster, graph, problems)
        if schema is None:
            continue
        source, catalog = schema
        _check_queries(queries, catalog, problems)
        schemas[graph.id] = source
        for resource in _resources_of(graph, catalog, queries):
            resources[resource.address] = resource
    for resource in _policies(cluster, problems):
        resources[resource.address] = resource
    desired = Desired(cluster.folder, cluster.name, cluster.storage, cluster.lock, resources, schemas)
    return desired, problems.sorted()


def schema_digest(source: str) -> str:
    """What a schema text means: comments and white space are left out of it."""
    return digest_of_bytes(catalog_to_json(compile_schema(source)))


def _schema(cluster: ClusterFile, graph: GraphFile, problems: Problems) -> tuple[str, Catalog] | None:
    if not graph.schema:
        return None
    try:
        source = read_source(inside(cluster, graph.schema), "schema")
    except OmniGraphError as error:
        problems.add(FILE, error.message, graph.schema_place)
        return None
    try:
        return source.text, compile_schema(source.text, filename=graph.schema)
    except OmniGraphError as error:
        problems.add_error(graph.schema, error)
        return None


def _check_queries(queries: list[DeclaredQuery], catalog: Catalog, problems: Problems) -> None:
    """Compile each against the schema that its graph is to have."""
    from omnigraph.query.lower.compile import compile_query

    sound = []
    for query in queries:
        try:
            compile_query(query.text, catalog, query.name)
        except OmniGraphError as error:
            problems.add_error(query.file, error, query.place)
        else:
            sound.append(StoredText(query.name, query.text, query.file, query.expose, query.tool_name))
    try:
        checked(sound, catalog)
    except OmniGraphError as error:
        problems.add_error(FILE, error)


def _resources_of(graph: GraphFile, catalog: Catalog, queries: list[DeclaredQuery]) -> list[Resource]:
    address = graph_address(graph.id)
    meaning = digest_of_bytes(catalog_to_json(catalog))
    schema = Resource(schema_address(graph.id), meaning, needs=(address,), own_digest=meaning)
    stored = [_query(graph.id, query) for query in queries]
    settings = {"embedding_provider": graph.provider, "blob_bases": list(graph.blob_bases)}
    parts = {resource.address: resource.digest for resource in (schema, *stored)}
    own = digest_of(settings)
    needs = (provider_address(graph.provider),) if graph.provider else ()
    whole = Resource(address, graph_digest(own, parts), settings, needs=needs, own_digest=own)
    return [whole, schema, *stored]


def _query(graph: str, query: DeclaredQuery) -> Resource:
    binding = {"expose": query.expose, "tool_name": query.tool_name}
    payload = orjson.dumps({"name": query.name, "text": query.text, **binding}, option=orjson.OPT_SORT_KEYS)
    digest = digest_of_bytes(payload)
    needs = (schema_address(graph),)
    return Resource(query_address(graph, query.name), digest, binding, payload, needs, digest)


def _policies(cluster: ClusterFile, problems: Problems) -> list[Resource]:
    found = []
    for policy in cluster.policies:
        try:
            text = read_source(inside(cluster, policy.file), "policy").text
        except OmniGraphError as error:
            problems.add(FILE, error.message, policy.place)
            continue
        try:
            Policy(parse_bundle(parse_yaml(text, "the policy")))
        except OmniGraphError as error:
            problems.add_error(policy.file, error)
            continue
        binding = {"applies_to": sorted(policy.applies_to)}
        payload = text.encode()
        needs = tuple(graph_address(graph.id) for graph in cluster.graphs if graph.id in policy.applies_to)
        digest = digest_of({"policy": digest_of_bytes(payload), **binding})
        found.append(Resource(policy_address(policy.name), digest, binding, payload, needs, digest))
    return found
