"""Every number an operator may want to turn, in one place, each with its reason and its environment variable.

`settings()` reads the environment once per process. Tests and embedding programs use `override(...)`. Numbers that are
part of a format on disk are plain constants below: changing them is a migration, not a setting.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.errors import BadRequest

INTERNAL_MANIFEST_SCHEMA_VERSION: Final = 4
"""The layout of `__manifest` that this program writes. Older ones are walked forward, newer ones are refused."""

SIDECAR_SCHEMA_VERSION: Final = 1
"""The layout of `__recovery/<ulid>.json`. A newer one is left for a newer program."""

_UNITS_OF_TIME: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNITS_OF_SIZE: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError(f"`{text}` is not a whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is not a number")
    return value


def parse_duration(text: str) -> float:
    """Seconds from `7d`, `12h`, `30m`, `45s`, `250ms` or a bare number of seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?\s*", text)
    if not found:
        raise ValueError(f"`{text}` is not a length of time such as 7d, 12h, 30m or 45s")
    return float(found[1]) * _UNITS_OF_TIME[found[2] or "s"]


def parse_size(text: str) -> int:
    """Bytes from `4g`, `512m`, `64k` (also written `4GiB`, `4GB`) or a bare number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    if not found:
        raise ValueError(f"`{text}` is not a size such as 4g, 512m or 64k")
    return int(float(found[1]) * _UNITS_OF_SIZE[found[2]])


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"`{text}` is not one of {', '.join(allowed)}")
        return text.lower()

    return parse


def _schemes(text: str) -> str:
    wanted = [part.strip().lower() for part in text.split(",")]
    unknown = [scheme for scheme in wanted if scheme not in ("data", "file", "s3")]
    if unknown:
        raise ValueError(f"`{unknown[0]}` is not one of data, file, s3")
    return ",".join(wanted)


def _from_environment(default: Any, variable: str, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"variable": variable, "parse": parse})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of this process. Field by field: what it bounds, and why the default is what it is."""

    publisher_retry_budget: int = _from_environment(5, "OMNIGRAPH_PUBLISHER_RETRY_BUDGET", _whole)
    """How often a publish that lost its race is tried again. Windows make conflicts rare: five is never reached."""

    commit_log_retry_budget: int = _from_environment(20, "OMNIGRAPH_COMMIT_LOG_RETRY_BUDGET", _whole)
    """How often an append to the commit log is tried again: all branches share the log, so races are ordinary."""

    commit_log_tail_rows: int = _from_environment(256, "OMNIGRAPH_COMMIT_LOG_TAIL_ROWS", _whole)
    """The log's last fragment is rewritten until it has this many rows, so that 10 000 commits are 40 fragments."""

    commit_log_delay: float = _from_environment(0.2, "OMNIGRAPH_COMMIT_LOG_DELAY", parse_duration)
    """Seconds that a small write to `main` may be acknowledged before it is in the commit log, so that those which come
    close together are logged together (four times as long while other processes write too); 0 logs each before it is
    acknowledged. The commit itself is durable at once."""

    commit_log_prune_every: int = _from_environment(32, "OMNIGRAPH_COMMIT_LOG_PRUNE_EVERY", _whole)
    """Old versions of the commit log are removed each time this many have piled up."""

    manifest_cache: int = _from_environment(64, "OMNIGRAPH_MANIFEST_CACHE", _whole)
    """Manifest states kept in memory. They are immutable; one costs a few hundred bytes per table."""

    maintenance_concurrency: int = _from_environment(8, "OMNIGRAPH_MAINTENANCE_CONCURRENCY", _whole)
    """Tables that optimize and cleanup work on at once."""

    merge_stage_batch_rows: int = _from_environment(8192, "OMNIGRAPH_MERGE_STAGE_BATCH_ROWS", _whole)
    """Rows per batch when a merge stages its result: memory stays flat whatever the size of the merge."""

    merge_granularity: str = _from_environment("row", "OMNIGRAPH_MERGE_GRANULARITY", _choice("row", "property"))
    """How fine the changes are that can collide in a merge that is not told: a whole `row`, or one `property` of it."""

    cleanup_grace: float = _from_environment(7 * 86400.0, "OMNIGRAPH_CLEANUP_GRACE", parse_duration)
    """Seconds that an unreferenced file or fork is left alone, since its writer may be about to publish it."""

    auto_compact_fragments: int = _from_environment(64, "OMNIGRAPH_AUTO_COMPACT_FRAGMENTS", _whole)
    """Small fragments a table may collect before its tail is compacted after a write; 0 switches that off."""

    topology_cache: int = _from_environment(8, "OMNIGRAPH_TOPOLOGY_CACHE", _whole)
    """Adjacency structures of edge tables kept in memory, each bound to one pinned version."""

    traversal_mode: str | None = _from_environment(None, "OMNIGRAPH_TRAVERSAL_MODE", _choice("indexed", "csr"))
    """`indexed` or `csr` forces how edges are followed; unset decides by cost."""

    column_cache: int = _from_environment(512 << 20, "OMNIGRAPH_COLUMN_CACHE", parse_size)
    """Bytes of whole columns that reads keep in memory."""

    read_cache: int = _from_environment(1536 << 20, "OMNIGRAPH_READ_CACHE", parse_size)
    """Bytes that reads of all graphs keep in memory together: columns, ids, adjacency. What was last used stays."""

    index_cache: int = _from_environment(512 << 20, "OMNIGRAPH_INDEX_CACHE", parse_size)
    """Bytes of opened indexes that Lance keeps in memory for one graph; they outlive writes to the tables."""

    metadata_cache: int = _from_environment(128 << 20, "OMNIGRAPH_METADATA_CACHE", parse_size)
    """Bytes of what Lance knows of versions and files that it keeps in memory for one graph. Every commit adds some."""

    lease_seconds: float = _from_environment(30.0, "OMNIGRAPH_LEASE_SECONDS", parse_duration)
    """How long a lease on an object store lasts without being renewed. On local disk the system's locks decide."""

    lease_renewal_seconds: float = _from_environment(10.0, "OMNIGRAPH_LEASE_RENEWAL_SECONDS", parse_duration)
    """How often a held lease is renewed: two renewals may fail before it runs out."""

    lease_wait_seconds: float = _from_environment(20.0, "OMNIGRAPH_LEASE_WAIT_SECONDS", parse_duration)
    """How long a writer or maintenance waits for somebody alive before it gives up with a retryable error."""

    queue_wait_seconds: float = _from_environment(120.0, "OMNIGRAPH_QUEUE_WAIT_SECONDS", parse_duration)
    """How long a writer waits behind others of its process while none of them ends. They are mostly done in
    milliseconds; a large load that prepares again may take many seconds."""

    queued_load_bytes: int = _from_environment(1 << 20, "OMNIGRAPH_QUEUED_LOAD_BYTES", parse_size)
    """Loads up to this size wait for their turn before they are prepared, like mutations; larger ones prepare first."""

    combined_writes: int = _from_environment(128, "OMNIGRAPH_COMBINED_WRITES", _whole)
    """The most mutations that one combined commit takes along; it bounds how long the first of them waits."""

    checksums: str = _from_environment("local", "OMNIGRAPH_CHECKSUMS", _choice("local", "all", "off"))
    """Where commits record checksums of the files they publish: on `local` disk, on `all` stores, or nowhere (`off`).
    An object store checks what it keeps by itself, and reading a file back would cost a request."""

    check_files: str = _from_environment("off", "OMNIGRAPH_CHECK_FILES", _choice("off", "all"))
    """`all` compares each file with its recorded checksum before it is first read in a process."""

    engine: str = _from_environment("auto", "OMNIGRAPH_ENGINE", _choice("auto", "local", "spark"))
    """Which engine runs bulk work; `auto` decides by size, against the two thresholds below."""

    spark_load_bytes: int = _from_environment(4 << 30, "OMNIGRAPH_SPARK_LOAD_BYTES", parse_size)
    """From this size of input on, `auto` loads on Spark. In process 343 MB take 5 s on two cores."""

    spark_rows: int = _from_environment(50_000_000, "OMNIGRAPH_SPARK_ROWS", _whole)
    """From this many rows in the touched tables on, `auto` merges, diffs and queries on Spark."""

    spark_active_factor: float = _from_environment(0.1, "OMNIGRAPH_SPARK_ACTIVE_FACTOR", _number)
    """Both thresholds are multiplied by this when a Spark session is already active in the process."""

    blob_uris: str = _from_environment("data,file,s3", "OMNIGRAPH_BLOB_URIS", _schemes)
    """Where a blob that is given by a URI may be read from. A program that writes for others allows `data` only."""

    query_memory: int = _from_environment(4 << 30, "OMNIGRAPH_QUERY_MEMORY", parse_size)
    """Bytes that one query may hold before it is refused as over its limit."""


OTHER_VARIABLES: Final[Mapping[str, str]] = {
    "OMNIGRAPH_STORE": "The graph of a command that is given no URI, as `--store` would name it.",
    "OMNIGRAPH_ACTOR": "The actor that commits of the command line are recorded for, as `--as` would name it.",
    "OMNIGRAPH_POLICY": "The policy file that commands are under, as `--policy` would name it.",
    "OMNIGRAPH_SERVER": "The server of a command that names no graph, as `--server` would name it.",
    "OMNIGRAPH_PROFILE": "The profile of a command, as `--profile` would name it.",
    "OMNIGRAPH_OUTPUT": "How rows are written, as `--format` would name it; `json` is for every command on a graph.",
    "OMNIGRAPH_TOKEN_<SERVER>": "The token for a server of the configuration, its name in capitals.",
    "OMNIGRAPH_TOKEN": "The token for a server that is named by a URL which the configuration does not have.",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "Of a server: a file with `{actor: token}`, JSON.",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "Of a server: the same, in the variable itself.",
    "OMNIGRAPH_SERVER_BEARER_TOKEN": "Of a server: one token, of the actor `default`.",
    "OMNIGRAPH_TARGET_URI": "Of a server: the graph to serve.",
    "OMNIGRAPH_CLUSTER": "Of a server: the cluster to serve instead, by its folder or its storage.",
    "OMNIGRAPH_QUERIES": "Of a server: its stored queries, as `--queries` would name them.",
    "OMNIGRAPH_BIND": "Of a server: HOST:PORT to listen on.",
    "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "Of a server: requests of one actor under way, 16 by default.",
    "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "Of a server: bytes of one actor's requests that are held, 4g by default.",
    "OMNIGRAPH_SERVER_QUERY_TIMEOUT": "Of a server: the longest that a read may take, 60s by default.",
    "OMNIGRAPH_SERVER_DRAIN": "Of a server: how long requests may go on when it is told to stop, 30s by default.",
    "OMNIGRAPH_SERVER_READ_THREADS": "Of a server: reads that run at once in each process, 16 by default.",
    "OMNIGRAPH_SERVER_WRITE_THREADS": "Of a server: writes under way at once in each process, 64 by default.",
    "OMNIGRAPH_LOG": "Of a server: the level of its log, `INFO` by default.",
    "OMNIGRAPH_SPARK_MASTER": "The Spark master of a session that is built here: `local[*]` when nothing is set.",
    "OMNIGRAPH_SPARK_CONF": "Settings of a session that is built here: `spark.a=1,spark.b=2`.",
    "PYSPARK_PYTHON": "The Python of Spark workers on a cluster; on a local master they run the driver's.",
    "OMNIGRAPH_EMBEDDING_PROVIDER": "Which provider makes vectors: `openai-compatible`, `gemini`, `local`, `mock`.",
    "OMNIGRAPH_EMBEDDING_BASE_URL": "Where an `openai-compatible` or `gemini` provider answers.",
    "OMNIGRAPH_EMBEDDING_MODEL": "The model of texts whose property names none.",
    "OMNIGRAPH_EMBEDDING_API_KEY": "The key of the provider. It is never written down nor shown.",
    "OMNIGRAPH_EMBEDDING_DEADLINE": "How long one request may take with all its repetitions: `60s` when unset.",
    "OMNIGRAPH_EMBEDDING_TIMEOUT": "How long one try may take: `20s` when unset.",
    "OMNIGRAPH_EMBEDDING_BATCH": "The most texts of one request: 64 when unset.",
    "OMNIGRAPH_EMBEDDING_CALLS_PER_SECOND": "The provider's limit on requests: none when unset.",
    "OMNIGRAPH_EMBEDDING_PARALLEL": "Requests to the provider that are under way at once: 4 when unset.",
    "OMNIGRAPH_EMBEDDING_ON_WRITE": "`off`: loads and mutations make no vectors, only `embed` does.",
    "OMNIGRAPH_FAILPOINTS": "For tests: makes a crash happen at a named place, on the command line too.",
    "AWS_*": "Endpoint, region and credentials of `s3://`, as every other program reads them.",
}
"""Variables that are no numbers to turn, each read where it is needed."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings that an environment describes; a value that makes no sense is an error that names its variable."""
    values: dict[str, Any] = {}
    for entry in dataclasses.fields(Settings):
        text = environment.get(entry.metadata["variable"], "").strip()
        if not text:
            continue
        try:
            value = entry.metadata["parse"](text)
        except ValueError as error:
            raise BadRequest(f"{entry.metadata['variable']}: {error}") from None
        if not isinstance(value, str) and value < 0:
            raise BadRequest(f"{entry.metadata['variable']}: `{text}` is below zero")
        values[entry.name] = value
    return Settings(**values)


_lock = threading.Lock()
_current: Settings | None = None


def settings() -> Settings:
    """The settings of this process, read from the environment the first time."""
    global _current
    if _current is None:
        with _lock:
            if _current is None:
                _current = read_settings(os.environ)
    return _current


@contextmanager
def override(**values: Any) -> Iterator[Settings]:
    """Other settings for the duration of a `with` block, in the whole process."""
    global _current
    before = settings()
    _current = dataclasses.replace(before, **values)
    try:
        yield _current
    finally:
        _current = before
