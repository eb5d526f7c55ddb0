"""Where an expression stands: what may be named there differs."""

from __future__ import annotations

from enum import Enum, auto


class Place(Enum):
    """The places of expressions."""

    MATCH = auto()
    WALK = auto()
    """The condition of a traversal: bare names are properties of the edge, variables are not seen."""
    RETURN = auto()
    ORDER = auto()
    HAVING = auto()
    """`having`, and the `where` of a `with`."""
    WHERE = auto()
    """The predicate of an update or a delete."""
    CONSTANT = auto()
    """A search argument, a limit or the default of a parameter: literals and parameters only."""
    INLINE = auto()
    """An inline property: computed from literals and parameters."""
    ASSIGNED = auto()
    """A value that a mutation assigns."""


CONSTANT_PLACES = frozenset({Place.CONSTANT, Place.INLINE})
RESULT_PLACES = frozenset({Place.RETURN, Place.ORDER, Place.HAVING})
MUTATION_PLACES = frozenset({Place.WHERE, Place.ASSIGNED})
