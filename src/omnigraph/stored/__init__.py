"""Stored queries: named, typed queries that are declared beside a graph, called by name and offered to agents."""
