"""From what is applied to what is wanted: the plan, carrying it out, finishing what was cut off, finding drift.

`cluster_plan` is the plan as a value, `make_plan` makes it; what the others do ends in the ledger.
"""

__all__ = ["apply_changes", "cluster_plan", "make_plan", "open_ledger", "refresh_ledger", "take_in"]
