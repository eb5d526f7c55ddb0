"""An append that was staged and is not committed yet.

Another writer may come first. Then it goes on from there, with the checks against what is committed by now, instead of
being decoded and written again: a large load ends beside small writers, and they wait for the checks at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import LeaseLost, RecoveryRequired, WriteInDoubt
from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.values import Snapshot, WriterKind
from omnigraph.write.load.load_append import AddingLoad
from omnigraph.write.progress import ProgressReporter
from omnigraph.write.validate.collector import ViolationCollector


class Appended:
    """The append of one load, once it is staged. A context manager: what was not published is removed at the end."""

    def __init__(self) -> None:
        self._work: AddingLoad | None = None
        self._counts: dict[str, int] = {}

    def note(self, work: AddingLoad, counts: Mapping[str, int]) -> None:
        """This was staged."""
        self._work, self._counts = work, dict(counts)

    def can_go_on(self, snapshot: Snapshot, session: WriteSession) -> bool:
        """Whether what was staged can be committed on this state; if not, it is removed."""
        if self._work is not None and self._work.can_go_on(snapshot, session.branch):
            return True
        self.discard()
        return False

    def go_on(
        self, snapshot: Snapshot, session: WriteSession, counts: dict[str, int], progress: ProgressReporter
    ) -> WriteIntent | None:
        """Check it against this state and stage it there."""
        assert self._work is not None
        progress.tell("check")
        writes = self._work.onto(snapshot, session, ViolationCollector())
        counts.update(self._counts)
        progress.tell("commit")
        return session.intent(WriterKind.LOAD, snapshot, writes, reads=self._work.reads) if writes else None

    def discard(self) -> None:
        """Remove the files of what was staged."""
        if self._work is not None:
            self._work.discard()
            self._work = None

    def __enter__(self) -> Appended:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # Of a write that is unresolved everything is needed by who resolves it.
        if error is not None and not isinstance(error, RecoveryRequired | WriteInDoubt | LeaseLost):
            self.discard()
