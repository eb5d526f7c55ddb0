"""Where an expression stands: what may be named there differs."""

from __future__ import annotations

from enum import Enum, auto


class Place(Enum):
    """The places of expressions."""

    MATCH = auto()
    RETURN = auto()
    ORDER = auto()
    WHERE = auto()
    """The predicate of an update or a delete."""
    CONSTANT = auto()
    """A read's inline property, search argument or limit: literals and parameters only."""
    ASSIGNED = auto()
    """A value that a mutation assigns: literals and parameters only."""


CONSTANT_PLACES = frozenset({Place.CONSTANT, Place.ASSIGNED})
MUTATION_PLACES = frozenset({Place.WHERE, Place.ASSIGNED})
