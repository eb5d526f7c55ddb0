"""From a checked query to IR. `compile` is the way in, and says what the engines can rely on."""

__all__ = ["compile"]
