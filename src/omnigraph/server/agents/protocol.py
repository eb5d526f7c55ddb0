"""An MCP server over tools, whoever they are for: the endpoint and the local program differ in how they find them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from pydantic import AnyUrl

import omnigraph
from omnigraph.errors import OmniGraphError
from omnigraph.server.agents.agent_tools import BRANCHES_URI, SCHEMA_URI, AgentTools
from omnigraph.server.error_bodies import encoded

T = TypeVar("T")

With = Callable[[Callable[[AgentTools], Any], str | None], Awaitable[Any]]
"""Runs work on the tools of whoever asks, off the event loop: that of the named tool, or what only looks."""

INSTRUCTIONS = (
    "A typed, versioned property graph. Read the schema first. Work on a branch of your own (branch_create), compare "
    "it with main (diff), and leave the merge to whoever reviews it unless you are told otherwise."
)


def protocol_server(with_tools: With) -> Server[Any, Any]:
    """An MCP server."""
    server: Server[Any, Any] = Server("omnigraph", omnigraph.__version__, INSTRUCTIONS)

    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK has no types here
    async def list_tools() -> list[types.Tool]:
        offered = await with_tools(lambda tools: tools.offered(), None)
        return [
            types.Tool(
                name=tool.name,
                description=tool.description,
                inputSchema=tool.schema,
                annotations=types.ToolAnnotations(readOnlyHint=not tool.mutates, destructiveHint=tool.mutates),
            )
            for tool in offered
        ]

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]  # the SDK has no types here
    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        # The SDK keeps one definition of each tool for all callers; what a tool takes is checked by the tools.
        try:
            found = await with_tools(lambda tools: tools.call(name, arguments), name)
        except OmniGraphError as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=error.message)], isError=True)
        text = encoded(found).decode()
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], isError=False)

    @server.list_resources()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK has no types here
    async def list_resources() -> list[types.Resource]:
        return [
            types.Resource(uri=AnyUrl(SCHEMA_URI), name="schema", description="The schema of the graph (.pg)."),
            types.Resource(uri=AnyUrl(BRANCHES_URI), name="branches", description="The branches of the graph."),
        ]

    @server.read_resource()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK has no types here
    async def read_resource(uri: AnyUrl) -> Iterable[ReadResourceContents]:
        text = await with_tools(lambda tools: tools.resource(str(uri)), None)
        kind = "text/plain" if str(uri) == SCHEMA_URI else "application/json"
        return [ReadResourceContents(text, kind)]

    return server
