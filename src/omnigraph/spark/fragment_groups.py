"""Fragments in groups of about equal work: small ones together, so that a task is worth its start."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.storage.values import FragmentInfo


def fragment_groups(fragments: Iterable[FragmentInfo], rows: int) -> list[list[int]]:
    """Neighbouring fragments with about `rows` rows together; a larger fragment is a group of its own."""
    groups: list[list[int]] = []
    held = 0
    for fragment in fragments:
        if not groups or held + fragment.rows > rows:
            groups.append([])
            held = 0
        groups[-1].append(fragment.id)
        held += fragment.rows
    return groups
