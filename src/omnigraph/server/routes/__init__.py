"""The routes of the server, one module for each part of a graph: each takes a request apart and calls the Graph."""

__all__ = [
    "blob_routes",
    "branch_routes",
    "data_routes",
    "graph_calls",
    "history_routes",
    "request_bodies",
    "schema_routes",
    "server_routes",
    "stored_routes",
    "undo_routes",
    "upkeep_routes",
]
