"""Which keys of a frame write may come more often than a rule allows: one sort of all hashes, stretch by stretch.

This is the one look at all keys that is left to the process that commits. A stretch is sorted outside of Python's lock,
so that as many are looked at together as there are processors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from omnigraph.spark.source.keys.key_hashes import BYTES, HashRun
from omnigraph.spark.source.keys.key_parts import PARTS, RANKS, Doubt
from omnigraph.spark.source.keys.key_rules import KeyRule
from omnigraph.storage.objects.objects import ObjectStore

STRETCH_BYTES = 8 << 20
"""Hashes that are looked at together. A look holds twice as much."""

MOST_AT_ONCE = 16
"""Stretches that are looked at at the same time, at most: a bound on memory."""


def repeat_doubts(objects: ObjectStore, rules: Iterable[KeyRule], runs: Sequence[HashRun]) -> set[Doubt]:
    """The parts of keys in which too many rows may share a tuple."""
    looks = [look for rule in rules for look in _looks(objects, rule, runs)]
    with ThreadPoolExecutor(max(1, min(len(looks), os.cpu_count() or 1, MOST_AT_ONCE))) as pool:
        return set().union(*pool.map(lambda look: look(), looks))


def _looks(objects: ObjectStore, rule: KeyRule, runs: Sequence[HashRun]) -> Iterator[partial[set[Doubt]]]:
    own = [run for run in runs if run.subject == rule.subject]
    if rule.most is None or not own:
        return
    stretches = 1
    while stretches < PARTS and BYTES * sum(run.total for run in own) > stretches * STRETCH_BYTES:
        stretches *= 2
    width = PARTS // stretches
    for first in range(0, PARTS, width):
        yield partial(_doubts, objects, rule.subject, rule.most, own, first, first + width)


def _doubts(
    objects: ObjectStore, subject: str, most: int, runs: Sequence[HashRun], first: int, last: int
) -> set[Doubt]:
    together = np.concatenate([run.between(objects, first, last) for run in runs])
    ordered = np.sort(together)
    many = ordered[most:][ordered[most:] == ordered[:-most]] if most else ordered
    if not len(many):
        return set()
    places = np.concatenate([np.repeat(np.arange(first, last), run.counts[first:last]) for run in runs])
    return {(subject, int(RANKS[place])) for place in np.unique(places[np.isin(together, many)])}
