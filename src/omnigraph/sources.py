"""Texts of queries and schemas as callers give them, and the parameters of a query."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.diagnostics import UNNAMED
from omnigraph.errors import BadRequest, LanguageError, NotFound


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and the file it came from."""

    text: str
    filename: str = UNNAMED


def query_source(source: str | os.PathLike[str]) -> Source:
    """A query given as text, or as the path of a `.gq` file: a Path is always one, a text never."""
    if isinstance(source, str):
        return Source(source)
    if isinstance(source, os.PathLike):
        return read_source(source, "query")
    raise BadRequest(f"a query is a text, or the Path of a file with queries, not {type(source).__name__}")


def schema_source(schema: str | os.PathLike[str]) -> Source:
    """A schema given as text, or as the path of a `.pg` file. Text has a brace or several lines; a path has none."""
    if isinstance(schema, str) and ("{" in schema or "\n" in schema or not schema.strip()):
        return Source(schema)
    if not isinstance(schema, str | os.PathLike):
        raise BadRequest(f"a schema is a text, or the path of a file, not {type(schema).__name__}")
    return read_source(schema, "schema")


def read_source(path: str | os.PathLike[str], what: str) -> Source:
    """The text of a file, with an error that says which file and why."""
    try:
        return Source(Path(path).read_text(encoding="utf-8-sig"), os.fspath(path))
    except FileNotFoundError:
        raise NotFound(f"the {what} file {path} does not exist") from None
    except IsADirectoryError:
        raise BadRequest(f"the {what} {path} is a directory; a file is needed") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"the {what} file {path} is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadRequest(f"the {what} file {path} cannot be read: {reason}") from None


@contextmanager
def named_in_errors(filename: str) -> Iterator[None]:
    """Errors in the language of a text name the file it came from."""
    try:
        yield
    except LanguageError as error:
        if filename == UNNAMED or not error.filename.startswith("<"):
            raise
        raise type(error)(error.diagnostics, error.source, filename) from None


def gathered(
    method: str, text: str, params: Mapping[str, Any] | None, more: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a query, from `params` and from keywords.

    `own` are the method's own arguments as they were given. A keyword that is one of them is that argument; when the
    query has a parameter of the same name, and `params` does not give it, nobody can tell which of the two was meant.
    """
    if params is not None and not isinstance(params, Mapping):
        raise BadRequest(f"{method}: params is a mapping of parameter names to values, not {type(params).__name__}")
    given = dict(params or {})
    twice = sorted(given.keys() & more.keys())
    if twice:
        raise BadRequest(f"{method}: the parameter `{twice[0]}` is given twice, in params and as a keyword")
    for name in sorted(own):
        if own[name] is not None and name not in given and f"${name}" in text:
            _refuse_clash(method, text, name, own)
    return {**given, **more}


def _refuse_clash(method: str, text: str, name: str, own: Mapping[str, Any]) -> None:
    from omnigraph.query.text.parse import parse_queries

    queries = parse_queries(text).queries
    wanted = own.get("name")
    names = {query.name.text for query in queries}
    if name == "name" and wanted in names:
        return
    chosen = [query for query in queries if wanted not in names or query.name.text == wanted]
    for query in chosen:
        if name in {parameter.variable.name for parameter in query.parameters}:
            raise BadRequest(
                f"{method}: `{name}` is an argument of {method}() and a parameter of the query `{query.name.text}`; "
                f'give the parameter by params={{"{name}": …}}'
            )
