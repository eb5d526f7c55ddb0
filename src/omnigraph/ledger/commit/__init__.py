"""The way of a prepared write into the graph: intents in, one commit out, or nothing at all.

`attempts` drives it (heal, prepare, commit, again when that is right); `phases` are the four phases of the protocol,
inside the `window` of the branch, after `recheck` found that nothing the write leaned on has moved.
"""

__all__ = ["attempts", "drift", "intents", "phases", "queue", "staging_marks", "window"]
