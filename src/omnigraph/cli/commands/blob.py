"""`omnigraph blob …`: the bytes of a blob."""

from __future__ import annotations

import sys
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from omnigraph.cli.calling import Call, graph_command
from omnigraph.cli.options import At
from omnigraph.errors import BadRequest

PIECE = 1 << 20
"""Bytes that are held at once."""

blob = typer.Typer(help="Read blobs.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.add_typer(blob, name="blob")


@graph_command(blob, "get", branch=True)
def get(
    call: Call,
    type: Annotated[str, typer.Argument(help="The type of the node or edge.")],
    id: Annotated[str, typer.Argument(help="Its id.")],
    property: Annotated[str, typer.Argument(help="The property that holds the blob.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; standard output otherwise.")
    ] = None,
    start: Annotated[int, typer.Option("--start", help="The first byte, from 0 on.", min=0)] = 0,
    end: Annotated[int | None, typer.Option("--end", help="The byte to stop before.", min=0)] = None,
    at: At = None,
) -> None:
    """Write the bytes of a blob, or of a part of it, to a file or to standard output.

    Example: omnigraph blob get Document report-7 body graph.omni --out report.pdf
    """
    if call.out.json and out is None:
        raise BadRequest("blob get: --json is about the file that is written; name it with --out")
    with call.read_branch() as graph, graph.open_blob(type, id, property, at=at) as source:
        size = source.seek(0, 2)
        stop = size if end is None else min(end, size)
        if end is not None and end < start:
            raise BadRequest(f"blob get: bytes {start} to {end} are no range; the end is not included")
        source.seek(min(start, stop))
        if out is None:
            _copy(source, sys.stdout.buffer, stop - min(start, stop))
            sys.stdout.buffer.flush()
            return
        try:
            with out.open("wb") as file:
                _copy(source, file, stop - min(start, stop))
        except OSError as error:
            raise BadRequest(f"blob get: {out} cannot be written: {error.strerror}") from error
    written = stop - min(start, stop)
    if call.out.json:
        call.out.document(
            {"type": type, "id": id, "property": property, "size": size, "written": written, "path": str(out)}
        )
    else:
        call.out.say(f"wrote {written} of {size} bytes to {out}")


def _copy(source: BinaryIO | BufferedReader, target: BinaryIO | BufferedWriter, count: int) -> None:
    while count:
        piece = source.read(min(count, PIECE))
        target.write(piece)
        count -= len(piece)
