"""The HTTP server: an ASGI application over the Graph, its routes, and the program `omnigraph-server`."""
