"""Agents that ask for too much, ask wrongly, or go away: over HTTP, and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.graph import Graph
from omnigraph.server.agents.agent_tools import MOST_BYTES, MOST_ROWS, AgentTools
from omnigraph.server.server_settings import GraphSettings
from omnigraph.stored.registry import Registry
from tests.server.graphs import make
from tests.server.running import Running, serving, until

ENDLESS = "query endless() { match { $p: Person } return { count($p) as n } }"
MADE_ENDLESS = """
import time
from omnigraph.graph import Graph
real = Graph.query

def query(self, source, *args, cancel=None, **options):
    while "endless" in source:
        cancel.check()
        time.sleep(0.01)
    return real(self, source, *args, cancel=cancel, **options)

Graph.query = query
"""
"""A query that ends only when it is cancelled."""
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = make(tmp_path_factory.mktemp("agents"))
    with og.open(found) as graph:
        people = [{"slug": f"p{number:04}", "age": number} for number in range(MOST_ROWS + 500)]
        graph.load(people, type="Person", mode="append")
        graph.load([{"slug": "long" + "g" * MOST_BYTES}], type="Company", mode="append")
    return found


@pytest.fixture(scope="module")
def server(uri: str) -> Iterator[Running]:
    with serving(GraphSettings("default", uri)) as running:
        yield running


@pytest.fixture
def tools(uri: str) -> Iterator[AgentTools]:
    with og.open(uri) as graph:
        yield AgentTools(graph, Registry(), None, None)


def test_what_is_left_out_is_told(tools: AgentTools) -> None:
    found = tools.call("query", {"query": "query q() { match { $p: Person } return { $p.slug } }"})
    assert (len(found["rows"]), found["row_count"]) == (MOST_ROWS, MOST_ROWS + 502)
    assert f"first {MOST_ROWS} of {MOST_ROWS + 502} rows" in found["note"]
    differing = tools.call("diff", {"from": 2, "to": 3})
    assert len(differing["changes"]) == MOST_ROWS
    assert f"first {MOST_ROWS} of {MOST_ROWS + 500} changes" in differing["note"]
    assert "first 0 of 1 changes" in tools.call("diff", {"from": 3, "to": 4})["note"]
    large = tools.call("query", {"query": "query q() { match { $c: Company } return { $c.slug } order { $c.slug } }"})
    assert large["rows"] == [{"c.slug": "acme"}]
    assert "first 1 of 2 rows" in large["note"]
    assert "note" not in tools.call("query", {"query": COUNT})
    assert "note" not in tools.call("diff", {"from": "main", "to": "main"})


def test_a_preview_is_never_a_merge(tools: AgentTools) -> None:
    tools.call("branch_create", {"name": "other"})
    for said in ("false", "no", 0, 1, None):
        with pytest.raises(BadRequest, match="dry_run is true or false"):
            tools.call("merge", {"source": "other", "dry_run": said})
    assert tools.call("merge", {"source": "other", "dry_run": True, "into": None})["dry_run"] is True
    with pytest.raises(BadRequest, match="takes no `dryrun`"):
        tools.call("merge", {"source": "other", "dryrun": True})


def test_the_endpoint_takes_posts_only_and_is_counted_as_itself(server: Running) -> None:
    with server.client() as http:
        for method in ("GET", "DELETE", "PUT"):
            answer = http.request(method, "/mcp", headers={"Accept": "text/event-stream"})
            assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nothing"}}
        said = http.post("/mcp", json=asked, headers={"Accept": "application/json, text/event-stream"}).json()
        assert said["result"]["isError"] is True
        assert 'method="POST",route="/graphs/{graph_id}/mcp",status="200"' in http.get("/metrics").text


def test_a_client_that_goes_stops_its_query(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graph, "query", Graph.query)  # put back at the end
    exec(MADE_ENDLESS, {})
    call = {"name": "query", "arguments": {"query": ENDLESS}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    under_way = server.app.state.admission._under_way
    with server.client() as http, pytest.raises(httpx.ReadTimeout):
        http.post("/mcp", json=asked, headers={"Accept": "application/json, text/event-stream"}, timeout=1)
    until(lambda: not under_way)


def test_a_cancelled_call_stops_its_query(uri: str) -> None:
    """Over standard input and output, an agent says that it does not want the answer any more."""
    code = f"{MADE_ENDLESS}\nimport sys; from omnigraph.cli.main import main; sys.exit(main(sys.argv[1:]))"

    async def run() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-c", code, "mcp", uri], env=dict(os.environ))
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            endless = asyncio.create_task(session.call_tool("query", {"query": ENDLESS}))
            await asyncio.sleep(1)
            await session.send_notification(_cancelled(session._request_id - 1))
            with pytest.raises(McpError, match="cancelled"):
                await asyncio.wait_for(endless, 30)
            answer = await session.call_tool("query", {"query": COUNT})
            assert json.loads(answer.content[0].text)["rows"] == [{"n": MOST_ROWS + 502}]  # type: ignore[union-attr]

    # The program ends with its input, and waits for its threads: a query that went on would keep it for ever.
    asyncio.run(asyncio.wait_for(run(), 120))


def _cancelled(request_id: int) -> Any:
    from mcp import types

    return types.ClientNotification(
        types.CancelledNotification(params=types.CancelledNotificationParams(requestId=request_id))
    )
