"""Errors of the data source as their message, without the traceback that Spark would put before it.

Spark runs the parts of a Python source in processes of its own and shows their caller whatever ended them, traceback
first. Of an error that was raised on purpose, the line of ours that raised it helps nobody. Spark leaves it out where
`SPARK_HIDE_TRACEBACK` is set; a process whose call has failed runs nothing else, so it is set then, and there alone.
An error that nobody expected keeps its traceback.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from omnigraph.errors import InternalError, OmniGraphError

P = ParamSpec("P")
R = TypeVar("R")

IN_A_WORKER = "SPARK_PYTHON_RUNTIME"
"""What Spark sets in the processes that it starts for Python, and not in the one that has the session."""

HIDE = "SPARK_HIDE_TRACEBACK"


def plain_errors(method: Callable[P, R]) -> Callable[P, R]:
    """A method that Spark calls, whose errors are shown without their traceback."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OmniGraphError as error:
            _hide_traceback(error)
            raise

    return called


def plain_errors_of_rows(method: Callable[P, Iterator[Any]]) -> Callable[P, Iterator[Any]]:
    """The same for a method that gives rows, whose errors come while they are taken."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        try:
            yield from method(*args, **kwargs)
        except OmniGraphError as error:
            _hide_traceback(error)
            raise

    return called


def _hide_traceback(error: OmniGraphError) -> None:
    if not isinstance(error, InternalError) and IN_A_WORKER in os.environ:
        os.environ[HIDE] = "1"
