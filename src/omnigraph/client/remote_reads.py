"""Reading a graph behind a server: queries, stored queries, entities, blobs, exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from omnigraph.choices import Engine, Target
from omnigraph.client.remote_held import RemoteHeld
from omnigraph.client.transport import ARROW, BYTES, JSON, LINES
from omnigraph.client.wire_arguments import parameters, state_name
from omnigraph.errors import BadRequest, Unavailable
from omnigraph.sources import named_in_errors, query_source

if TYPE_CHECKING:
    from io import BufferedReader

    from omnigraph.ledger.values import Snapshot
    from omnigraph.read.export import ExportSummary
    from omnigraph.read.result.explain import Explanation
    from omnigraph.read.result.result import Result
    from omnigraph.write.results import MutationResult


class RemoteReads(RemoteHeld):
    """Reading; `RemoteGraph` does it."""

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
        values = parameters("query", given.text, params, more, own)
        body = {
            "query": given.text,
            "name": name,
            "params": values,
            "branch": self._place(branch),
            "snapshot": state_name(at),
        }
        with named_in_errors(given.filename):
            found: Result = self._rows("/query", body, timeout)
            return found

    def explain(
        self,
        source: str | PathLike[str],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: Target = None,
        analyze: bool = False,
        timeout: float | None = None,
        **more: Any,
    ) -> Explanation:
        """How a read would run there; with `analyze` it is run, and the plan shows real row counts and times."""
        from omnigraph.client.wire_values import explanation

        given = query_source(source)
        own = {"name": name, "branch": branch, "at": at, "analyze": analyze or None, "timeout": timeout}
        body = {
            "query": given.text,
            "name": name,
            "params": parameters("explain", given.text, params, more, own),
            "branch": self._place(branch),
            "snapshot": state_name(at),
            "analyze": analyze,
        }
        with named_in_errors(given.filename):
            return explanation(self._transport.post("/explain", body, _deadline(timeout)))

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

        values = parameters("invoke", "", params, more, {})
        body = {"params": values, "branch": self._place(branch), "snapshot": state_name(at)}
        found = self._rows(f"/queries/{quote(name, safe='')}", body, timeout, or_json=True)
        return mutation_result(found) if isinstance(found, dict) else found

    def stored_queries(self) -> list[dict[str, Any]]:
        """The catalog of stored queries."""
        found: list[dict[str, Any]] = self._transport.get("/queries")["queries"]
        return found

    def snapshot(self, at: Target = None, *, branch: str | None = None) -> Snapshot:
        """The tables and versions that a branch, commit, tag or manifest version publishes."""
        from omnigraph.client.wire_values import commit, snapshot

        found = self._transport.get("/snapshot", branch=self._place(branch), snapshot=state_name(at))
        head = self._transport.get(f"/commits/{quote(found['graph_commit_id'], safe='')}")
        return snapshot(found, commit(head))

    def entity(self, type: str, id: Any, at: Target = None, *, branch: str | None = None) -> dict[str, Any] | None:
        """One node or edge by its id, or None. Values are those of JSON."""
        asked = {"type": type, "id": str(id), "branch": self._place(branch), "snapshot": state_name(at)}
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
        asked = {"type": type, "id": str(id), "property": property, "branch": self._place(branch)}
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        place = {**asked, "snapshot": state_name(at)}
        with self._transport.stream("GET", "/blob", BYTES, params=place, headers=headers, beyond=True) as response:
            return response.read() if response.status_code != 416 else b""

    def open_blob(
        self, type: str, id: Any, property: str, *, at: Target = None, branch: str | None = None
    ) -> BufferedReader:
        """A blob as a file that can be read and sought in. It keeps what it was when it was opened."""
        from omnigraph.client.remote_blob import RemoteBlob
        from omnigraph.read.entity_blobs import opened

        place = {"branch": self._place(branch), "snapshot": state_name(at)}
        commit = self._transport.get("/snapshot", **place)["graph_commit_id"]
        asked = {"type": type, "id": str(id), "property": property, "snapshot": commit}
        return opened(RemoteBlob.found(self._transport, asked))

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
        body = {
            "branch": self._place(branch),
            "snapshot": state_name(at),
            "type_names": list(types) if types else None,
        }
        with self._transport.stream("POST", "/export", LINES, body=body) as response:
            held = b""
            for piece in response.iter_bytes():
                *lines, held = (held + piece).split(b"\n")
                yield from (line + b"\n" for line in lines)
            if held:
                raise Unavailable("the export broke off in the middle of a line; what came before it is not all of it")

    def _rows(self, path: str, body: Mapping[str, Any], timeout: float | None, or_json: bool = False) -> Any:
        import pyarrow as pa

        from omnigraph.client.wire_values import result

        headers = {"Accept": ARROW, **_deadline(timeout)}
        kinds = (ARROW, JSON) if or_json else (ARROW,)
        with self._transport.stream("POST", path, *kinds, body=body, headers=headers) as response:
            content = response.read()
            if response.headers["content-type"].startswith(JSON):
                return json.loads(content)
        found, head = result(pa.ipc.open_stream(content))
        found.query_name = head["query_name"]
        found.told = dict(head)
        return found


def _deadline(timeout: float | None) -> dict[str, str]:
    """The header of a read that has so many seconds."""
    return {} if timeout is None else {"Omnigraph-Timeout": str(timeout)}
