"""One file for each idea of the language: its tree, how it is written, what it means in SQL, how it is made at random.

Importing this package makes them all known.
"""

from tests.differential.constructs import (
    aggregates,
    blocks,
    combinations,
    conditions,
    details,
    forms,
    hops,
    narrowing,
    numbers,
    rankings,
    results,
    searching,
    shifts,
    staging,
    values,
    walks,
)

__all__ = [
    "aggregates",
    "blocks",
    "combinations",
    "conditions",
    "details",
    "forms",
    "hops",
    "narrowing",
    "numbers",
    "rankings",
    "results",
    "searching",
    "shifts",
    "staging",
    "values",
    "walks",
]
