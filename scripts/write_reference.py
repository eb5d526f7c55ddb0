"""Writes the reference that comes from the code: errors, settings, failpoints, functions. A test keeps it true."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import omnigraph
from omnigraph import config, errors, failpoints
from omnigraph.query.codes import MEANINGS
from omnigraph.query.functions.table import FUNCTIONS, Function, NullRule
from omnigraph.schema.codes import MIGRATION_CODES, SCHEMA_CODES

DOCS = Path(__file__).resolve().parents[1] / "docs"


def errors_page() -> str:
    """Every kind of error and every code of the two languages."""
    out = [
        "# Errors",
        "",
        "Every error has a stable *kind*. One table says how it shows: the HTTP status and `code` of a response, and "
        "the exit code of the command line (0 is done, 2 is wrong usage).",
        "",
        "| kind | HTTP status | `code` | exit code |",
        "|---|---|---|---|",
    ]
    out += [f"| `{kind}` | {o.http_status} | `{o.code}` | {o.exit_code} |" for kind, o in errors.OUTCOMES.items()]
    out += [
        "",
        "## Classes",
        "",
        "In Python all of them are below `omnigraph.errors.OmniGraphError`.",
        "",
        "| class | kind | meaning |",
        "|---|---|---|",
    ]
    for name, found in sorted(vars(errors).items()):
        if inspect.isclass(found) and issubclass(found, errors.OmniGraphError) and found is not errors.OmniGraphError:
            out.append(f"| `{name}` | `{found.kind}` | {_first_line(found)} |")
    out += ["", "## Codes of the schema language", "", *_codes(SCHEMA_CODES)]
    out += ["", "## Codes of migrations", "", *_codes(MIGRATION_CODES)]
    out += ["", "## Codes of the query language", "", *_codes(MEANINGS)]
    return "\n".join(out) + "\n"


def settings_page() -> str:
    """Every setting with its variable and default."""
    source = inspect.getsource(config.Settings)
    reasons = dict(re.findall(r"^    (\w+): .*?\n    \"\"\"(.*?)\"\"\"", source, re.MULTILINE | re.DOTALL))
    out = [
        "# Settings",
        "",
        "Read from the environment once per process. Times are written `7d`, `12h`, `30m`, `45s`; sizes `4g`, `512m`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for field in dataclasses.fields(config.Settings):
        reason = " ".join(reasons.get(field.name, "").split())
        out.append(f"| `{field.metadata['variable']}` | {_default(field.default)} | {reason} |")
    return "\n".join(out) + "\n"


def query_reference_page() -> str:
    """The reference of the query language, with the table of functions as the code has it."""
    page = (DOCS / "query-reference.md").read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- functions -->")
    _, _, after = rest.partition("<!-- end of functions -->")
    return f"{before}<!-- functions -->\n{_functions()}<!-- end of functions -->{after}"


def _functions() -> str:
    groups = dict.fromkeys(function.group for function in FUNCTIONS.values())
    rules = "Null among the arguments makes the result null, unless it says otherwise. `?` is optional, `...` repeats."
    out = ["", rules]
    for group in groups:
        out += ["", f"### {group}", "", "| function | meaning | examples |", "|---|---|---|"]
        out += [_function_row(each) for each in FUNCTIONS.values() if each.group == group]
    return "\n".join(out) + "\n\n"


def _function_row(function: Function) -> str:
    signatures = "<br>".join(f"`{signature.text}`" for signature in function.signatures)
    meaning = function.doc
    if function.null is not NullRule.STRICT:
        meaning += f" {function.null.value.capitalize()}."
    if function.errors:
        meaning += f" An error if {function.errors}."
    examples = "<br>".join(
        f"`{each.expression}` {'is an error' if each.gives is None else f'= `{each.gives}`'}"
        for each in function.examples
    )
    return f"| {signatures} | {meaning} | {examples} |"


def failpoints_page() -> str:
    """Every failpoint with where it sits."""
    for module in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        if not module.name.startswith(("omnigraph.spark", "omnigraph.cli")):
            importlib.import_module(module.name)
    out = [
        "# Failpoints",
        "",
        "Named places between two steps that a crash could separate. Off, they cost one look at a flag.",
        "`OMNIGRAPH_FAILPOINTS` turns them on: `name=raise`, `name=kill` (the process kills itself), `name=pause:FILE`",
        "(waits until the file exists), `name=sleep:SECONDS`; `raise:N` and `kill:N` act at the N-th hit only. Several",
        "are separated by `;`.",
        "",
        "| failpoint | where |",
        "|---|---|",
    ]
    out += [f"| `{name}` | {where} |" for name, where in sorted(failpoints.KNOWN.items())]
    return "\n".join(out) + "\n"


PAGES = {
    "errors.md": errors_page,
    "settings.md": settings_page,
    "developers/failpoints.md": failpoints_page,
    "query-reference.md": query_reference_page,
}


def _first_line(found: type) -> str:
    return (found.__doc__ or "").strip().splitlines()[0]


def _default(value: object) -> str:
    return f"`{value}`" if value is not None else "not set"


def _codes(codes: object) -> list[str]:
    rows = [f"| `{code}` | {meaning} |" for code, meaning in dict(codes).items()]  # type: ignore[call-overload]
    return ["| code | meaning |", "|---|---|", *rows]


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
