"""The numbers of the storage layer, each with its reason."""

from __future__ import annotations

from typing import Final

OPERATION_ID_PROPERTY: Final = "omnigraph.operation_id"
"""The transaction property that says which write a commit of a table belongs to."""

ID_COLUMN: Final = "id"
"""The column that every table of a type is keyed by."""

FILE_FORMAT: Final = "2.2"
"""The newest stable Lance file format that supports blobs."""

HANDLE_CACHE_SIZE: Final = 256
"""Open table handles kept. One costs some kilobytes; a graph of 100 types on two branches fits."""

LEDGER_PREFIX: Final = "_"
"""Tables whose locations begin so are the ledger's. Tables of rows lie below `nodes/` and `edges/`."""

LEDGER_METADATA_CACHE: Final = 8 << 20
"""Bytes of what Lance knows of the tables of the ledger: their last few hundred versions. Older ones are read again."""

LEDGER_INDEX_CACHE: Final = 1 << 20
"""The same for their indexes. They have none, and Lance takes note of that for each version."""

LEASE_SECONDS: Final = 30.0
"""How long a lease on an object store lasts without being renewed."""

LEASE_RENEWAL_SECONDS: Final = 10.0
"""How often a held lease is renewed: two renewals may fail before it runs out."""

LEASE_CLOCK_SKEW_SECONDS: Final = 2.0
"""How far the clocks of two machines may differ before a lease is taken from a live holder."""

LEASE_WAIT_SECONDS: Final = 20.0
"""How long `acquire` waits for a lease that somebody alive holds."""

STORE_RETRIES: Final = 30
"""How often a request to an object store is tried again before it fails. The pauses begin with a tenth of a second and
grow slowly: after six of them one or two seconds have passed, which is less than a store is busy for."""

TABLE_RETRIES: Final = 12
"""The same for requests of Lance, which has several tries at each of its own and so takes three times as long."""

STORE_RETRY_SECONDS: Final = 30
"""How long such retries may take in all. The libraries' own default would keep a caller waiting for minutes when the
address is wrong."""

LOCKS_DIRECTORY: Final = "__locks"
"""Leases live here, on every kind of store."""

OS_LOCK_DIRECTORY: Final = "__locks/os"
"""Lock files of the operating system, on local disk only; never listed as objects."""

TOLD_SUFFIX: Final = ".told"
"""Ends the names of files beside them by which processes tell each other what they published."""

IDS_PER_INDEX_LOOKUP: Final = 5_000
"""More ids than this are looked up by one streaming scan when they are a good part of the table (`SCAN_SHARE`)."""

SCANNED_TIMES_THE_IDS: Final = 8
"""A scan for many ids is tested in parts of so many times as many rows at most: each test hashes all ids anew."""

SCANNED_PART_BYTES: Final = 128 << 20
"""Larger parts than this have no more rows than there are ids."""

SCAN_SHARE: Final = 0.04
"""Above this share of a table's rows, one scan beats that many index look-ups (measured: 100 000 of 200 000 ids by
index 820 ms, by scan 40 ms; 10 000 of 200 000 about the same)."""

LOOKUP_SCAN_SHARE: Final = 0.0002
"""The same for other columns than the id (`src` and `dst` above all): a value has several rows, and each of them lies
somewhere else."""

FEW_LOOKUPS: Final = 200
"""So few values of such a column are always looked up."""

ROWS_PER_FILE: Final = 1024 * 1024
"""The largest number of rows in one data file."""
