"""Many clients on one server for a while: mixed reads and writes, then the account of it.

python -m benchmarks.soak_server [--minutes 10] [--clients 200] [--workers 1] [--combine]

Exits with 1 when an acknowledged write is lost, when there was a 500, or when memory went on growing to the end. A
client that gets no answer within its patience, or whose connection breaks, is counted and goes on: its write may be
there or not.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

import omnigraph as og
from benchmarks.bench_server import ALL, INSERT, READ, SCHEMA, served

PATIENCE = 120.0
"""Seconds that a client waits for an answer."""

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What all clients share: they talk to loopback."""


@dataclass
class Account:
    """What happened."""

    reads: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    """Writes that were acknowledged when the memory was looked at."""
    unanswered: int = 0


async def client(url: str, number: int, end: float, account: Account) -> None:
    """One client: eight reads to two writes, one request at a time."""
    draw = random.Random(number)
    # Every client would read the certificates of this machine anew, with everybody's answers waiting meanwhile.
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, verify=NO_CERTIFICATES) as http:
        for turn in itertools.count():
            if time.monotonic() > end:
                return
            slug = f"c{number}-{turn}"
            writes = draw.random() < 0.2
            path, query = ("/mutate", INSERT) if writes else ("/query", READ)
            started = time.perf_counter()
            try:
                answer = await http.post(path, json={"query": query, "params": {"s": slug}})
            except httpx.TransportError:
                account.unanswered += 1
                continue
            (account.writes if writes else account.reads).append(time.perf_counter() - started)
            account.statuses[answer.status_code] = account.statuses.get(answer.status_code, 0) + 1
            if writes and answer.status_code == 200:
                account.acknowledged.append(slug)
            if answer.status_code in (429, 503):
                await asyncio.sleep(float(answer.headers.get("Retry-After", "1")) * draw.random())


async def watch(end: float, account: Account) -> None:
    """The memory of the server's processes, in MB, every few seconds."""
    while time.monotonic() < end:
        account.memory.append(_memory_below(os.getpid()))
        account.written.append(len(account.acknowledged))
        await asyncio.sleep(2)


def _memory_below(parent: int) -> int:
    lines = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout
    table = [tuple(map(int, line.split())) for line in lines.splitlines()]
    below = {parent}
    for _ in range(4):
        below |= {pid for pid, above, _ in table if above in below}
    return sum(rss for pid, _, rss in table if pid in below and pid != parent) // 1024


def main() -> int:
    """Run it and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--combine", action="store_true", help="let mutations that wait share their commits")
    options = parser.parse_args()
    account = Account()
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "g.omni")
        og.init(uri, schema=SCHEMA).close()
        with served(uri, options.workers, *(["--combine"] if options.combine else [])) as url:
            end = time.monotonic() + options.minutes * 60

            async def everybody() -> None:
                clients = [client(url, number, end, account) for number in range(options.clients)]
                await asyncio.gather(watch(end, account), *clients)

            asyncio.run(everybody())
            with og.connect(url) as graph:
                there = {row["p.slug"] for row in graph.query(ALL)}
    lost = set(account.acknowledged) - there
    second = account.memory[len(account.memory) // 2 :] or [0]
    growing = len(second) > 10 and statistics.mean(second[-5:]) > 1.5 * statistics.mean(second[:5])
    for name, times in (("reads", account.reads), ("writes", account.writes)):
        if len(times) > 1:
            cuts = statistics.quantiles(times, n=100)
            p50, p99, worst = (f"{seconds * 1000:.1f} ms" for seconds in (cuts[49], cuts[98], max(times)))
            print(f"{name}: {len(times)}, p50 {p50}, p99 {p99}, worst {worst}")
    print(f"statuses: {account.statuses}, unanswered within {PATIENCE:.0f} s: {account.unanswered}")
    print(f"acknowledged writes: {len(account.acknowledged)}, lost: {len(lost)}")
    steps = [account.memory[len(account.memory) * part // 10] for part in range(10)] if account.memory else []
    if len(second) > 10:
        rise = statistics.mean(second[-5:]) - statistics.mean(second[:5])
        writes = account.written[-3] - account.written[len(account.memory) // 2 + 2]
        print(f"memory in the second half: {rise:+.1f} MB, {rise * 1024 / max(writes, 1):+.2f} kB for each write")
    print(f"memory in MB, from tenth to tenth of the time: {steps}, at most {max(account.memory, default=0)}")
    return 1 if lost or account.statuses.get(500) or growing else 0


if __name__ == "__main__":
    sys.exit(main())
