"""What an open graph can do, as its user thinks of it: reads, writes, versions, undoing, upkeep. `Graph` is all.

Every part is thin: a method asks the policy, finds the right room and hands over. What they share is in `held`.
"""

__all__ = ["reads", "undoing", "upkeep", "versions", "writes"]
