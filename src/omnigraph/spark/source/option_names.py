"""The names of options, as Spark hands them over: in any case, and along with options of its own.

One that is misspelled must not be passed over in silence: a read of `brnch` would be a read of `main`, and a write with
the option `mode` an append of what was meant to be merged. So every name must be known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.diagnostics import nearest
from omnigraph.errors import BadRequest

READ = ("type", "branch", "snapshot", "version", "columns", "rowsPerPartition", "pushDown")
WRITE = ("type", "branch", "src", "dst", "map", "actor", "ifRows")
FRAME = tuple(dict.fromkeys((*READ, *WRITE)))
"""Those of a read and of a write: a view is read and inserted into with the same options."""

STREAM_IN = ("type", "mode", "branch", "actor", "src", "dst", "map", "column", "badRecords", "missingBatches")
STREAM_OUT = ("branch", "startingFrom", "type", "types", "kinds", "ops", "maxCommitsPerTrigger", "onGap")

_UNLISTED = ("path", "paths", "checkpointLocation", "queryName", "plan")
"""What Spark puts in by itself: where the graph lies, and what its own parts of a stream are told; and the plan of a
read, which is for us alone."""

OF_STREAMS = {
    "mode": 'how to write is said by .mode("append") or .mode("overwrite"), and graph.load(df, mode="merge", …) merges',
    "badRecords": "it is for streams into a graph: a write with a bad record is refused as a whole",
    "missingBatches": "it is for streams into a graph, whose batches have numbers",
    "column": "it is for streams into a graph; JSON records at rest are loaded by graph.load",
    **dict.fromkeys(
        (name for name in STREAM_OUT if name not in FRAME),
        "it is for streams out of a graph: spark.readStream with startingFrom, or graph.follow without Spark",
    ),
}
"""What to say of an option that streams have, to whoever reads or writes at rest."""


def known_options(
    given: Mapping[str, str], known: Sequence[str], what: str, others: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Options by their names in lower case. One that is not known is refused with what was meant, or could be.

    `others` says what to tell of options that something else has.
    """
    options = _without_properties({name.lower(): value for name, value in given.items()})
    taken = {name.lower() for name in (*known, *_UNLISTED)}
    for name in options:
        if name not in taken:
            raise BadRequest(f"{what} has no option `{name}`; {_hint(name, known, others or {})}")
    return options


def _without_properties(options: dict[str, str]) -> dict[str, str]:
    """Of a table of Spark's catalog, which has a provider, its properties come along: its options are told twice."""
    if "provider" not in options:
        return options
    return {name: value for name, value in options.items() if name == "path" or f"option.{name}" in options}


def _hint(name: str, known: Sequence[str], others: Mapping[str, str]) -> str:
    told = {other.lower(): hint for other, hint in others.items()}
    by_case = {other.lower(): other for other in (*others, *known)}
    near = nearest(name, by_case)
    if near is None:
        return f"there are {', '.join(known)}"
    meant = "" if near == name else f"did you mean `{by_case[near]}`?"
    return f"{meant} {told.get(near, '')}".strip()
