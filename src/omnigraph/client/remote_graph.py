"""A graph behind a server, with the methods of one that is opened here. The actor is whoever the token stands for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from omnigraph.choices import Engine, Granularity, Mode, Strategy, Target, Time
from omnigraph.client.sent_records import sent
from omnigraph.client.transport import ARROW, Transport
from omnigraph.errors import BadRequest
from omnigraph.graph import Graph
from omnigraph.sources import gathered, named_in_errors, query_source, schema_source

if TYPE_CHECKING:
    from omnigraph.client.wire_values import RemoteCommitChanges, RemoteDiff, RemotePage
    from omnigraph.ledger.values import BranchRef, GraphCommit, History, Snapshot
    from omnigraph.merge.changes import EntityChange
    from omnigraph.merge.merge import MergeResult
    from omnigraph.read.export import ExportSummary
    from omnigraph.read.result.result import Result
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migration.migrate import MigrationPlan
    from omnigraph.write.results import LoadResult, MutationResult
    from omnigraph.write.schema.schema_apply import SchemaApplyResult


def connect(url: str, *, token: str | None = None, graph: str | None = None, branch: str = "main") -> RemoteGraph:
    """A graph of a server. `graph` names it where the server has several; nothing is asked of it yet."""
    return RemoteGraph(Transport(url, token, graph), branch)


class NotThroughAServer(BadRequest, AttributeError):
    """What a server does not offer."""


class RemoteGraph:
    """A graph behind a server, bound to a branch. Safe to share between threads; close it, or use it in a `with`.

    Rows of queries come as Arrow, so they have the types that they have here. Entities and changes come as JSON.
    """

    def __init__(self, transport: Transport, branch: str = "main") -> None:
        self._transport = transport
        self._branch = branch

    @property
    def uri(self) -> str:
        """Where the graph is."""
        name = f"/graphs/{self._transport.graph}" if self._transport.graph else ""
        return self._transport.url + name

    @property
    def branch_name(self) -> str:
        """The branch this handle is bound to."""
        return self._branch

    @property
    def branches(self) -> RemoteBranches:
        """Everything about branches."""
        return RemoteBranches(self)

    def __repr__(self) -> str:
        return f"<RemoteGraph {self.uri}, branch {self._branch}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Graph, name):
            raise NotThroughAServer(
                f"{name} works on a graph that is opened where it lies, not through a server: use og.open, or the "
                "command with the graph's URI"
            )
        raise AttributeError(f"a RemoteGraph has no attribute {name!r}")

    # --- reading ---------------------------------------------------------------------------------------------------

    def query(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        engine: Engine = "auto",
        timeout: float | None = None,
        **more: Any,
    ) -> Result:
        """Run a read query. Parameters are given by `params`, or as keywords. The server chooses the engine."""
        given = query_source(source)
        own = {"name": name, "branch": branch, "at": at, "timeout": timeout}
        values = gathered("query", given.text, params, more, own)
        body = {
            "query": given.text,
            "name": name,
            "params": values,
            "branch": branch or self._branch,
            "snapshot": _state(at),
        }
        with named_in_errors(given.filename):
            found: Result = self._rows("/query", body, timeout)
            return found

    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        timeout: float | None = None,
        **more: Any,
    ) -> Result | MutationResult:
        """Call a stored query by its name."""
        from omnigraph.client.wire_values import mutation_result

        body = {"params": {**(params or {}), **more}, "branch": branch or self._branch, "snapshot": _state(at)}
        found = self._rows(f"/queries/{quote(name, safe='')}", body, timeout, or_json=True)
        return mutation_result(found) if isinstance(found, dict) else found

    def stored_queries(self) -> list[dict[str, Any]]:
        """The catalog of stored queries."""
        found: list[dict[str, Any]] = self._transport.get("/queries")["queries"]
        return found

    def snapshot(self, at: Target = None, *, branch: str | None = None) -> Snapshot:
        """The tables and versions that a branch, commit, tag or manifest version publishes."""
        from omnigraph.client.wire_values import snapshot

        found = self._transport.get("/snapshot", branch=branch or self._branch, snapshot=_state(at))
        return snapshot(found, self.commit(found["graph_commit_id"]))

    def entity(self, type: str, id: Any, at: Target = None, *, branch: str | None = None) -> dict[str, Any] | None:
        """One node or edge by its id, or None. Values are those of JSON."""
        asked = {"type": type, "id": str(id), "branch": branch or self._branch, "snapshot": _state(at)}
        found: dict[str, Any] | None = self._transport.get("/entity", **asked)["entity"]
        return found

    def read_blob(
        self,
        type: str,
        id: Any,
        property: str,
        *,
        at: Target = None,
        branch: str | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> bytes:
        """The bytes of a blob, or those from `start` up to `end`: only they are sent."""
        if start < 0 or (end is not None and end < start):
            raise BadRequest(f"bytes {start} to {end} are no range: both count from 0, the end is not included")
        if end == start:
            return b""
        asked = {"type": type, "id": str(id), "property": property, "branch": branch or self._branch}
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        place = {**asked, "snapshot": _state(at)}
        with self._transport.stream("GET", "/blob", params=place, headers=headers, beyond=True) as response:
            return response.read() if response.status_code != 416 else b""

    def export(
        self,
        path: str | PathLike[str],
        *,
        at: Target = None,
        branch: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: Engine = "auto",
        overwrite: bool = False,
    ) -> ExportSummary:
        """Write a snapshot out as JSON lines."""
        from pathlib import Path

        from omnigraph.read.export import ExportSummary
        from omnigraph.read.export_target import refuse_occupied

        if format != "jsonl":
            raise BadRequest("a server exports JSON lines; for Parquet open the graph where it lies")
        state = self.snapshot(at, branch=branch)
        lines = self.export_lines(at=state.head.graph_commit_id, types=types)
        counts: dict[str, int] = {}

        def counted() -> Iterator[bytes]:
            for line in lines:
                record = json.loads(line)
                key = f"edge:{record['edge']}" if "edge" in record else f"node:{record['type']}"
                counts[key] = counts.get(key, 0) + 1
                yield line

        if str(path) == "-":
            import sys

            sys.stdout.buffer.writelines(counted())
        else:
            refuse_occupied(str(path), as_file=True, overwrite=overwrite)
            with Path(path).open("wb") as file:
                file.writelines(counted())
        return ExportSummary(str(path), format, tuple(counts.items()), state.head.graph_commit_id)

    def export_lines(
        self, *, at: Target = None, branch: str | None = None, types: Sequence[str] | None = None
    ) -> Iterator[bytes]:
        """What `export` writes, line by line, as it comes."""
        body = {"branch": branch or self._branch, "snapshot": _state(at), "type_names": list(types) if types else None}
        with self._transport.stream("POST", "/export", body=body) as response:
            held = b""
            for piece in response.iter_bytes():
                *lines, held = (held + piece).split(b"\n")
                yield from (line + b"\n" for line in lines)

    # --- writing ---------------------------------------------------------------------------------------------------

    def mutate(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        if_commit: str | None = None,
        **more: Any,
    ) -> MutationResult:
        """Run a mutation query: one commit, or none when it changes nothing."""
        from omnigraph.client.wire_values import mutation_result

        given = query_source(source)
        own = {"name": name, "branch": branch, "if_commit": if_commit}
        values = gathered("mutate", given.text, params, more, own)
        body = {"query": given.text, "name": name, "params": values, "branch": branch or self._branch}
        with named_in_errors(given.filename):
            return mutation_result(self._transport.post("/mutate", body, _condition(if_commit)))

    def load(
        self,
        data: Any,
        *,
        mode: Mode,
        type: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        columns: Mapping[str, str] | None = None,
        branch: str | None = None,
        from_: str | None = None,
        engine: Engine = "auto",
        if_commit: str | None = None,
        progress: Any = None,
    ) -> LoadResult:
        """Load records as one commit, or nothing at all when one of them breaks a rule. They are sent as a stream."""
        from omnigraph.client.wire_values import load_result

        if from_ is not None and branch is None:
            raise BadRequest(f"from_={from_!r} makes a branch for the load: name it with branch=…")
        lines = sent(data, type=type, src=src, dst=dst, columns=columns)
        params = {"mode": mode, "branch": branch or self._branch, "from": from_}
        return load_result(self._transport.send("/load/ndjson", lines, params, _condition(if_commit)))

    # --- the schema ------------------------------------------------------------------------------------------------

    def schema_source(self, at: Target = None) -> str:
        """The schema text of a snapshot, as it was accepted."""
        return str(self._transport.get("/schema", branch=self._branch, snapshot=_state(at))["schema_source"])

    def catalog(self, at: Target = None) -> Catalog:
        """The schema of a snapshot, compiled here."""
        from omnigraph.schema.compiler.compile import compile_schema

        return compile_schema(self.schema_source(at))

    def plan_schema(self, source: str | PathLike[str], *, allow_data_loss: bool = False) -> MigrationPlan:
        """The steps from the accepted schema to another one. Changes nothing."""
        from omnigraph.schema.migration.migrate import plan_from_json

        desired = schema_source(source)
        body = {"schema_source": desired.text, "allow_data_loss": allow_data_loss}
        with named_in_errors(desired.filename):
            return plan_from_json(self._transport.post("/schema/plan", body))

    def apply_schema(self, source: str | PathLike[str], *, allow_data_loss: bool = False) -> SchemaApplyResult:
        """Make another schema the schema of the graph."""
        from omnigraph.client.wire_values import schema_applied

        desired = schema_source(source)
        body = {"schema_source": desired.text, "allow_data_loss": allow_data_loss}
        with named_in_errors(desired.filename):
            return schema_applied(self._transport.post("/schema/apply", body))

    # --- history and branches --------------------------------------------------------------------------------------

    def head(self, branch: str | None = None) -> GraphCommit:
        """The newest commit of a branch."""
        return self.commit(self._transport.get("/snapshot", branch=branch or self._branch)["graph_commit_id"])

    def commit(self, id: str) -> GraphCommit:
        """One commit by its id."""
        from omnigraph.client.wire_values import commit

        return commit(self._transport.get(f"/commits/{quote(id, safe='')}"))

    def log(
        self,
        branch: str | None = None,
        by: str | None = None,
        limit: int | None = None,
        *,
        since: Time | None = None,
        until: Time | None = None,
    ) -> History:
        """The commits that a branch can reach, newest first."""
        from omnigraph.client.wire_values import commit
        from omnigraph.ledger.values import History

        asked = {"branch": branch or self._branch, "actor": by, "limit": limit}
        found = self._transport.get("/commits", **asked, since=_moment(since), until=_moment(until))
        return History(commit(one) for one in found["commits"])

    def commit_changes(self, id: str) -> Iterator[EntityChange]:
        """What one commit changed against its first parent."""
        from omnigraph.client.wire_values import diff

        return iter(diff(self._transport.get(f"/commits/{quote(id, safe='')}/changes")))

    def branch_list(self) -> list[str]:
        """The names of the branches that may be read, sorted."""
        return [ref.name for ref in self.branches.list()]

    def branch_create(self, name: str, from_: Target = None) -> BranchRef:
        """Make a branch from another one (by default the handle's own), or from a commit or a tag."""
        from omnigraph.client.wire_values import branch

        return branch(self._transport.post("/branches", {"name": name, "from": _state(from_) or self._branch}))

    def branch_delete(self, name: str) -> None:
        """Delete a branch. Its name is free at once."""
        self._transport.delete(f"/branches/{quote(name, safe='/')}")

    @contextmanager
    def branch(self, name: str, from_: Target = None, *, merge: bool = False) -> Iterator[RemoteGraph]:
        """A handle bound to a branch, which is made when it does not exist. With `merge` it is merged at the end."""
        if name not in self.branch_list():
            self.branch_create(name, from_)
        yield RemoteGraph(self._transport, name)
        if merge:
            self.merge(name, into=self._branch)

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        strategy: Strategy | None = None,
        resolutions: Mapping[tuple[str, str], Any] | None = None,
        dry_run: bool = False,
        delete_source: bool = False,
        granularity: Granularity | None = None,
        engine: Engine = "auto",
    ) -> MergeResult:
        """Merge one branch into another; what collides raises `MergeConflicts` and has no effect."""
        from omnigraph.client.wire_values import merge_result

        answers: dict[str, dict[str, Any]] = {}
        for (table_key, row_id), answer in (resolutions or {}).items():
            answers.setdefault(table_key, {})[row_id] = answer
        body = {
            "source": source,
            "target": into,
            "strategy": strategy,
            "resolutions": answers or None,
            "dry_run": dry_run,
            "delete_branch": delete_source,
            "granularity": granularity,
        }
        return merge_result(self._transport.post("/branches/merge", body))

    def diff(
        self,
        a: Target,
        b: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        engine: Engine = "auto",
    ) -> RemoteDiff:
        """What differs between two targets: iterate for the changes, `summary()` for the counts."""
        from omnigraph.client.wire_values import diff

        body = {"from": _state(a) or self._branch, "to": _state(b) or self._branch, **_filters(kinds, types, ops)}
        return diff(self._transport.post("/diff", body))

    def changes(
        self,
        branch: str | None = None,
        since: str = "beginning",
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        limit: int | None = None,
    ) -> RemotePage:
        """The change feed of a branch: one block per commit, and a cursor to go on from."""
        from omnigraph.client.wire_values import page

        asked = {"branch": branch or self._branch, "since": since, "limit": limit, **_filters(kinds, types, ops)}
        return page(self._transport.get("/changes", **asked))

    def follow(self, branch: str | None = None, since: str = "now") -> Iterator[RemoteCommitChanges]:
        """The change feed as it goes on: one block per commit as it is published. Keep the cursor of the last one."""
        from omnigraph.client.wire_errors import error_from
        from omnigraph.client.wire_values import block

        asked = {"branch": branch or self._branch, "since": since}
        headers = {"Accept": "text/event-stream"}
        with self._transport.stream("GET", "/changes", params=asked, headers=headers, timeout=60) as response:
            kind = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    content = json.loads(line[6:])
                    if kind == "error":
                        raise error_from(content, 500)
                    yield block(content)

    def sync_branch(self, name: str | None = None) -> GraphCommit:
        """Bind this handle to a branch (by default its own), and return its newest commit."""
        head = self.head(name)
        self._branch = name or self._branch
        return head

    def _rows(self, path: str, body: Mapping[str, Any], timeout: float | None, or_json: bool = False) -> Any:
        import pyarrow as pa

        from omnigraph.client.wire_values import result

        headers = {"Accept": ARROW}
        if timeout is not None:
            headers["Omnigraph-Timeout"] = str(timeout)
        with self._transport.stream("POST", path, body=body, headers=headers) as response:
            content = response.read()
            if or_json and response.headers["content-type"].startswith("application/json"):
                return json.loads(content)
        found, head = result(pa.ipc.open_stream(content))
        found.query_name = head["query_name"]
        found.told = dict(head)
        return found


class RemoteBranches:
    """`g.branches`."""

    def __init__(self, graph: RemoteGraph) -> None:
        self._graph = graph
        self.create = graph.branch_create
        self.delete = graph.branch_delete
        self.merge = graph.merge
        self.diff = graph.diff
        self.sync = graph.sync_branch

    def list(self) -> list[BranchRef]:
        """The branches that may be read, sorted by name."""
        from omnigraph.client.wire_values import branch

        return [branch(found) for found in self._graph._transport.get("/branches")["branches"]]


def _state(at: Target) -> str | int | None:
    """What names a state, as JSON has it."""
    return at.isoformat() if isinstance(at, datetime) else at


def _condition(if_commit: str | None) -> dict[str, str]:
    return {} if if_commit is None else {"Omnigraph-If-Graph-Commit": if_commit}


def _filters(
    kinds: Collection[str] | None, types: Collection[str] | None, ops: Collection[str] | None
) -> dict[str, list[str] | None]:
    found = {"kinds": kinds, "types": types, "ops": ops}
    return {key: list(value) if value else None for key, value in found.items()}


def _moment(moment: Time | None) -> str | None:
    if moment is None:
        return None
    from omnigraph.times import aware, to_microseconds

    return aware(to_microseconds(moment, "a time")).isoformat()
