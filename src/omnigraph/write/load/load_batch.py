"""Load one batch of a stream: once, whoever repeats it, and without the records that break a rule if that is wanted.

A stream goes on for weeks, and one bad record must not end it. With a place for dead letters, records that break a rule
are written there, each with its reasons, and the rest of the batch is loaded. They are written before the batch is
published and under the batch's own name: a loader that dies between the two writes them again, not twice.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.ipc

from omnigraph.errors import ValidationFailed, Violation
from omnigraph.failpoints import declare, failpoint
from omnigraph.ledger.commit.attempts import WriteSession
from omnigraph.ledger.commit.intents import WriteIntent
from omnigraph.ledger.values import MAIN, Snapshot, StreamBatch, WriterKind
from omnigraph.scratch import scratch_folder
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root
from omnigraph.write.load.load import LoadBranch, LoadMode, commit_load, load
from omnigraph.write.results import LoadResult
from omnigraph.write.validate.collector import summary

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

BAD_RECORDS_AT_ONCE = 100_000
"""Bad records of each kind that are found in one go; with more of them the rest of the batch is looked at again."""

declare("batch.letters_written", "The bad records of a batch are in their place, and nothing of it is published")


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that was left out, as it came, and what is wrong with it."""

    record: Any
    reasons: tuple[Violation, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        reasons = [
            {"kind": reason.kind, "table_key": reason.table_key, "property": reason.property, "message": reason.message}
            for reason in self.reasons
        ]
        return {"record": self.record, "reasons": reasons}


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of a batch: the load of what was good, and how many records were left out."""

    load: LoadResult
    bad_records: int = 0


@dataclass
class DeadLetters:
    """The bad records of one batch: one object of JSON lines below `place`, which may be any store."""

    place: str
    batch: StreamBatch
    kept: list[BadRecord] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Where they are, below `place`."""
        return f"{quote(self.batch.stream, safe='')}/batch-{self.batch.batch:09d}.jsonl"

    def add(self, records: Iterable[BadRecord]) -> None:
        """Keep some more, and write all of them."""
        self.kept += records
        about = self.batch.to_json()
        lines = [orjson.dumps(about | record.to_json(), default=_plain) for record in self.kept]
        open_objects(parse_root(self.place)).put(self.path, b"\n".join(lines) + b"\n")

    def forget(self) -> None:
        """Remove what an earlier attempt at this batch has left."""
        open_objects(parse_root(self.place)).delete(self.path)


def load_batch(
    store: GraphStore,
    file: Path,
    batch: StreamBatch,
    *,
    mode: str,
    type: str | None = None,
    src: str | None = None,
    dst: str | None = None,
    columns: Mapping[str, str] | None = None,
    branch: str = MAIN,
    actor: str | None = None,
    bad_records: str | None = None,
) -> BatchResult:
    """Load a batch that lies in a file: one JSON record per line (`.jsonl`), or an Arrow file of one type (`.arrow`).

    With `bad_records`, the place for them, records that break a rule are left out; without, they refuse the batch.
    """
    how: dict[str, Any] = {"mode": mode, "type": type, "src": src, "dst": dst, "columns": columns}
    how |= {"branch": branch, "actor": actor, "batch": batch}
    if bad_records is None:
        try:
            return BatchResult(load(store, str(file), **how))
        except ValidationFailed as refused:
            raise _told(refused, batch) from None
    letters = DeadLetters(bad_records, batch)
    if not _has_batch(store, branch, batch):
        letters.forget()
    with scratch_folder("batch") as directory:
        for attempt in count():
            try:
                loaded = load(store, str(file), kept_violations=BAD_RECORDS_AT_ONCE, **how)
                return BatchResult(loaded, len(letters.kept))
            except ValidationFailed as refused:
                reasons = _by_record(refused.violations)
                if not reasons:
                    raise _told(refused, batch) from None
                if _has_batch(store, branch, batch):
                    # Somebody else came through with this batch, so its records are there already and not bad.
                    continue
                rest = directory / f"{attempt}{file.suffix}"
                letters.add(_taken_out(file, rest, reasons))
                file = rest
                failpoint("batch.letters_written")
    raise AssertionError("unreachable")


def pass_batch(store: GraphStore, batch: StreamBatch, *, branch: str = MAIN, actor: str | None = None) -> LoadResult:
    """A batch that changes nothing: a commit says that the branch has it."""

    def prepare(snapshot: Snapshot, session: WriteSession, counts: dict[str, int]) -> WriteIntent:
        return session.intent(WriterKind.LOAD, snapshot, (), changes_data=False)

    with LoadBranch(store, branch, None, actor) as target:
        return commit_load(store, target, LoadMode.APPEND, prepare, batch=batch)


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _told(refused: ValidationFailed, batch: StreamBatch) -> ValidationFailed:
    """The same with places in the batch: nobody else knows the file that it was put into on the way."""
    violations = [replace(violation, source=None) for violation in refused.violations]
    return type(refused)(summary(str(batch), violations, refused.counts), violations, refused.counts)


def _has_batch(store: GraphStore, branch: str, batch: StreamBatch) -> bool:
    return store.manifest.read(store.branch(branch, "load")).has_batch(batch)


def _by_record(violations: Collection[Violation]) -> dict[int, tuple[Violation, ...]]:
    found: dict[int, tuple[Violation, ...]] = {}
    for violation in violations:
        if violation.record is not None:
            found[violation.record] = (*found.get(violation.record, ()), violation)
    return found


def _taken_out(file: Path, rest: Path, reasons: Mapping[int, tuple[Violation, ...]]) -> list[BadRecord]:
    """The records of a file with these numbers; the others go to `rest`."""
    if file.suffix == ".arrow":
        return _rows_taken_out(file, rest, reasons)
    found: list[BadRecord] = []
    with file.open("rb") as lines, rest.open("wb") as good:
        for number, line in enumerate(lines, 1):
            if number in reasons:
                found.append(BadRecord(_as_it_came(line), reasons[number]))
            else:
                good.write(line)
    return found


def _as_it_came(line: bytes) -> Any:
    """The text of a record. One that is no JSON stands in its line as a string."""
    return orjson.loads(line) if line.startswith(b'"') else line.decode(errors="replace").rstrip("\n")


def _rows_taken_out(file: Path, rest: Path, reasons: Mapping[int, tuple[Violation, ...]]) -> list[BadRecord]:
    found: list[BadRecord] = []
    with pa.memory_map(str(file)) as source:
        reader = pyarrow.ipc.open_file(source)
        with pyarrow.ipc.new_file(str(rest), reader.schema) as good:
            number = 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                numbers = range(number + 1, number + 1 + batch.num_rows)
                bad = [n in reasons for n in numbers]
                number += batch.num_rows
                rows = batch.filter(pa.array(bad, pa.bool_())).to_pylist()
                told = [reasons[n] for n in numbers if n in reasons]
                found += [BadRecord(row, why) for row, why in zip(rows, told, strict=True)]
                good.write_batch(batch.filter(pa.array([not b for b in bad], pa.bool_())))
    return found
