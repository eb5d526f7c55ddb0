"""Whether anybody listens where an object store is said to be.

Requests to a store are repeated for half a minute, since one that is busy is well again by then. A wrong address never
is, and whoever mistyped it should not wait that long for the news.
"""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from omnigraph.errors import StorageError, StorageKind

_PATIENCE = 5.0
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_answered: set[str] = set()


def require_listener(endpoint: str) -> None:
    """Refuse an endpoint at which nobody listens. One that has answered once is not asked again in this process.

    Other trouble is left to the requests themselves, and so is everything where a proxy stands between.
    """
    address = urlsplit(endpoint)
    if endpoint in _answered or address.hostname is None or _has_proxy():
        return
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), timeout=_PATIENCE).close()
    except OSError as error:
        is_unknown = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
        if is_unknown or isinstance(error, ConnectionRefusedError):
            raise StorageError(
                f"nobody listens at {endpoint}, where the object store is said to be (AWS_ENDPOINT_URL): "
                f"{error.strerror}. Mend the address, or start the store, and try again",
                StorageKind.TRANSIENT,
            ) from None
        return
    _answered.add(endpoint)


def _has_proxy() -> bool:
    return any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES)
