"""Any name as one safe path segment, and back.

Branch, tag and lease names may hold `/`, spaces and other characters that mean something to a file system or an object
store. Percent signs are re-interpreted by some stores, so `=` is the escape character.
"""

from __future__ import annotations

from urllib.parse import quote, unquote


def encode_name(name: str) -> str:
    """`name` as one path segment of letters, digits, `.`, `-`, `_`, `~` and `=XX` escapes."""
    encoded = quote(name, safe="").replace("%", "=")
    # `.` and `..` mean a directory, and a leading dot hides a file from some tools.
    return "=2E" + encoded[1:] if encoded.startswith(".") else encoded


def decode_name(segment: str) -> str:
    """The name that `encode_name` was given."""
    return unquote(segment.replace("=", "%"), errors="strict")
