"""Optimize, repair, cleanup, verify, tags."""
