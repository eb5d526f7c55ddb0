"""Leases: who may do a piece of work now, across threads, processes and machines."""

__all__ = ["leases"]
