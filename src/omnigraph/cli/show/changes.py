"""Differences for a reviewer: counts first, then each changed row with the changed fields marked."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.cli.show.output import Output, console, dump_json
from omnigraph.merge.changes import EntityChange, TypeCount
from omnigraph.merge.feed import Page
from omnigraph.merge.plain import plain_value
from omnigraph.notebook import counted

if TYPE_CHECKING:
    from omnigraph.merge.merge import MergeResult
    from omnigraph.merge.undo.undo_result import UndoResult

_MARKS = {"insert": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}


def print_counts(counts: Iterable[TypeCount]) -> None:
    """The counts per type."""
    rows = [(c.table_key, c.inserts, c.updates, c.deletes) for c in counts]
    Output().table(("table", "inserts", "updates", "deletes"), rows, empty="no difference")


def print_outcome(out: Output, result: MergeResult | UndoResult, *, counts: bool = True) -> None:
    """What a merge or an undo did, or would do, to rows: the counts, each row as far as it is told, the conflicts."""
    from omnigraph.merge.decide.conflicts import described

    if counts:
        rows = [(c.table_key, c.inserts, c.updates, c.deletes) for c in result.tables]
        out.table(("table", "inserts", "updates", "deletes"), rows, empty="no rows change")
    print_rows(result.changes)
    if result.conflicts:
        out.say(f"{counted(len(result.conflicts), 'conflict')}\n{described(result.conflicts)}")


def print_rows(changes: Iterable[EntityChange], indent: str = "") -> None:
    """Each changed row: what was added or removed, and for updates the old and the new value of each changed field."""
    out = console()
    for change in changes:
        mark, style = _MARKS[change.op.value]
        ends = f" ({change.endpoints[0]} -> {change.endpoints[1]})" if change.endpoints else ""
        out.print(f"{indent}{mark} {change.type} {change.id}{ends}", style=style, markup=False, highlight=False)
        for line in _details(change):
            out.print(f"{indent}    {line}", style="dim", markup=False, highlight=False)


def _details(change: EntityChange) -> Iterable[str]:
    if change.before is not None and change.after is not None:
        for name, old, new in change.differing():
            yield f"{name}: {_show(old)} -> {_show(new)}"
        return
    row = change.after or change.before or {}
    for name, value in row.items():
        if value is not None and not name.startswith("@"):
            yield f"{name}: {_show(value)}"


def _show(value: Any) -> str:
    text = dump_json(plain_value(value)).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


def print_json(head: Mapping[str, Any], counts: Iterable[TypeCount], changes: Iterable[EntityChange]) -> None:
    """One JSON document, written as it streams: the changes are never all in memory."""
    opening = dump_json({**head, "summary": [count.to_json() for count in counts]})
    sys.stdout.write(opening.rstrip().removesuffix("}").rstrip() + ',\n  "changes": ')
    _stream_array(change.to_json() for change in changes)
    sys.stdout.write("\n}\n")


def print_feed(page: Page) -> None:
    """The feed for people."""
    out = Output()
    for block in page.blocks:
        actor = f" by {block.commit.actor_id}" if block.commit.actor_id else ""
        out.say(f"commit {block.commit.graph_commit_id} {block.commit.kind.value}{actor}")
        print_rows(block.changes, "  ")
    out.say(f"cursor {page.cursor}")


def print_feed_json(page: Page) -> None:
    """The feed as one JSON document, written as it streams, the changes of a commit too."""
    sys.stdout.write('{\n  "blocks": [')
    for position, block in enumerate(page.blocks):
        head = dump_json({"commit": block.commit.to_json(), "cursor": block.cursor})
        opening = head.rstrip().removesuffix("}").rstrip().replace("\n", "\n    ")
        sys.stdout.write(("," if position else "") + "\n    " + opening + ',\n      "changes": ')
        _stream_array((change.to_json() for change in block.changes), "      ")
        sys.stdout.write("\n    }")
    sys.stdout.write(f'\n  ],\n  "cursor": {dump_json(page.cursor)}\n}}\n')


def _stream_array(items: Iterable[Any], indent: str = "  ") -> None:
    sys.stdout.write("[")
    for position, item in enumerate(items):
        shown = dump_json(item).replace("\n", f"\n{indent}  ")
        sys.stdout.write(("," if position else "") + f"\n{indent}  {shown}")
    sys.stdout.write(f"\n{indent}]")
