"""Agents over MCP, with the official client: over HTTP, and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import omnigraph as og
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import POLICY, SCHEMA, TOKENS, make
from tests.server.running import serving

AGENT_POLICY = POLICY.replace("team: [act-ada, act-bob]", "team: [act-bob]\n  agents: [act-eve]") + (
    "  - { id: agents-call, allow: { actors: { group: agents }, actions: [invoke_query] } }\n"
    "  - { id: agents-read, allow: { actors: { group: agents }, actions: [read] } }\n"
    "  - { id: agents-work, allow: { actors: { group: agents }, actions: [change], branch_scope: unprotected } }\n"
    "  - { id: agents-branch, allow: { actors: { group: agents }, actions: [branch_create],\n"
    "      target_branch_scope: unprotected } }\n"
)


async def text(session: ClientSession, tool: str, **arguments: Any) -> Any:
    answer = await session.call_tool(tool, arguments)
    told = answer.content[0].text  # type: ignore[union-attr]
    assert not answer.isError, told
    return json.loads(told)


async def refused(session: ClientSession, tool: str, **arguments: Any) -> str:
    answer = await session.call_tool(tool, arguments)
    assert answer.isError
    return str(answer.content[0].text)  # type: ignore[union-attr]


def as_actor(url: str, actor: str, script: Callable[[ClientSession], Any]) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {TOKENS[actor]}"}
        async with (
            httpx.AsyncClient(headers=headers, timeout=60) as http,
            streamable_http_client(f"{url}/mcp", http_client=http) as (reading, writing, _),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            await script(session)

    asyncio.run(run())


def test_an_agent_works_on_a_branch_and_a_person_reviews_and_merges(tmp_path: Path) -> None:
    uri = make(tmp_path)
    (tmp_path / "policy.yaml").write_text(AGENT_POLICY)
    graph = GraphSettings("default", uri, str(tmp_path / "policy.yaml"), str(tmp_path / "queries.yaml"))

    async def agent(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"find_people", "hire", "query", "diff", "branch_create"}  # no merge, nothing hidden
        assert tools["find_people"].description == "People of an age. Use it to find people."
        assert tools["find_people"].inputSchema["properties"]["least"] == {"type": "integer"}
        assert tools["hire"].inputSchema["required"] == ["slug"]
        assert (await session.read_resource("omnigraph://schema")).contents[0].text == SCHEMA  # type: ignore
        assert "main" in (await session.read_resource("omnigraph://branches")).contents[0].text  # type: ignore
        found = await text(session, "find_people", least=30)
        assert found["rows"] == [{"p.slug": "ada", "p.age": 36}]
        assert "may not change on branch `main`" in await refused(session, "hire", slug="zoe")
        await text(session, "branch_create", name="agents/hiring")
        done = await text(session, "hire", slug="zoe", branch="agents/hiring")
        assert done["actor_id"] == "act-eve"
        changed = await text(session, "diff", **{"from": "main", "to": "agents/hiring"})
        assert [change["id"] for change in changed["changes"]] == ["zoe"]
        assert "there is no tool `merge`" in await refused(session, "merge", source="agents/hiring")
        assert "there is no tool `secret`" in await refused(session, "secret")
        assert "takes no `nonsense`" in await refused(session, "find_people", least=1, nonsense=2)
        assert "needs `least`" in await refused(session, "find_people")
        assert "error[" in await refused(session, "query", query="query q( {")

    async def nobody(session: ClientSession) -> None:
        assert {tool.name for tool in (await session.list_tools()).tools} == {"query", "diff", "branch_create"}

    async def person(session: ClientSession) -> None:
        assert "merge" in {tool.name for tool in (await session.list_tools()).tools}
        preview = await text(session, "merge", source="agents/hiring", dry_run=True)
        assert preview["tables"][0]["inserts"] == 1
        assert (await text(session, "merge", source="agents/hiring"))["outcome"] == "fast_forward"

    with serving(graph, tokens=TOKENS) as running:
        as_actor(running.url, "act-eve", agent)
        as_actor(running.url, "act-bob", nobody)
        as_actor(running.url, "act-ada", person)
        assert httpx.post(f"{running.url}/mcp", json={}).status_code == 401
        with og.connect(running.url, token=TOKENS["act-ada"]) as client:
            assert client.log(by="act-eve", limit=1)[0].actor_id == "act-eve"


def test_an_agent_of_this_machine(tmp_path: Path) -> None:
    uri = make(tmp_path)
    code = "import sys; from omnigraph.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["mcp", uri, "--queries", str(tmp_path / "queries"), "--as", "act-me"]

    async def run() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-c", code, *words])
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert names == {"people", "hire", "secret", "query", "diff", "branch_create", "merge"}
            assert (await text(session, "hire", slug="zoe"))["actor_id"] == "act-me"
            counted = "query q() { match { $p: Person } return { count($p) as n } }"
            assert (await text(session, "query", query=counted))["rows"] == [{"n": 3}]

    asyncio.run(run())
