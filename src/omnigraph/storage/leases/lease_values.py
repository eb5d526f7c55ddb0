"""What a lease says of its holder, and what every way of keeping leases can do."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from dataclasses import dataclass
from typing import Protocol

import orjson

from omnigraph.storage.constants import LEASE_CLOCK_SKEW_SECONDS, LEASE_RENEWAL_SECONDS, LEASE_SECONDS
from omnigraph.storage.objects.path_segments import encode_name

_LONGEST_FILE_NAME = 180


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """Who holds a lease. `expires_at` is None for a lock of the operating system, which dies with its process."""

    name: str
    owner: str
    token: int
    host: str
    process: int
    acquired_at: float
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long leases on an object store last and how often they are renewed; tests shorten them."""

    lease_seconds: float = LEASE_SECONDS
    renewal_seconds: float = LEASE_RENEWAL_SECONDS
    clock_skew_seconds: float = LEASE_CLOCK_SKEW_SECONDS


class Held(Protocol):
    """What a kind of lease knows to do while it is held."""

    info: LeaseInfo

    def still_ours(self) -> bool: ...

    def seen_within(self, seconds: float) -> bool: ...

    def release(self) -> None: ...


class LeaseKeeper(Protocol):
    """One way to keep leases: locks of the operating system, or objects with an expiry."""

    def try_acquire(self, name: str, owner: str, wait: float, *, again: bool = False) -> Held | None: ...

    def holder(self, name: str) -> LeaseInfo | None: ...

    def must_wait(self, name: str) -> bool: ...

    def holders(self, prefix: str) -> list[LeaseInfo]: ...

    def take_away(self, name: str) -> None: ...

    def sweep(self) -> int: ...

    def close(self) -> None: ...


def new_info(name: str, owner: str, earlier_token: int, lease_seconds: float | None) -> LeaseInfo:
    """Who we are, with the next token."""
    now = time.time()
    return LeaseInfo(
        name=name,
        owner=owner,
        token=max(earlier_token + 1, time.time_ns() // 1000),
        host=socket.gethostname(),
        process=os.getpid(),
        acquired_at=now,
        expires_at=None if lease_seconds is None else now + lease_seconds,
    )


def encode_info(info: LeaseInfo) -> bytes:
    """A lease as it is stored."""
    return orjson.dumps(info)


def decode_info(data: bytes) -> LeaseInfo | None:
    """A lease as it was stored; None for anything else, such as a file that its maker had no time to fill."""
    with contextlib.suppress(orjson.JSONDecodeError, TypeError):
        fields = orjson.loads(data)
        if isinstance(fields, dict):
            return LeaseInfo(**fields)
    return None


def file_name(name: str) -> str:
    """A lease's name as a file name; a long one ends in a digest, since file systems allow 255 bytes."""
    encoded = encode_name(name)
    if len(encoded) <= _LONGEST_FILE_NAME:
        return encoded
    return f"{encoded[:100]}~{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}"
