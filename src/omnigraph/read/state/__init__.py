"""The state of one run: bindings, what their codes stand for, the limits it answers to, the figures it leaves."""

__all__ = ["control", "frame", "profile", "run_state", "spaces", "union"]
