"""What a stream into a graph is told: options as Spark hands them over, checked, and as `load_stream` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.spark.source.column_map import column_map
from omnigraph.spark.source.option_names import STREAM_IN, known_options
from omnigraph.spark.stream.succession import ERROR, MISSING_BATCHES

MODES = ("append", "merge")
TRIGGERS = ("availableNow", "processingTime", "once")
VALUE = "value"
"""The column with JSON records, unless another is named: what Kafka, files of text and sockets call it."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """How the records of a stream are to be loaded."""

    mode: str = "append"
    type: str | None = None
    src: str | None = None
    dst: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    branch: str = "main"
    actor: str | None = None
    value_column: str = VALUE
    bad_records: str | None = None
    missing_batches: str = ERROR

    def to_options(self) -> dict[str, str]:
        """In the form in which Spark takes them."""
        given = {
            "mode": self.mode,
            "type": self.type,
            "src": self.src,
            "dst": self.dst,
            "map": ",".join(f"{column}={name}" for column, name in self.columns.items()) or None,
            "branch": self.branch,
            "actor": self.actor,
            "column": self.value_column,
            "badRecords": self.bad_records,
            "missingBatches": self.missing_batches,
        }
        return {name: value for name, value in given.items() if value is not None}


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Options of `writeStream`, whose names Spark may have put in lower case."""
    options = known_options(given, STREAM_IN, "a stream into a graph")
    found = SinkOptions(
        mode=options.get("mode", "append"),
        type=options.get("type"),
        src=options.get("src"),
        dst=options.get("dst"),
        columns=column_map(options.get("map", "")),
        branch=options.get("branch", "main"),
        actor=options.get("actor"),
        value_column=options.get("column", VALUE),
        bad_records=options.get("badrecords"),
        missing_batches=options.get("missingbatches", ERROR),
    )
    return checked(found)


def checked(options: SinkOptions) -> SinkOptions:
    """The same, unless they make no sense."""
    if options.mode == "overwrite":
        raise BadRequest(
            "a stream cannot overwrite: each batch would throw away what the batches before it brought. Use append "
            "or merge; to begin with nothing, empty the types by a load in mode overwrite before the stream starts"
        )
    if options.mode not in MODES:
        raise BadRequest(f"`{options.mode}` is not a mode of a stream; use append or merge")
    if options.type is None and (options.src or options.dst or options.columns):
        raise BadRequest("JSON records name their ends and properties themselves: src, dst and map are for a type")
    if options.missing_batches not in MISSING_BATCHES:
        raise BadRequest(f"missingBatches is {' or '.join(MISSING_BATCHES)}, not `{options.missing_batches}`")
    return options


def refuse_complete(overwrite: bool) -> None:
    """The output mode `complete` hands over the whole result with every batch."""
    if overwrite:
        raise BadRequest(
            'a graph takes no stream in output mode "complete", which sends the whole result again with every batch. '
            'Use outputMode("append"); for aggregates use foreachBatch in output mode "update", and in it '
            'graph.load(frame, mode="merge", type=…, batch=(name, number))'
        )


def checked_trigger(trigger: Mapping[str, Any]) -> dict[str, Any]:
    """What Spark's `trigger` takes, unless a graph has no use for it."""
    for name in trigger:
        if name == "continuous":
            raise BadRequest(
                "a stream into a graph is made of micro-batches, each of which is a commit: there is no continuous "
                'processing. Use trigger={"processingTime": "1 second"}'
            )
        if name not in TRIGGERS:
            raise BadRequest(f"a stream has no trigger `{name}`; there are {', '.join(TRIGGERS)}")
    if len(trigger) > 1:
        raise BadRequest(f"a stream has one trigger, not two: {', '.join(trigger)}")
    return dict(trigger)


def check_columns(options: SinkOptions, names: Sequence[str]) -> None:
    """Without a type there must be one column with JSON records."""
    if options.type is None and options.value_column not in names:
        raise BadRequest(
            f"there is no column `{options.value_column}` with JSON records, only {', '.join(names)}: name the column "
            'with option("column", …), or the type that the rows are of with option("type", …)'
        )
