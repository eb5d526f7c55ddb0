"""The file that describes one version of a fork, with its bases at another place.

Such a file ends in the encoded description of the version and a footer that says where the description begins. What
comes before it (indexes, the transaction) is found by its position from the start and stays as it is.
"""

from __future__ import annotations

import struct

from omnigraph.storage.handles.base_paths import table_address, with_bases_at

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")


def relocated(data: bytes, uri: str, branch: str) -> bytes | None:
    """The file of a version of the fork at `uri`, with the addresses that its bases have now; None when it has them."""
    position, *_, magic = _FOOTER.unpack(data[-_FOOTER.size :])
    if magic != _MAGIC:
        raise ValueError("the file does not end as the description of a version does")
    start = position + _LENGTH.size
    (length,) = _LENGTH.unpack(data[position:start])
    description = data[start : start + length]
    changed = with_bases_at(description, table_address(uri, branch), branch)
    if changed == description:
        return None
    return data[:position] + _LENGTH.pack(len(changed)) + changed + data[start + length :]
