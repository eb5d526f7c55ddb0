"""Where blobs of a graph may be read from: bases that neither overlap nor escape, so that no graph reads another's."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from omnigraph.errors import BadRequest
from omnigraph.storage.uri import Root, Scheme, parse_root


def parse_base(text: str) -> Root:
    """The place that a base names; `BadRequest` for one that escapes, or is of no kind that blobs are read from."""
    parts = urlsplit(text)
    if parts.scheme not in ("s3", "file") or "://" not in text:
        raise BadRequest(f"`{text}`: a base is s3://bucket/path/ or file:///path/")
    if "@" in parts.netloc:
        raise BadRequest("a base holds no credentials; those come from AWS_* variables of the server")
    if ".." in unquote(parts.path).split("/") or parts.query or parts.fragment:
        raise BadRequest(f"`{text}` leaves its place: a base has no `..`, `?` or `#` in it")
    if not text.endswith("/"):
        raise BadRequest(f"`{text}`: a base is a folder and ends with a slash")
    root = parse_root(text)
    if root.scheme is Scheme.LOCAL and root.path == "/":
        raise BadRequest(f"`{text}` is the whole disk")
    return root


def overlap(one: Root, other: Root) -> bool:
    """Whether one of two places lies within the other, or both are the same."""
    if one.scheme is not other.scheme:
        return False
    first, second = f"{one.path.rstrip('/')}/", f"{other.path.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)
