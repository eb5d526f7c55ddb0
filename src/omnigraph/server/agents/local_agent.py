"""`omnigraph mcp`: a graph of this machine for an agent of this machine, over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.read.state.control import CancelToken
from omnigraph.server.agents.agent_tools import AgentTools
from omnigraph.server.agents.protocol import protocol_server
from omnigraph.stored.registry import read_registry


def serve_here(uri: str, *, queries: Path | None, policy: Path | None, actor: str | None) -> None:
    """Speak MCP on standard input and output until it ends."""
    with og.open(uri, actor=actor, policy=policy) as graph:
        registry = read_registry(queries, graph.under(None).catalog())

        async def with_tools(work: Callable[[AgentTools], Any], _: str | None) -> Any:
            token = CancelToken()
            try:
                return await asyncio.to_thread(work, AgentTools(graph, registry, graph.policy, actor, cancel=token))
            except asyncio.CancelledError:
                token.cancel()
                raise

        asyncio.run(_speak(protocol_server(with_tools)))


async def _speak(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
