"""Blobs as text: base64 for the bytes themselves, or a URI that says where they are."""

from __future__ import annotations

import base64
import binascii
import re

BASE64_MARK = "base64:"
"""What other tools of this kind write before the base64 text of a blob."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def parse_blob(text: str) -> bytes | str:
    """The bytes of a base64 text, or the URI itself. Raises ValueError with a sentence."""
    if text.startswith(BASE64_MARK):
        text = text.removeprefix(BASE64_MARK)
    elif _URI.fullmatch(text):
        return text
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("a blob is given as base64 text or as a URI such as s3://bucket/key") from error
