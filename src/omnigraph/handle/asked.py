"""A read that was asked for and has not run yet: who has many of them can see what each would do, and help them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from omnigraph.choices import Target

if TYPE_CHECKING:
    from omnigraph.ledger.values import Snapshot
    from omnigraph.read.lookups import RowAsked
    from omnigraph.read.result.result import Result
    from omnigraph.read.run import StoredRead
    from omnigraph.read.state.control import CancelToken


@dataclass(frozen=True, slots=True)
class ReadAsk:
    """What a caller of `query` says."""

    source: str | PathLike[str]
    name: str | None = None
    params: Mapping[str, Any] | None = None
    branch: str | None = None
    at: Target = None
    actor: str | None = None
    cancel: CancelToken | None = None
    timeout: float | None = None


@dataclass(frozen=True)
class AskedRead:
    """A read that is allowed, compiled and planned on its state. It runs once."""

    name: str
    snapshot: Snapshot
    run: StoredRead | Callable[[], Result]
    """What runs in process; or how it runs elsewhere."""

    @cached_property
    def row(self) -> RowAsked | None:
        """The one row that it looks up, if that is all it does."""
        from omnigraph.read.lookups import row_asked

        return None if callable(self.run) else row_asked(self.run.prepared)

    def result(self) -> Result:
        """Run it."""
        found = self.run() if callable(self.run) else self.run.result()
        return found.read_by(self.name, self.snapshot)
