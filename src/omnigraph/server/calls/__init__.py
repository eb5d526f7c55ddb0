"""How calls reach the engine: who may have how many under way, which threads run them, and which run together."""

__all__ = ["admission", "growing_file", "rounds", "threads"]
