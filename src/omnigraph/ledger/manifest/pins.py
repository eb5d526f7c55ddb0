"""The pins of a snapshot as a few bytes, for the commit log.

Most commits move one or two tables, so a commit stores what differs from its first parent, and every
`CHECKPOINT_EVERY` commits the whole set: history stays small, and any commit's pins are a short walk away.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import astuple

import orjson

from omnigraph.ledger.values import TablePin

CHECKPOINT_EVERY = 32

Pins = Mapping[str, TablePin]


def encode_pins(pins: Pins, base: Pins | None, files: Mapping[str, str] | None = None) -> bytes:
    """`pins` as bytes: whole when `base` is None, otherwise what changed, came and went since `base`.

    `files` are the checksums of the files that the commit added; they travel along.
    """
    more = {"files": dict(files)} if files else {}
    if base is None:
        return _pack({"pins": [astuple(pins[key]) for key in sorted(pins)], **more})
    changed = [astuple(pins[key]) for key in sorted(pins) if base.get(key) != pins[key]]
    return _pack({"pins": changed, "gone": sorted(base.keys() - pins.keys()), **more})


def decode_files(data: bytes) -> dict[str, str]:
    """The checksums that `encode_pins` was given."""
    return dict(orjson.loads(zlib.decompress(data)).get("files", {}))


def decode_pins(data: bytes, base: Pins | None) -> dict[str, TablePin]:
    """The pins again. `base` is what `encode_pins` was given."""
    content = orjson.loads(zlib.decompress(data))
    pins = dict(base or {})
    for key in content.get("gone", ()):
        pins.pop(key, None)
    for values in content["pins"]:
        pin = TablePin(*values)
        pins[pin.table_key] = pin
    return {key: pins[key] for key in sorted(pins)}


def _pack(content: Mapping[str, object]) -> bytes:
    return zlib.compress(orjson.dumps(content), 6)
