"""The rounds of a campaign: start writers, do something bad, recover, check every promise."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from omnigraph.errors import OmniGraphError
from omnigraph.ledger.branches.branches import create_branch
from omnigraph.ledger.commit.window import lease_name
from omnigraph.ledger.recovery.recover import recover_all
from omnigraph.ledger.store import GraphStore, open_store
from omnigraph.ledger.values import BranchRef
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.repair import repair
from omnigraph.maintain.verify import verify
from tests.campaign.workers import KINDS, write_on
from tests.faults.harness import join, start_child
from tests.faults.invariants import check_history, check_pins_are_heads
from tests.faults.writers import COMPANY, KNOWS, PERSON, content, new_graph, put_company
from tests.ledger.places import let_leases_run_out


@dataclass
class Campaign:
    """One graph under attack. `counts` is what the report shows; `broken` are promises that were not kept."""

    uri: str
    journal: Path
    seed: int
    writers_at_once: int = 3
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    cleaned: bool = False
    damaged: str | None = None
    writers_endpoint: str | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        with new_graph(self.uri) as store:
            create_branch(store, "review")
            started = time.monotonic()
            put_company(store, "first")
            # A round lasts for some writes, however slow the store is.
            self.longest_round = max(0.5, 2 * self.writers_at_once * (time.monotonic() - started))
        self.is_local = "://" not in self.uri

    def round(self, number: int) -> None:
        """Some writers at work, each with its own end; then recovery and checks."""
        children = [self._start(number, one) for one in range(self.writers_at_once)]
        if self.chance.random() < 0.85:
            # Otherwise they die while they open.
            self._wait_until_at_work(number, children)
        time.sleep(self.chance.uniform(0.0, self.longest_round))
        if self.chance.random() < 0.3:
            self._pause(self.chance.choice(children))
        for child in children:
            time.sleep(self.chance.uniform(0.0, 0.15))
            if child.exitcode is None:
                child.kill()
                self.counts["kills"] += 1
            end = join(child)
            if end != -signal.SIGKILL:
                self.broken.append(f"round {number}: a writer ended by itself with {end}")
            assert child.pid is not None
            let_leases_run_out(self.uri, child.pid)
        self.damaged = None
        try:
            if self.chance.random() < 0.3:
                self._damage()
            self._check(number)
        except Exception as failure:
            self.broken.append(f"round {number}, damage {self.damaged}: {type(failure).__name__} {failure}")
        self.counts["rounds"] += 1

    def _start(self, number: int, one: int) -> BaseProcess:
        kind = self.chance.choice(KINDS)
        cause = self.chance.choice(["ENOSPC", "EDQUOT", "EIO", "EMFILE"]) if self.chance.random() < 0.3 else None
        self.counts[f"writers: {kind}"] += 1
        self.counts["starved writers"] += cause is not None
        self.cleaned = self.cleaned or kind == "cleanup"
        with pytest.MonkeyPatch.context() as patch:
            if self.writers_endpoint is not None:
                patch.setenv("AWS_ENDPOINT_URL", self.writers_endpoint)
            return start_child(write_on, self.uri, kind, f"r{number}w{one}", str(self.journal), cause)

    def _wait_until_at_work(self, number: int, children: list[BaseProcess]) -> None:
        deadline = time.monotonic() + 20
        marks = [Path(f"{self.journal}.r{number}w{one}") for one in range(len(children))]
        while time.monotonic() < deadline and not all(mark.exists() for mark in marks):
            if all(child.exitcode is not None for child in children):
                return
            time.sleep(0.01)

    def _pause(self, child: BaseProcess) -> None:
        """Stop a writer, let its leases run out and somebody else recover, and let it go on for a while."""
        if child.exitcode is not None or child.pid is None:
            return
        os.kill(child.pid, signal.SIGSTOP)
        self.counts["pauses"] += 1
        try:
            if not self.is_local:
                let_leases_run_out(self.uri, child.pid)
                open_store(self.uri).close()
            time.sleep(0.1)
        except OmniGraphError as error:
            self.counts[f"open beside a paused writer: {type(error).__name__}"] += 1
        finally:
            os.kill(child.pid, signal.SIGCONT)
        time.sleep(0.3)

    def _damage(self) -> None:
        """Damage something that can be mended without a copy, and mend it."""
        with open_store(self.uri, read_only=True) as store:
            kind = self.chance.choice(["log", "sidecar", "manifest"])
            pending = store.sidecars.list()
            if kind == "log":
                store.objects.delete_prefix("_graph_commits.lance/data")
            elif kind == "sidecar" and pending:
                store.objects.put(f"__recovery/{pending[0]}.json", b"{ torn")
            elif kind == "manifest" and not pending:
                newest = min(
                    entry.path for entry in store.objects.list("__manifest/_versions") if "manifest" in entry.path
                )
                hint = store.objects.head("__manifest/_versions/latest_version_hint.json")
                if hint is not None:
                    store.objects.delete(hint.path)
                store.objects.delete(newest)
            else:
                return
        self.damaged = kind
        self.counts[f"damage: {kind}"] += 1
        with open_store(self.uri) as store:
            # What a lost intent had moved is put back: published as it stands it could be half of a write.
            done = repair(store, confirm=True, force=True, restore=kind == "sidecar")
            self.counts["repairs"] += bool(done.log or done.heads or done.pending or done.tables)

    def _check(self, number: int) -> None:
        with open_store(self.uri) as store:
            left = store.sidecars.list()
            assert left == [], f"an unfinished write is left: {_why_left(store, left)}"
            if not self.is_local:
                # A writer that slept through its own recovery may have landed one commit after it. The next write of
                # that table, or a repair, puts it back without being forced to; nothing else may need that.
                self.counts["commits that came too late"] += len(repair(store, confirm=True).tables)
            check_pins_are_heads(store)
            self._check_journal(store)
            if number % 10 == 9:
                report = verify(store, deep=self.is_local)
                self.counts["verified"] += 1
                assert report.ok, report.findings[:3]
            if not self.cleaned:
                check_history(store)
            if number % 40 == 39:
                cleanup(store, keep_versions=20, confirm=True)
                self.cleaned = True
                self.counts["cleanups"] += 1
            self.counts["recovered writes"] = len(store.audit.list())
            self.counts["commits"] = len(store.commits.graph())

    def _check_journal(self, store: GraphStore) -> None:
        """Everything that was acknowledged is there, and no write is there by half."""
        noted = [line.split("\t") for line in _lines(self.journal)]
        main, review = content(store), content(store, "review")
        people = {"main": {row[0] for row in main[PERSON]}, "review": {row[0] for row in review[PERSON]}}
        companies = {row[0] for row in main[COMPANY]}
        for kind, item in noted:
            if kind == "gone":
                assert item not in companies, f"deleted and there again: {item}"
                continue
            shown = companies if kind in ("company", "merge") else people["review" if "branch" in kind else "main"]
            assert item in shown, f"acknowledged and not there: {kind} {item}"
        for name, tables in (("main", main), ("review", review)):
            friends = {row[2] for row in tables[KNOWS]}
            assert friends == {one for one in people[name] if "-" in str(one)}, f"half a write on {name}"
        self.counts["acknowledged writes"] = len(noted)


def _why_left(store: GraphStore, left: list[str]) -> str:
    """What stands in the way of each write that an open did not resolve, for who reads the report."""
    told = []
    for operation_id in left:
        stored = store.sidecars.get(operation_id)
        if stored is None:
            told.append(f"{operation_id} went meanwhile")
            continue
        sidecar, deferred = stored.sidecar, store.sidecars.deferred
        named = BranchRef(sidecar.branch, sidecar.incarnation, None)
        told.append(
            f"{sidecar.kind} {operation_id} on {sidecar.branch}, owner {sidecar.owner}, window held by "
            f"{store.leases.is_live(lease_name(named))}, deferred {deferred}"
        )
    return f"{'; '.join(told)}; once more: {recover_all(store)}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def report(campaign: Campaign, minutes: float, extra: dict[str, int]) -> str:
    """The result as Markdown."""
    lines = [f"| what | count |\n|---|---|\n| minutes | {minutes:.1f} |"]
    lines += [f"| {name} | {count} |" for name, count in sorted({**campaign.counts, **extra}.items())]
    told = Counter(line.split(" ", 1)[0] for line in _lines(Path(f"{campaign.journal}.errors")))
    lines += [f"| told to writers: {name} | {count} |" for name, count in sorted(told.items())]
    lines.append(f"| promises broken | {len(campaign.broken)} |")
    return "\n".join([*lines, *campaign.broken])
