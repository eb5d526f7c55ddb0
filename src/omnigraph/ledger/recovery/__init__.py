"""Finishing or undoing the writes of those who died: sidecars, what they left, what to do about it, the audit.

`recover` finds the sidecars; `evidence` reads what happened, `classify` and `decide` judge it (pure), `resolve`
carries the decision out; `resolve_by_hand` does what a person decided; `late_commits` knows what landed after that.
"""

__all__ = ["audit", "decide", "evidence", "late_commits", "recover", "resolve", "resolve_by_hand", "sidecars"]
