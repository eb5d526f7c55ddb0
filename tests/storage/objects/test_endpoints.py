"""An address at which nobody listens is told at once; everything else is left to the requests."""

from __future__ import annotations

import socket
import time

import pytest

from omnigraph.errors import StorageError, StorageKind
from omnigraph.storage.objects.endpoints import require_listener
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.uri import parse_root


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address of this machine at which nobody listens."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_an_address_at_which_nobody_listens_is_told_at_once(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", nobody)
    started = time.monotonic()
    with pytest.raises(StorageError, match=f"nobody listens at {nobody}, .*AWS_ENDPOINT_URL") as refused:
        open_objects(parse_root("s3://bucket/graph")).get("a")
    assert refused.value.storage_kind is StorageKind.TRANSIENT
    assert time.monotonic() - started < 5


def test_an_address_that_has_answered_is_not_asked_again(nobody: str) -> None:
    port = int(nobody.rsplit(":", 1)[1])
    with socket.create_server(("127.0.0.1", port)):
        require_listener(nobody)
    require_listener(nobody)


def test_behind_a_proxy_nobody_is_asked(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    require_listener(nobody)
