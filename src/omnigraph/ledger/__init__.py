"""Manifest, publisher, snapshots, commits, branches, sidecars, recovery: many tables become one graph."""
