"""In which parts the keys of a frame write lie, and in which order.

A part is named by the hash of the value that a rule is about. Parts whose numbers are equal modulo a power of two lie
next to each other, so that a commit reads one stretch for each of its buckets, however many it has.
"""

from __future__ import annotations

import numpy as np

PARTS = 256
"""A commit takes as many of them together as it has memory for."""

Doubt = tuple[str, int]
"""The subject of a rule, and a part of the keys that it is about which cannot be said to keep it."""


def rank(part: int) -> int:
    """The place of a part in the order: the bits of its number turned round."""
    width = PARTS.bit_length() - 1
    return int(f"{part:0{width}b}"[::-1], 2)


RANKS = np.array([rank(part) for part in range(PARTS)], np.uint16)
"""The place of each part; and the part of each place, for to turn round twice changes nothing."""
