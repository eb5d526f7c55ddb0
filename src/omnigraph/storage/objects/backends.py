"""Which store holds the objects of a root: a directory, an S3 bucket, or memory for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from obstore.store import LocalStore, MemoryStore, S3Store

from omnigraph.storage.constants import STORE_RETRIES, STORE_RETRY_SECONDS
from omnigraph.storage.objects.endpoints import require_listener
from omnigraph.storage.uri import Root, Scheme

_memory_stores: dict[str, MemoryStore] = {}


def open_backend(root: Root) -> Any:
    """The store of a root, with its credentials and retries. All roots of one name in memory are the same store."""
    if root.scheme is Scheme.LOCAL:
        return LocalStore(prefix=root.path, mkdir=True)
    if root.scheme is Scheme.MEMORY:
        return _memory_stores.setdefault(root.path, MemoryStore())
    options = root.storage_options()
    if endpoint := options.get("aws_endpoint"):
        require_listener(endpoint)
    allow_http = options.get("allow_http", "").lower() in ("true", "1", "yes")
    return S3Store(
        root.bucket,
        prefix=root.prefix or None,
        config={key.removeprefix("aws_"): value for key, value in options.items() if key.startswith("aws_")},
        client_options={"allow_http": True} if allow_http else None,
        retry_config={"max_retries": STORE_RETRIES, "retry_timeout": timedelta(seconds=STORE_RETRY_SECONDS)},
    )
