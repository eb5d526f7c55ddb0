"""Run one function over many plain values, each in a task of its own, and give the results back in order.

Whatever a task returns is taken from the attempt that won; what other attempts did stays unreferenced.
"""

from __future__ import annotations

import errno
import functools
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import (
    BadRequest,
    EmbeddingRefused,
    EmbeddingUnavailable,
    NotFound,
    OmniGraphError,
    ResourceLimit,
    SparkJobFailed,
)
from omnigraph.spark.session.worker_daemon import settle_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_MISTAKES: dict[str, type[OmniGraphError]] = {
    kind.__name__: kind for kind in (BadRequest, NotFound, ResourceLimit, EmbeddingRefused, EmbeddingUnavailable)
}
_MISTAKE = re.compile(rf"omnigraph\.errors\.(?:\w+\.)*(?P<kind>{'|'.join(_MISTAKES)}): (?P<message>.+)")
_DETAILS = " \N{SYMBOL FOR UNIT SEPARATOR} "
"""Between the message of a mistake and its details, on the way from a task to the driver."""
_ANSWERS = "position bigint, answer binary"
_MOST_TOLD = 500
_SHORT_OF_MEMORY = (
    "Python worker exited unexpectedly",
    "ExecutorLostFailure",
    "OutOfMemoryError",
    "MemoryError",
    "exit code 137",
)


def spread(session: SparkSession, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """`[function(item) for item in items]`, on the executors. Function, items and answers pickle."""
    if not items:
        return []
    answers: dict[int, Answer] = {}
    with told_in_our_words(_step(session)):
        frame = one_partition_each(session, [pickle.dumps(item) for item in items])
        for row in frame.mapInArrow(_task(function), _ANSWERS).collect():
            answers[row.position] = pickle.loads(bytes(row.answer))
    return [answers[position] for position in range(len(items))]


def _step(session: SparkSession) -> str:
    """What the jobs of this thread are for, as Spark's own lists show it."""
    told = session.sparkContext.getLocalProperty("spark.job.description")
    return f"running `{told}`" if told else ""


def one_partition_each(session: SparkSession, payloads: Sequence[bytes]) -> DataFrame:
    """A frame `position, payload` in which each row is a partition of its own."""
    rows = session.sparkContext.parallelize(list(enumerate(payloads)), len(payloads))
    return session.createDataFrame(rows, "position bigint, payload binary")


def _task(function: Callable[[Any], Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                answer = pickle.dumps(function(pickle.loads(row["payload"])))
                settle_worker()
                yield pa.RecordBatch.from_arrays(
                    [pa.array([row["position"]], pa.int64()), pa.array([answer], pa.binary())],
                    names=["position", "answer"],
                )

    return run


def with_details(task: Callable[..., Answer]) -> Callable[..., Answer]:
    """A task whose mistakes reach the driver with their details: Spark keeps only the message of an error."""

    @functools.wraps(task)
    def run(*given: Any, **named: Any) -> Answer:
        try:
            return task(*given, **named)
        except OmniGraphError as error:
            if type(error).__name__ in _MISTAKES and error.details:
                raise type(error)(error.message + _DETAILS + json.dumps(error.details)) from None
            raise

    return run


@contextmanager
def placed(place: str) -> Iterator[None]:
    """In a task: a failure that is no mistake of the caller says what the task was about."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ in _MISTAKES or isinstance(error, SparkJobFailed):
            raise
        told = " ".join(str(error).split())[:_MOST_TOLD]
        raise SparkJobFailed(f"{place}: {type(error).__name__}: {told}") from error


class told_in_our_words:  # noqa: N801 - reads as a statement: `with told_in_our_words():`
    """Turns the failure of a Spark job into the caller's mistake that a task found, or else into `SparkJobFailed` with
    the reason that the task gave. `doing` names the step; what `only_reads` leaves nothing that is to be told of."""

    def __init__(self, doing: str = "", *, only_reads: bool = False) -> None:
        self._while = f" while {doing}" if doing else ""
        self._after = "" if only_reads else " Nothing was published; what it wrote is removed."

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        # PySpark writes to the scratch directory of the driver, too, and lets the system tell that it is full.
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if error is None or not (is_full or type(error).__module__.startswith(("pyspark.", "py4j."))):
            return
        mistake = mistake_of(error)
        if mistake is not None:
            raise mistake from error
        raise SparkJobFailed(
            f"A Spark job failed{self._while}: {reason_of(error)}.{self._after}{advice_on(str(error))}"
        ) from error


def mistake_of(error: BaseException) -> OmniGraphError | None:
    """The mistake of the caller that a task found, if that is what failed: the same error as in process."""
    for line in reversed(str(error).splitlines()):
        told = _MISTAKE.match(line.strip())
        if told:
            message, _, details = told["message"].partition(_DETAILS)
            return _MISTAKES[told["kind"]](message, **(json.loads(details) if details else {}))
    return None


def advice_on(told: str) -> str:
    """What to turn, when the reason is one that the settings of the session decide about."""
    if any(sign in told for sign in _SHORT_OF_MEMORY):
        return (
            " A worker or an executor that goes without a word is mostly killed by the system because memory is short: "
            "give executors more beside their heap (spark.executor.memoryOverhead), or fewer tasks at once "
            "(spark.executor.cores; on one machine a master such as local[2])."
        )
    if "No space left on device" in told:
        return (
            " Free some space where the graph is stored, or, if it is the scratch directory of the executors, let "
            "spark.local.dir name a larger disk."
        )
    return ""


def reason_of(error: BaseException) -> str:
    """The line that says what went wrong in the task, without the layers around it."""
    lines = _told_lines(str(error))
    for marker in ("OmniGraphError", "omnigraph.errors.", "omnigraph.storage.", "Error:", "Exception:"):
        told = [line for line in lines if marker in line]
        if told:
            reason = told[-1].removeprefix("Caused by: ").removeprefix("org.apache.spark.api.python.PythonException: ")
            return reason.removeprefix("omnigraph.errors.SparkJobFailed: ").rstrip(".")
    return lines[0].rstrip(".") if lines else type(error).__name__


def _told_lines(text: str) -> list[str]:
    """What traces say beside the places in the code, whose lines may hold the names of errors too."""
    told: list[str] = []
    is_source = False
    for line in (raw.strip() for raw in text.splitlines()):
        follows, is_source = is_source, line.startswith('File "')
        if line and not follows and not line.startswith(("at ", 'File "', "Suppressed: ")) and line.strip("^~ "):
            told.append(line)
    return told
