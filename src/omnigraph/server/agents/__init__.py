"""What agents are offered over MCP: stored queries as tools, and reading, branching, merging where allowed."""

__all__ = ["endpoint", "local_agent"]
