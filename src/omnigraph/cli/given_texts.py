"""Texts and parameters that a command is given: files, inline text, standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.sources import read_source


def read_text(path: Path, what: str) -> str:
    """The text of a file (`-` is standard input), with an error that says which file and why."""
    return sys.stdin.read() if str(path) == "-" else read_source(path, what).text


def query_text(file: Path | None, inline: str | None) -> str:
    """The query source, from `--query FILE` or `-e TEXT`: exactly one of them."""
    if (file is None) == (inline is None):
        raise BadRequest("give the query either with --query FILE or inline with -e TEXT")
    return inline if inline is not None else read_text(file, "query")  # type: ignore[arg-type]  # exactly one is given


def parameters(text: str | None, file: Path | None) -> dict[str, Any]:
    """Query parameters from `--params JSON` and `--params-file`; the inline ones win."""
    found: dict[str, Any] = {}
    if file is not None:
        found.update(_json_object(read_text(file, "parameter"), f"the parameter file {file}"))
    if text is not None:
        found.update(_json_object(text, "--params"))
    return found


def _json_object(text: str, what: str) -> dict[str, Any]:
    import json

    from omnigraph.schema.floats import parse_float
    from omnigraph.write.decode.json_text import bounded_integer, one_value_per_key

    try:
        value = json.loads(
            text, object_pairs_hook=one_value_per_key, parse_int=bounded_integer, parse_float=parse_float
        )
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"{what} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise BadRequest(f"{what} is nested too deeply") from None
    except ValueError as error:
        raise BadRequest(f"{what} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be a JSON object that maps parameter names to values")
    return value
