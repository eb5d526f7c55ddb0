"""Where a graph lives: one normal form for local paths, `file://`, `s3://` and `memory://`.

Everything below a graph is named by a path relative to its root; only this module knows how such a path becomes an
address for Lance or for the object store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from omnigraph.errors import BadRequest
from omnigraph.storage.constants import STORE_RETRY_SECONDS, TABLE_RETRIES


class Scheme(StrEnum):
    """The kinds of store a graph can live on."""

    LOCAL = "file"
    S3 = "s3"
    MEMORY = "memory"


_TAKEN_AS_IT_IS = re.compile(r"[A-Za-z0-9/._: -]*")
_ONE_SLASH = re.compile(r"(s3a?|file|memory):/", re.IGNORECASE)

_AWS_OPTIONS = {
    "AWS_ENDPOINT_URL_S3": "aws_endpoint",
    "AWS_ENDPOINT_URL": "aws_endpoint",
    "AWS_ENDPOINT": "aws_endpoint",
    "AWS_REGION": "aws_region",
    "AWS_DEFAULT_REGION": "aws_region",
    "AWS_ALLOW_HTTP": "allow_http",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "aws_virtual_hosted_style_request",
}
"""The variables read here, most specific first. Credentials are left to the libraries, which read the usual `AWS_*`
variables, profiles and instance roles themselves, so no secret is held or pickled by us."""


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a graph. `path` is a local directory, `bucket/prefix` on S3, a name in memory."""

    scheme: Scheme
    path: str

    @property
    def uri(self) -> str:
        """The address of the root as people write it: an absolute path, or a URI of the store."""
        return self.path if self.scheme is Scheme.LOCAL else f"{self.scheme.value}://{self.path}"

    @property
    def is_local(self) -> bool:
        """Whether the graph is on a local disk, where the operating system's locks hold."""
        return self.scheme is Scheme.LOCAL

    @property
    def is_inside_a_file(self) -> bool:
        """Whether there is a file at this path or above it, so that nothing can be here.

        Lance takes such a path for a store that does not answer, and goes on asking it for seconds.
        """
        place = Path(self.path)
        return self.is_local and any(above.is_file() for above in (place, *place.parents))

    @property
    def bucket(self) -> str:
        """The bucket on S3."""
        return self.path.partition("/")[0]

    @property
    def prefix(self) -> str:
        """The part below the bucket on S3."""
        return self.path.partition("/")[2]

    def child(self, path: str) -> str:
        """The address of something below the root, for Lance: the one place where our normal form becomes Lance's.

        Lance takes an address with a scheme for a URL and decodes it. It takes a local path as it is, but makes the
        directories of its branches at the percent-encoded path: only `file-object-store://` puts everything where it
        belongs, at the price of somewhat slower reads, so ordinary paths are left as they are.
        """
        relative = clean_path(path)
        base = self.path.rstrip("/")
        whole = f"{base}/{relative}" if relative else base
        if self.scheme is Scheme.LOCAL:
            return whole if _TAKEN_AS_IT_IS.fullmatch(whole) else f"file-object-store://{quote(whole)}"
        return f"{self.scheme.value}://{quote(whole)}"

    def local_child(self, path: str) -> str:
        """The local path of something below the root, for the operating system."""
        return os.path.join(self.path, clean_path(path))

    @property
    def lance_can_branch(self) -> bool:
        """Whether Lance finds its own branches below this root: it takes a `?` anywhere in a path for its end."""
        return "?" not in self.path

    def storage_options(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Options for the store from the usual `AWS_*` variables; empty for local disk and memory."""
        if self.scheme is not Scheme.S3:
            return {}
        values = os.environ if environment is None else environment
        options: dict[str, str] = {}
        for variable, option in _AWS_OPTIONS.items():
            value = values.get(variable)
            if value:
                options.setdefault(option, value)
        if options.get("aws_endpoint", "").startswith("http://"):
            options.setdefault("allow_http", "true")
        options.setdefault("aws_region", "us-east-1")
        options["client_max_retries"] = str(TABLE_RETRIES)
        options["client_retry_timeout"] = str(STORE_RETRY_SECONDS)
        return options


def parse_root(location: str | os.PathLike[str] | Root) -> Root:
    """The normal form of where a graph lives."""
    if isinstance(location, Root):
        return location
    text = os.fspath(location)
    if not text.strip():
        raise BadRequest("the location of the graph is empty: give a path, or a file:// or s3:// URI")
    if "\0" in text:
        raise BadRequest("the location of the graph has a NUL character in it")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator:
        typo = _ONE_SLASH.match(text)
        if typo:
            raise BadRequest(
                f"`{text}` has one slash after `{typo[1]}:` and a URI has two: write {typo[1]}://…, or ./{text} for a "
                "directory of that name"
            )
        return Root(Scheme.LOCAL, os.path.abspath(os.path.expanduser(text)))
    if scheme == "file":
        return Root(Scheme.LOCAL, os.path.abspath(path_of_file_uri(text)))
    if scheme in ("s3", "s3a"):
        bucket, _, prefix = rest.partition("/")
        if not bucket:
            raise BadRequest(f"`{text}` names no bucket: write s3://bucket/prefix")
        relative = clean_path(prefix)
        return Root(Scheme.S3, f"{bucket}/{relative}" if relative else bucket)
    if scheme == "memory":
        return Root(Scheme.MEMORY, clean_path(rest) or "default")
    raise BadRequest(f"`{text}`: graphs live at a local path, file:// or s3://, not at {scheme}://")


def path_of_file_uri(uri: str) -> str:
    """The local path that a `file://` URI names. What follows a `?` or a `#` is part of it, encoded or not."""
    host, slash, path = uri.partition("://")[2].partition("/")
    if host not in ("", "localhost"):
        raise BadRequest(f"`{uri}` names the host `{host}`; a file:// URI needs three slashes: file:///path")
    return unquote(slash + path)


def clean_path(path: str) -> str:
    """A path below a root without empty and `.` segments. One that leaves the root is refused."""
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if ".." in segments or "\0" in path:
        raise BadRequest(f"`{path}` is not a path below the graph")
    return "/".join(segments)
