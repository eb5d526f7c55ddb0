"""The tools of one actor on one graph: what the policy denies everywhere is not offered; the rest is still asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import BadRequest, NotFound
from omnigraph.graph import Graph
from omnigraph.policy.actions import TO_A_BRANCH, Action
from omnigraph.policy.decide_access import Policy
from omnigraph.read.result.result import Result
from omnigraph.read.state.control import CancelToken
from omnigraph.server.error_bodies import encoded
from omnigraph.stored.registry import Registry, StoredQuery
from omnigraph.stored.tool_catalog import input_schema

MOST_ROWS = 1_000
"""Rows and changes that a tool gives back; an agent asks again, more precisely, for others."""
MOST_BYTES = 1 << 20
"""Bytes of rows and changes, as JSON, that a tool gives back: more would only fill the memory of an agent."""

_TEXT = {"type": "string"}
_BRANCH = {"type": "string", "description": "The branch; `main` by default."}
SCHEMA_URI = "omnigraph://schema"
BRANCHES_URI = "omnigraph://branches"


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool as agents see it. `mutates` says which of them change something."""

    name: str
    description: str
    schema: dict[str, Any]
    run: Callable[[Mapping[str, Any]], dict[str, Any]]
    mutates: bool = False


class AgentTools:
    """What one actor is offered on one graph. `cancel` stops what they read; what they write comes to its end."""

    def __init__(
        self,
        graph: Graph,
        queries: Registry,
        policy: Policy | None,
        actor: str | None,
        seconds: float = 60.0,
        cancel: CancelToken | None = None,
    ) -> None:
        self._graph = graph
        self._queries = queries
        self._policy = policy
        self._actor = actor
        self._seconds = seconds
        self._cancel = cancel

    def offered(self) -> list[AgentTool]:
        """The tools, stored queries first."""
        tools = [self._stored(query) for query in self._queries.exposed()] if self._may(Action.INVOKE_QUERY) else []
        taken = {tool.name for tool in tools}
        return tools + [tool for tool in self._general() if tool.name not in taken]

    def changes(self, name: str) -> bool:
        """Whether a tool changes something."""
        return any(tool.mutates for tool in self.offered() if tool.name == name)

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool. One that is not offered is one that is not there."""
        for tool in self.offered():
            if tool.name == name:
                known = tool.schema["properties"]
                for argument in arguments:
                    if argument not in known:
                        raise BadRequest(f"{name} takes no `{argument}`; it takes {', '.join(known) or 'nothing'}")
                for needed in tool.schema["required"]:
                    if needed not in arguments:
                        raise BadRequest(f"{name} needs `{needed}`")
                return tool.run(arguments)
        raise NotFound(f"there is no tool `{name}`")

    def resource(self, uri: str) -> str:
        """The text behind a resource."""
        if uri == SCHEMA_URI:
            return self._graph.schema_source(actor=self._actor)
        if uri == BRANCHES_URI:
            found = [ref.to_json() for ref in self._graph.branches.list(actor=self._actor)]
            return json.dumps({"branches": found}, indent=2)
        raise NotFound(f"there is no resource {uri}")

    def _may(self, action: Action) -> bool:
        """Whether the actor may do it on some branch."""
        if self._policy is None:
            return True
        if action in (Action.INVOKE_QUERY, Action.ADMIN):
            return self._policy.decide(self._actor, action).allowed
        key = "target" if action in TO_A_BRANCH else "branch"
        places = [*sorted(self._policy.bundle.protected_branches)[:1], "\x00 one that is not protected"]
        return any(self._policy.decide(self._actor, action, **{key: place}).allowed for place in places)

    def _stored(self, query: StoredQuery) -> AgentTool:
        schema = input_schema(query)
        on_a_branch = "branch" not in schema["properties"]
        if on_a_branch:
            schema = {**schema, "properties": {**schema["properties"], "branch": _BRANCH}}
        described = [query.compiled.description or f"The stored query {query.name}.", query.compiled.instruction or ""]

        def run(arguments: Mapping[str, Any]) -> dict[str, Any]:
            params = dict(arguments)
            branch = params.pop("branch", None) if on_a_branch else None
            if query.mutates:
                return self._graph.mutate(query.text, query.name, params, branch=branch, actor=self._actor).to_json()
            return self._rows(query.text, query.name, params, branch, None)

        return AgentTool(query.tool_name, " ".join(filter(None, described)), schema, run, query.mutates)

    def _general(self) -> list[AgentTool]:
        tools = []
        if self._may(Action.READ):
            tools += [
                AgentTool(
                    "query",
                    f"Run a read query in the query language on one state of the graph; at most {MOST_ROWS} rows come "
                    f"back. The resource {SCHEMA_URI} has the types. It changes nothing: what may be changed is "
                    "offered as stored queries, each a tool of its own.",
                    _schema(
                        {
                            "query": {**_TEXT, "description": "query q($x: String) { match { … } return { … } }"},
                            "params": {"type": "object", "description": "Values of the parameters."},
                            "branch": _BRANCH,
                            "snapshot": {**_TEXT, "description": "An older state: a commit or a tag."},
                        },
                        "query",
                    ),
                    lambda given: self._rows(
                        given["query"], None, given.get("params"), given.get("branch"), given.get("snapshot")
                    ),
                ),
                AgentTool(
                    "diff",
                    "Show what differs between two branches, commits or tags: counts, then the changed entities.",
                    _schema({"from": _TEXT, "to": _TEXT}, "from", "to"),
                    self._diff,
                ),
            ]
        if self._may(Action.BRANCH_CREATE):
            tools.append(
                AgentTool(
                    "branch_create",
                    "Make a branch to work on. It costs nothing, and nobody else sees what happens on it.",
                    _schema({"name": _TEXT, "from": {**_TEXT, "description": "`main` by default."}}, "name"),
                    lambda given: self._graph.branch_create(
                        given["name"], given.get("from"), actor=self._actor
                    ).to_json(),
                    mutates=True,
                )
            )
        if self._may(Action.BRANCH_MERGE):
            tools.append(
                AgentTool(
                    "merge",
                    "Merge a branch into another; with dry_run only say what would happen.",
                    _schema({"source": _TEXT, "into": _BRANCH, "dry_run": {"type": "boolean"}}, "source"),
                    self._merge,
                    mutates=True,
                )
            )
        return tools

    def _rows(
        self, source: str, name: str | None, params: Mapping[str, Any] | None, branch: str | None, at: str | None
    ) -> dict[str, Any]:
        result: Result = self._graph.query(
            source,
            name,
            params,
            branch=branch,
            at=at,
            actor=self._actor,
            timeout=self._seconds,
            cancel=self._cancel,
        )
        rows = json.loads(result.part(0, min(len(result), MOST_ROWS)).to_json())
        return {**result.head_json(), **_bounded("rows", rows, len(result))}

    def _diff(self, given: Mapping[str, Any]) -> dict[str, Any]:
        found = self._graph.diff(given["from"], given["to"], actor=self._actor)
        summary = [count.to_json() for count in found.summary()]
        total = sum(count["inserts"] + count["updates"] + count["deletes"] for count in summary)
        return {"summary": summary, **_bounded("changes", (change.to_json() for change in found), total)}

    def _merge(self, given: Mapping[str, Any]) -> dict[str, Any]:
        dry_run = given.get("dry_run", False)
        if not isinstance(dry_run, bool):
            raise BadRequest("merge: dry_run is true or false")
        into = given.get("into")
        return self._graph.merge(
            given["source"], "main" if into is None else into, dry_run=dry_run, actor=self._actor
        ).to_json()


def _bounded(name: str, found: Iterable[Any], total: int) -> dict[str, Any]:
    """As much of a list as an agent is given; when that is not all of it, a note says so."""
    shown: list[Any] = []
    size = 0
    for one in found:
        size += len(encoded(one))
        if len(shown) == MOST_ROWS or size > MOST_BYTES:
            break
        shown.append(one)
    if len(shown) == total:
        return {name: shown}
    told = f"these are the first {len(shown)} of {total} {name}: at most {MOST_ROWS}, and {MOST_BYTES >> 20} MB of them"
    return {name: shown, "note": f"{told}, are given; ask for less at a time"}


def _schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
