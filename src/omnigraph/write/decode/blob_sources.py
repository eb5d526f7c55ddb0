"""Blobs that are given by a URI: the bytes are read when the write is prepared, and stored like any other.

What is stored is what the URI gave at that moment; the graph keeps no reference to it. Which places may be read is a
setting, since a program that takes data from others would read its own files for them.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes

from omnigraph.config import settings
from omnigraph.errors import BadRequest
from omnigraph.storage.uri import Root, parse_root, path_of_file_uri

_bases: ContextVar[tuple[Root, ...]] = ContextVar("blob_bases", default=())
"""Places that the graph which is written to may read from, besides what the setting allows to all graphs."""


@contextmanager
def allowing(bases: Sequence[str]) -> Iterator[None]:
    """Let blobs be read from below these URIs for the length of a write."""
    before = _bases.set(tuple(parse_root(base) for base in bases))
    try:
        yield
    finally:
        _bases.reset(before)


def bytes_at(uri: str) -> bytes:
    """The bytes that a URI stands for. Raises ValueError with a sentence; a store that fails raises its own error."""
    scheme = uri.partition(":")[0].lower()
    if scheme == "data":
        return _inline(uri)
    if scheme not in ("file", "s3"):
        raise ValueError(f"a blob is read from data:, file:// or s3://, not from {scheme}:; give the bytes as base64")
    if scheme not in settings().blob_uris.split(",") and not _is_below_a_base(uri):
        if _bases.get():
            places = ", ".join(base.uri for base in _bases.get())
            raise ValueError(f"this graph reads blobs from below {places} only; give the bytes as base64")
        raise ValueError(f"OMNIGRAPH_BLOB_URIS does not allow to read from {scheme}://; give the bytes as base64")
    return _file(uri) if scheme == "file" else _object(uri)


def _is_below_a_base(uri: str) -> bool:
    """Whether a URI names something below a place that this graph may read from, wherever links lead."""
    if ".." in unquote(uri).split("/"):
        return False
    try:
        place = parse_root(uri)
    except BadRequest:
        return False
    path = os.path.realpath(place.path) if place.is_local else place.path
    for base in _bases.get():
        folder = os.path.realpath(base.path) if base.is_local else base.path
        if base.scheme is place.scheme and path.startswith(f"{folder.rstrip('/')}/"):
            return True
    return False


def _inline(uri: str) -> bytes:
    header, comma, body = uri.partition(":")[2].partition(",")
    if not comma:
        raise ValueError("a data: URI has a comma before its content")
    if not header.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote(body), validate=True)
    except ValueError:
        raise ValueError("it is not base64") from None


def _file(uri: str) -> bytes:
    try:
        path = path_of_file_uri(uri)
    except BadRequest:
        path = ""
    if not path.startswith("/"):
        raise ValueError("a file is named by its whole path: file:///path/to/it")
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ValueError("there is no such file") from None
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None


def _object(uri: str) -> bytes:
    from omnigraph.storage.objects.object_errors import ObjectNotFound
    from omnigraph.write.decode.files import read_object

    try:
        return read_object(uri)
    except ObjectNotFound:
        raise ValueError("there is no such object") from None
