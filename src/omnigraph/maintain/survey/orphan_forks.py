"""Forks that nothing names any more: found, checked again with every branch held still, and only then removed.

An orphan is a line that no live branch and no retained commit names. It may also be a line that somebody is about to
publish, so anything young, and anything that is not older than a live writer, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.failpoints import declare, failpoint
from omnigraph.maintain.survey.inventory import TableInventory
from omnigraph.maintain.survey.must_stay import Needs

if TYPE_CHECKING:
    from omnigraph.ledger.store import GraphStore

declare("cleanup.before_forks", "Orphaned forks are chosen and every branch is held still; none is removed")
declare("cleanup.between_forks", "One more orphaned fork is removed")


def orphans(table: TableInventory, needs: Needs, before: float) -> list[str]:
    """The forks of a table to remove, children before their parents; `before` is when an orphan must have been made.

    A fork from which another one starts that stays, stays too.
    """
    unwanted = {
        name
        for name, fork in table.forks.items()
        if not needs.needs_line(table.location, name) and fork.created < datetime.fromtimestamp(before, UTC)
    }
    children: dict[str, set[str]] = {}
    for name, fork in table.forks.items():
        if fork.parent_branch:
            children.setdefault(fork.parent_branch, set()).add(name)
    ordered: list[str] = []
    while True:
        ready = sorted(name for name in unwanted if not children.get(name, set()) - set(ordered))
        ready = [name for name in ready if name not in ordered]
        if not ready:
            return ordered
        ordered += ready


def half_made(table: TableInventory, needs: Needs, before: float) -> list[str]:
    """Lines whose maker died before Lance had a reference to them."""
    cutoff = datetime.fromtimestamp(before, UTC)
    return [
        name
        for name in sorted(table.half_made)
        if not needs.needs_line(table.location, name)
        and all(file.modified < cutoff for file in table.files if file.path.startswith(_tree(table.location, name)))
    ]


@contextmanager
def branches_held(store: GraphStore) -> Iterator[None]:
    """Hold the windows of all branches, always in the same order, so that nothing can be published meanwhile."""
    with ExitStack() as stack:
        for ref in sorted(store.refs.list(), key=lambda ref: ref.incarnation):
            stack.enter_context(store.windows.enter(ref, ()))
        yield


def remove(
    store: GraphStore, table: TableInventory, unwanted: list[str], unfinished: list[str]
) -> tuple[int, int, str | None]:
    """Remove orphans and half-made lines of one table: how many lines and bytes went, and what went wrong."""
    removed = freed = 0
    sizes = line_sizes(table)
    try:
        for name in unwanted:
            if store.tables.delete_fork(table.location, name):
                removed += 1
                freed += sizes.get(name, 0)
            failpoint("cleanup.between_forks")
        for name in unfinished:
            store.objects.delete_prefix(_tree(table.location, name))
            removed += 1
            freed += sizes.get(name, 0)
    except (OmniGraphError, OSError) as error:
        return removed, freed, str(error)
    return removed, freed, None


def line_sizes(table: TableInventory) -> Mapping[str, int]:
    """The bytes of the files that belong to each fork alone."""
    sizes: dict[str, int] = {}
    prefix = f"{table.location}/tree/"
    for file in table.files:
        if file.path.startswith(prefix):
            below = file.path[len(prefix) :]
            owners = [fork for fork in table.forks if below.startswith(f"{fork}/")]
            name = max(owners, key=len) if owners else below.split("/", 1)[0]
            sizes[name] = sizes.get(name, 0) + file.size
    return sizes


def announce() -> None:
    """The moment at which everything is chosen and nothing is removed, for tests."""
    failpoint("cleanup.before_forks")


def _tree(location: str, name: str) -> str:
    return f"{location}/tree/{name}/"
