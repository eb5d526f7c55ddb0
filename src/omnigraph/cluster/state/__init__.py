"""What was applied: the ledger and what belongs to it, below `__cluster/` of the storage.

`cluster_store` has all of it; `cluster_state` is the ledger as a value; the others are its parts.
"""

__all__ = ["approvals", "cluster_lock", "cluster_sidecars", "cluster_state", "cluster_store"]
