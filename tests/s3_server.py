"""The S3 server of the tests: moto's S3 service in a process of its own (`python -m tests.s3_server PORT`).

The program that comes with moto takes 5 ms for a request, opens a connection for each, and lets two conditional puts of
one key both win when they come at the same instant. Here requests are answered one at a time, which makes put-if-absent
and put-if-match as atomic as S3 says they are; connections are kept; and the plain form of what graphs ask for most
(get, head, put, delete, a listing of one page) is answered straight from moto's data. Everything else, every refusal
and every error included, is moto's own answer.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import FakeBucket, FakeKey, S3Backend, s3_backends
from werkzeug.serving import run_simple

_PLAIN_HEADERS = {"HTTP_X_AMZ_DATE", "HTTP_X_AMZ_CONTENT_SHA256", "HTTP_X_AMZ_SECURITY_TOKEN"}
_CONDITIONS = {"HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE"}
_LISTING = {"list-type", "prefix", "delimiter", "start-after"}
_PAGE = 1000
_NOT_FOUND = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back for a request."""

    status: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class PlainRequests:
    """Answers the plain form of the commonest requests; None for anything else. Takes path-style addresses."""

    def __init__(self, backend: S3Backend) -> None:
        self._backend = backend

    def answer(self, environ: dict[str, Any], body: bytes) -> Answer | None:
        """The answer, if the request is as plain as can be."""
        path = environ["PATH_INFO"].encode("latin-1").decode()
        bucket_name, _, key = path.removeprefix("/").partition("/")
        bucket = self._backend.buckets.get(bucket_name)
        if bucket is None or bucket.is_versioned:
            return None
        if any(name.startswith("HTTP_X_AMZ_") and name not in _PLAIN_HEADERS for name in environ):
            return None
        method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
        if method == "GET" and not key and query:
            return _listing(bucket, dict(parse_qsl(query, keep_blank_values=True)))
        if query or not key:
            return None
        if method == "PUT":
            return self._put(bucket, key, environ, body)
        if any(name in environ for name in _CONDITIONS):
            return None
        if method == "DELETE":
            self._backend.delete_object(bucket_name, key)
            return Answer("204 No Content")
        if method in ("GET", "HEAD"):
            return _content(bucket.keys.get(key), environ)
        return None

    def _put(self, bucket: FakeBucket, key: str, environ: dict[str, Any], body: bytes) -> Answer | None:
        if environ.get("HTTP_X_AMZ_CONTENT_SHA256", "").startswith("STREAMING"):
            return None
        current = bucket.keys.get(key)
        if "HTTP_IF_NONE_MATCH" in environ and (environ["HTTP_IF_NONE_MATCH"] != "*" or current is not None):
            return None
        if "HTTP_IF_MATCH" in environ and (current is None or environ["HTTP_IF_MATCH"] != current.etag):
            return None
        made = self._backend.put_object(bucket.name, key, body, storage="STANDARD", disable_notification=True)
        made.set_acl(bucket.acl)
        return Answer("200 OK", (("ETag", made.etag),))


def _content(found: FakeKey | None, environ: dict[str, Any]) -> Answer | None:
    if found is None:
        return Answer("404 Not Found", (("Content-Type", "application/xml"),), _NOT_FOUND)
    headers = (
        ("ETag", found.etag),
        ("Last-Modified", found.last_modified_RFC1123),
        ("Content-Type", "binary/octet-stream"),
        ("Accept-Ranges", "bytes"),
    )
    data = found.value
    wanted = environ.get("HTTP_RANGE")
    if wanted is None:
        return Answer("200 OK", headers, data)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    if not first.isdigit() or not last.isdigit() or int(first) >= len(data):
        return None
    start, end = int(first), min(int(last), len(data) - 1)
    place = ("Content-Range", f"bytes {start}-{end}/{len(data)}")
    return Answer("206 Partial Content", (*headers, place), data[start : end + 1])


def _listing(bucket: FakeBucket, query: dict[str, str]) -> Answer | None:
    if query.get("list-type") != "2" or not query.keys() <= _LISTING or query.get("delimiter") not in (None, "", "/"):
        return None
    prefix, after = query.get("prefix", ""), query.get("start-after", "")
    found: list[str] = []
    folders: set[str] = set()
    for key in sorted(name for name in dict.keys(bucket.keys) if name.startswith(prefix) and name > after):
        head, slash, _ = key[len(prefix) :].partition("/")
        if query.get("delimiter") and slash:
            folders.add(f"{prefix}{head}/")
        else:
            found.append(key)
    if len(found) + len(folders) > _PAGE:
        return None
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
        f"<Name>{bucket.name}</Name><Prefix>{escape(prefix)}</Prefix><MaxKeys>{_PAGE}</MaxKeys>",
        f"<KeyCount>{len(found) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>",
    ]
    for key in found:
        stored = bucket.keys[key]
        parts.append(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{stored.last_modified_ISO8601}</LastModified>"
            f"<ETag>{escape(stored.etag)}</ETag><Size>{stored.size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        )
    parts += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
    body = "".join([*parts, "</ListBucketResult>"]).encode()
    return Answer("200 OK", (("Content-Type", "application/xml"),), body)


class OneAtATime:
    """The WSGI application: requests wait for each other, once their bodies are here."""

    def __init__(self) -> None:
        self._moto = create_backend_app("s3")
        self._plain = PlainRequests(s3_backends[DEFAULT_ACCOUNT_ID]["aws"])
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self._lock:
            answer = self._plain.answer(environ, body)
            if answer is None:
                environ["wsgi.input"] = io.BytesIO(body)
                return list(self._moto(environ, start_response))
        start_response(answer.status, [*answer.headers, ("Content-Length", str(len(answer.body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]


class KeepsConnections(MotoRequestHandler):
    """Answers many requests on one connection and writes no log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, *args: Any) -> None:
        """Say nothing."""


def serve(port: int) -> None:
    """Answer on loopback until the process ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    run_simple("127.0.0.1", port, OneAtATime(), threaded=True, request_handler=KeepsConnections)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
