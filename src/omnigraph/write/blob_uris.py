"""Blobs that are given by a URI: the bytes are read when the write is prepared, and stored like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.query import ir
from omnigraph.query.typing import BLOB
from omnigraph.write.decode.values import BadValue, blob_bytes


def with_blob_bytes(params: Mapping[str, Any], declared: Sequence[ir.Parameter]) -> Mapping[str, Any]:
    """Parameter values in which every blob that is given by a URI is replaced by its bytes."""
    blobs = [parameter.name for parameter in declared if parameter.type == BLOB]
    if not any(isinstance(params[name], str) for name in blobs):
        return params
    return {**params, **{name: read_blob_uri(params[name]) for name in blobs if isinstance(params[name], str)}}


def read_blob_uri(uri: str) -> bytes:
    """The bytes that a URI stands for."""
    try:
        return blob_bytes(uri)
    except BadValue as problem:
        raise BadRequest(f"the blob {uri!r} cannot be taken: {problem.why}") from None
