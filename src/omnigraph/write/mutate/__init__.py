"""Mutations: statements in order over one snapshot and what is pending, one commit at the end."""

__all__ = ["blob_uris", "combined", "mutate", "pending"]
