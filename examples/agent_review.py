"""An agent works on a branch of its own, through MCP; a person looks at what it did, and merges it.

python examples/agent_review.py

Both ask one server, each with a token. The policy lets the agent read, call stored queries and change what is on
branches that are not protected; `main` is, and only a person merges into it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

import omnigraph as og

SCHEMA = """
node Person {
    slug: String @key
    role: String?
}
"""

QUERIES = """
query staff() @description("Everybody, and what they do.") {
    match { $p: Person }
    return { $p.slug, $p.role }
    order { $p.slug }
}

query hire($slug: String, $role: String) @description("Take somebody on.") {
    insert Person { slug: $slug, role: $role }
}
"""

POLICY = """
version: 1
groups:
  people: [ada]
  agents: [scout]
protected_branches: [main]
rules:
  - { id: people-read, allow: { actors: { group: people }, actions: [read] } }
  - { id: people-merge, allow: { actors: { group: people }, actions: [branch_merge, branch_delete] } }
  - { id: agents-call, allow: { actors: { group: agents }, actions: [invoke_query] } }
  - { id: agents-read, allow: { actors: { group: agents }, actions: [read] } }
  - { id: agents-work, allow: { actors: { group: agents }, actions: [change], branch_scope: unprotected } }
  - { id: agents-branch, allow: { actors: { group: agents }, actions: [branch_create],
      target_branch_scope: unprotected } }
"""

TOKENS = {"ada": "a-long-random-text", "scout": "another-long-random-text"}


async def agent(url: str) -> None:
    """What an agent's program does with the tools that it finds."""
    headers = {"Authorization": f"Bearer {TOKENS['scout']}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        print("tools:", ", ".join(tool.name for tool in (await session.list_tools()).tools))

        async def call(tool: str, **arguments: Any) -> str:
            answer = await session.call_tool(tool, arguments)
            text = str(getattr(answer.content[0], "text", ""))
            return f"refused: {text}" if answer.isError else text

        print("staff:", json.loads(await call("staff"))["rows"])
        print("on main,", await call("hire", slug="cleo", role="research"))
        await call("branch_create", name="agents/hiring")
        await call("hire", slug="cleo", role="research", branch="agents/hiring")
        await call("hire", slug="dora", role="operations", branch="agents/hiring")
        print("done: please look at agents/hiring")


def person(url: str) -> None:
    """What a person does with what the agent left."""
    with og.connect(url, token=TOKENS["ada"]) as graph:
        for change in graph.diff("main", "agents/hiring"):
            print(f"review: {change.op} {change.type} {change.after}")
        [last] = graph.log("agents/hiring", limit=1)
        print("made by:", last.actor_id)
        print("merged:", graph.merge("agents/hiring", delete_source=True).outcome)
        print("staff:", graph.query(QUERIES, "staff").rows())


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server for a new graph in this folder; its address."""
    og.init(folder / "team.omni", schema=SCHEMA).close()
    (folder / "queries.gq").write_text(QUERIES)
    (folder / "policy.yaml").write_text(POLICY)
    words = ["team.omni", "--queries", "queries.gq", "--policy", "policy.yaml", "--bind", "127.0.0.1:0"]
    program = "from omnigraph.server.launch import run; run()"  # what `omnigraph-server` runs
    server = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={**os.environ, "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS), "OMNIGRAPH_LOG": "error"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield f"http://{server.stdout.readline().strip().partition('=')[2]}"
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as address:
        asyncio.run(agent(address))
        person(address)
