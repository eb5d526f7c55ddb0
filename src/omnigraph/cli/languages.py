"""Commands about the two languages, without a graph: lint (check) and fmt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.options import Json
from omnigraph.cli.output import Output
from omnigraph.cli.sources import read_text
from omnigraph.errors import BadRequest


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command("lint")(lint)
    app.command("check", hidden=True)(lint)
    app.command("fmt")(fmt)


def lint(
    schema: Annotated[Path, typer.Option("--schema", "-s", help="The schema file (.pg).")],
    query: Annotated[list[Path] | None, typer.Option("--query", help="A query file (.gq); may be repeated.")] = None,
    files: Annotated[list[Path] | None, typer.Argument(help="More query files.")] = None,
    json: Json = False,
) -> None:
    """Check a schema and queries against it, without a graph. Only errors fail.

    Example: omnigraph lint --schema schema.pg --query people.gq
    """
    from omnigraph.query.lint import lint as run_lint

    paths = [*(query or []), *(files or [])]
    sources = {str(path): read_text(path, "query") for path in paths}
    report = run_lint(read_text(schema, "schema"), sources, schema_filename=str(schema))
    out = Output(json=json)
    if json:
        out.document(report.to_json())
    else:
        out.say(report.render())
    if not report.ok:
        raise typer.Exit(1)


def fmt(
    files: Annotated[list[Path], typer.Argument(help="Schema (.pg) and query (.gq) files.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a file would change.")] = False,
    json: Json = False,
) -> None:
    """Format schema and query files in place; comments stay.

    Example: omnigraph fmt schema.pg queries/*.gq
    """
    from omnigraph.query.text.format import format_queries
    from omnigraph.schema.format import format_schema

    formatters = {".pg": format_schema, ".gq": format_queries}
    out = Output(json=json)
    changed: list[str] = []
    for path in files:
        formatter = formatters.get(path.suffix)
        if formatter is None:
            raise BadRequest(f"{path} is neither a schema (.pg) nor a query file (.gq)")
        text = read_text(path, "source")
        formatted = formatter(text, filename=str(path))
        if formatted != text:
            changed.append(str(path))
            if not check:
                path.write_text(formatted, encoding="utf-8")
    if json:
        out.document({"changed": changed, "checked": [str(path) for path in files]})
    else:
        for name in changed:
            out.say(f"{'would change' if check else 'formatted'} {name}")
        out.say(f"{len(files)} files, {len(changed)} {'to change' if check else 'changed'}")
    if check and changed:
        raise typer.Exit(1)
