"""Forks of a graph that was moved or copied: where they look for what they share with their parents.

Lance writes the address of a fork's parents into each of its versions (`base_paths`), as it was when the fork was made.
Behind a copied graph that is the original: a read would go there, and serve rows that are not the copy's. So nothing
rests on these addresses: a graph knows its own root, every line is opened here, and one whose bases lie elsewhere is
opened with a description that says where they lie now. Nothing is written for that. Versions that are committed on such
a handle have the right addresses; `relocating` brings older ones into order on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import lance
from lance.dataset import LanceDataset

from omnigraph.errors import StorageError, StorageKind

_BASE_PATHS = 18
_BRANCH = 20
_NAME, _PATH = 2, 4
_NESTED = 2
_ENCODED_QUESTION_MARK = "%3F"
_UNNAMED_FORK = re.compile(r"(.*)/tree/([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of an encoded message: its number, its bytes with the key, and its content where it is nested."""

    number: int
    whole: bytes
    content: bytes | None


def open_line(
    uri: str,
    branch: str | None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    session: lance.Session | None = None,
) -> LanceDataset:
    """Open one line of a table by its own address, newest version by default; its bases are this table's own lines."""
    options = dict(storage_options) if storage_options else None
    opened = lance.dataset(uri, version=version, storage_options=options, session=session)
    return at_home(opened, uri, branch, options, session) or opened


def at_home(
    opened: LanceDataset,
    uri: str,
    branch: str | None,
    storage_options: dict[str, str] | None,
    session: lance.Session | None,
) -> LanceDataset | None:
    """The same version with its bases where they are now; None when the handle says so already."""
    if branch is None:
        return None
    table = table_address(uri, branch)
    if all(base.path == _address_now(table, base.name, base.path) for base in opened.base_paths().values()):
        return None
    return LanceDataset(
        uri,
        version=int(opened.version),
        storage_options=storage_options,
        session=session,
        serialized_manifest=with_bases_at(opened._ds.serialized_manifest(), table, branch),
    )


def table_address(uri: str, branch: str) -> str:
    """The address of the table that a fork with this address belongs to."""
    return uri.removesuffix(f"/tree/{branch}")


def with_bases_at(manifest: bytes, table: str, branch: str) -> bytes:
    """The encoded description of a version of a fork, with its bases at the lines of the table at this address.

    It bears the fork's name where Lance can find its branches, and none below a path with a `?`, where it cannot
    (`cloned_forks`).
    """
    name = b"" if _ENCODED_QUESTION_MARK in table else _nested(_BRANCH, branch.encode())
    changed: list[bytes] = []
    for field in _fields(manifest):
        if field.number == _BASE_PATHS and field.content is not None:
            changed.append(_nested(_BASE_PATHS, _moved_base(field.content, table)))
        elif field.number == _BRANCH:
            changed.append(name)
            name = b""
        else:
            changed.append(field.whole)
    return b"".join((*changed, name))


def _moved_base(base: bytes, table: str) -> bytes:
    fields = list(_fields(base))
    texts = {field.number: field.content.decode() for field in fields if field.content is not None}
    moved = _address_now(table, texts.get(_NAME), texts.get(_PATH, ""))
    return b"".join(_nested(_PATH, moved.encode()) if field.number == _PATH else field.whole for field in fields)


def _address_now(table: str, name: str | None, written: str) -> str:
    """Where a base lies now that was at `written`: the line of that name, or the main line, of this table."""
    directory = table.rsplit("/", 1)[-1]
    if name:
        parent = written.removesuffix(f"/tree/{name}")
        if parent != written and parent.rsplit("/", 1)[-1] == directory:
            return f"{table}/tree/{name}"
    elif written.rsplit("/", 1)[-1] == directory:
        return table
    else:
        # A fork below a path with a `?`, which Lance knows by no name.
        unnamed = _UNNAMED_FORK.fullmatch(written)
        if unnamed and unnamed[1].rsplit("/", 1)[-1] == directory:
            return f"{table}/tree/{unnamed[2]}"
    raise StorageError(
        f"a branch of the table {table} shares files with {written}, which is no line of this table: that place is not "
        "touched. Restore the graph from a copy",
        StorageKind.PERMANENT,
        path=table,
    )


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of an encoded protobuf message, in their order."""
    position = 0
    while position < len(message):
        start = position
        key, position = _number(message, position)
        content: bytes | None = None
        match key & 7:
            case 0:
                _, position = _number(message, position)
            case 1:
                position += 8
            case 2:
                size, position = _number(message, position)
                content = message[position : position + size]
                position += size
            case 5:
                position += 4
            case kind:
                raise ValueError(f"a field of the unknown kind {kind} in the description of a version")
        yield _Field(key >> 3, message[start:position], content)


def _number(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def _nested(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | _NESTED) + _encoded(len(content)) + content


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
