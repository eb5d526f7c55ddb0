"""Many writers for long: threads and processes that write, read, merge and keep up one graph, with invariants checked.

python -m benchmarks soak_writers [--minutes 10] [--writers 16] [--processes 4] [--at URI]

Every acknowledged write is noted; at the end each is there once, nothing else is, every commit is in the log with its
parent, and `verify --deep` finds nothing. Meanwhile readers check that a snapshot is whole (each write makes a person
and an edge from it in one commit), that history only grows, and that who was acknowledged is there at once; upkeep
verifies the graph in every round. The last line says whether it passed, and what was counted; how long writes took is
told for the threads of the one process and for the other processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.config import override
from omnigraph.errors import OmniGraphError

SCHEMA = """
node Person { slug: String @key age: I32? }
node City { slug: String @key visits: I64? }
edge LivesIn: Person -> City @card(0..1)
"""
ARRIVE = (
    "query arrive($s: String, $c: String) { insert Person { slug: $s, age: 1 } insert LivesIn { from: $s, to: $c } }"
)
LEAVE = "query leave($s: String) { delete Person where slug = $s }"
VISIT = "query visit($c: String, $a: I64, $b: I64) { update City set { visits: $b } where slug = $c and visits = $a }"
READ = "query one($s: String) { match { $c: City { slug: $s } } return { $c.visits as v } }"
PEOPLE = "query people() { match { $p: Person } return { count($p) as n } }"
HOMES = "query homes() { match { $p: Person $c: City $p livesIn $c } return { count($p) as n } }"
CITIES = 4
RETRYABLE = ("busy",)


class Journal:
    """What was acknowledged: who arrived, who left, how often each city was visited; and what went wrong."""

    def __init__(self) -> None:
        self.people: set[str] = set()
        self.visits: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []
        self.waits: list[float] = []

    def to_json(self) -> dict[str, object]:
        """For the process that started this one."""
        return {
            "people": sorted(self.people),
            "visits": self.visits,
            "done": self.done,
            "errors": self.errors,
            "waits": self.waits,
        }


def writer(graph: og.Graph, name: str, until: float, journal: Journal) -> None:
    """Arrive, leave and visit, until the time is over."""
    dice = random.Random(name)
    mine: list[str] = []
    for number in range(10**9):
        if time.monotonic() > until:
            return
        began = time.monotonic()
        try:
            kind = dice.choice(("arrive", "arrive", "leave", "visit"))
            city = f"c{dice.randrange(CITIES)}"
            if kind == "visit":
                seen = graph.query(READ, s=city).rows()[0]["v"]
                done = graph.mutate(VISIT, c=city, a=seen, b=seen + 1).affected_nodes
                journal.visits[city] += done
            elif kind == "leave" and mine:
                gone = mine.pop(dice.randrange(len(mine)))
                graph.mutate(LEAVE, s=gone)
                journal.people.discard(gone)
            else:
                slug = f"{name}-{number}"
                graph.mutate(ARRIVE, s=slug, c=city)
                journal.people.add(slug)
                mine.append(slug)
                if number % 8 == 0 and graph.entity("Person", slug) is None:
                    journal.errors.append(f"{name}: {slug} was acknowledged and is not there")
            journal.done[kind] += 1
        except OmniGraphError as error:
            journal.errors.append(f"{name}: {type(error).__name__}: {error}")
        journal.waits.append(time.monotonic() - began)


def reader(graph: og.Graph, until: float, journal: Journal) -> None:
    """In every snapshot as many people as homes, and none older than the one before."""
    seen = 0
    while time.monotonic() < until:
        found = graph.head()
        if found.manifest_version < seen:
            journal.errors.append(f"the head went back from version {seen} to {found.manifest_version}")
        seen, head = found.manifest_version, found.graph_commit_id
        people, homes = (graph.query(query, at=head).rows()[0]["n"] for query in (PEOPLE, HOMES))
        if people != homes:
            journal.errors.append(f"at {head} there are {people} people and {homes} homes")
        journal.done["read"] += 1
        time.sleep(0.05)


def merger(graph: og.Graph, name: str, until: float, journal: Journal) -> None:
    """Branch, write there, merge, delete the branch."""
    for number in range(10**9):
        if time.monotonic() > until:
            return
        slug, branch = f"{name}-{number}", f"review/{name}/{number}"
        try:
            graph.branch_create(branch, "main")
            graph.mutate(ARRIVE, s=slug, c="c0", branch=branch)
            graph.merge(branch, into="main", delete_source=True)
            journal.people.add(slug)
            journal.done["merge"] += 1
        except OmniGraphError as error:
            if error.kind not in RETRYABLE:
                journal.errors.append(f"{name}: {type(error).__name__}: {error}")


def upkeep(graph: og.Graph, until: float, journal: Journal) -> None:
    """Optimize, clean up and verify all the time."""
    while time.monotonic() < until:
        try:
            graph.optimize("main", engine="local")
            graph.cleanup(keep_versions=50, confirm=True)
            if not (found := graph.verify()).ok:
                journal.errors.append(f"verify: {found}")
            journal.done["upkeep"] += 1
        except OmniGraphError as error:
            if error.kind not in RETRYABLE:
                journal.errors.append(f"upkeep: {type(error).__name__}: {error}")
        time.sleep(0.5)


def work(uri: str, name: str, seconds: float, writers: int, combine: bool, all_kinds: bool) -> Journal:
    """The threads of one process."""
    until = time.monotonic() + seconds
    journals: list[Journal] = []

    def start(function: Callable[..., None], *args: object) -> threading.Thread:
        journal = Journal()
        journals.append(journal)
        thread = threading.Thread(target=function, args=(*args, until, journal))
        thread.start()
        return thread

    with og.open(uri) as graph, og.open(uri, combine=combine) as writing:
        running = [start(writer, writing, f"{name}-{number}") for number in range(writers)]
        running.append(start(reader, graph))
        if all_kinds:
            running += [start(reader, graph), start(merger, graph, f"{name}-m"), start(upkeep, graph)]
        for thread in running:
            thread.join()
    whole = Journal()
    for journal in journals:
        whole.people |= journal.people
        whole.visits += journal.visits
        whole.done += journal.done
        whole.errors += journal.errors
        whole.waits += journal.waits
    return whole


def soak(uri: str, minutes: float, writers: int, processes: int) -> dict[str, Any]:
    """Run everything and check the end; a report with counts."""
    with og.init(uri, schema=SCHEMA) as graph:
        graph.load([{"type": "City", "data": {"slug": f"c{n}", "visits": 0}} for n in range(CITIES)], mode="append")
    seconds = minutes * 60
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak_writers", "--child", uri, f"q{number}", str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    own = work(uri, "p", seconds, writers, combine=False, all_kinds=True)
    people, visits, done, errors = set(own.people), own.visits, own.done, own.errors
    others: list[float] = []
    load = os.getloadavg()[1]
    for child in children:
        told = json.loads(child.communicate()[0])
        people |= set(told["people"])
        visits += Counter(told["visits"])
        done += Counter(told["done"])
        errors += told["errors"]
        others += told["waits"]
    with og.open(uri) as graph:
        found = {row["s"] for row in graph.query("query q() { match { $p: Person } return { $p.slug as s } }").rows()}
        cities = graph.query("query q() { match { $c: City } return { $c.slug as s, $c.visits as v } }").rows()
        counted = Counter({row["s"]: row["v"] for row in cities if row["v"]})
        return {
            "done": dict(done),
            "errors": errors[:10],
            "error_count": len(errors),
            "load": round(load, 1),
            "waits": {"threads": _spread(own.waits), "processes": _spread(others)},
            "lost": sorted(people - found)[:10],
            "unexplained": sorted(found - people)[:10],
            "visits_agree": counted == visits,
            "verified": graph.verify(deep=True).ok,
            "commits": len(graph.log()),
        }


def _spread(waits: list[float]) -> dict[str, float]:
    """How long writes took, in seconds."""
    cuts = statistics.quantiles(waits, n=100) if len(waits) > 1 else waits * 99
    return {"median": round(cuts[49], 2), "p99": round(cuts[98], 2), "longest": round(max(waits), 2)} if waits else {}


def verdict(report: dict[str, Any]) -> str:
    """One line: whether everything holds, and how much was done."""
    wrong = {name: report[name] for name in ("lost", "unexplained", "errors") if report[name]}
    wrong |= {name: False for name in ("visits_agree", "verified") if not report[name]}
    done = ", ".join(f"{count} {name}" for name, count in sorted(report["done"].items()))
    waits = ", ".join(f"{who} {told}" for who, told in report["waits"].items())
    told = f"{done}; {report['commits']} commits; seconds of a write: {waits}; load {report['load']}"
    return f"FAIL {wrong}; {told}" if wrong else f"PASS {told}; none lost, none twice, no error"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the soak and print its report; 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak_writers")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--at", help="where to make the graph; a temporary directory by default")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    with override(cleanup_grace=3600.0):
        if options.child:
            uri, name, seconds = options.child
            print(json.dumps(work(uri, name, float(seconds), 2, combine=True, all_kinds=False).to_json()))
            return
        with tempfile.TemporaryDirectory() as directory:
            place = options.at or str(Path(directory) / "soak.omni")
            report = soak(place, options.minutes, options.writers, options.processes)
    print(json.dumps(report, indent=2))
    print(verdict(report))
    sys.exit(0 if verdict(report).startswith("PASS") else 1)


if __name__ == "__main__":
    main()
