"""The rules across the rows of a frame write, as far as they are left to the process that commits it.

Spark gives a data source no second stage, and the process that it runs a commit in no way to start a job. So tasks look
at the committed rows by themselves, and tell which parts of their keys are in doubt; here the hashes of all keys tell
in which parts one may come twice. Only parts in doubt are checked by the rules themselves, in buckets as the tasks of
a load would check them: some at once, as many as there are processors, and none larger than a bound. A table that is
no longer as the tasks saw it leaves every key that leans on it in doubt.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.spark.load.load_checks import check_bucket
from omnigraph.spark.load.load_messages import LoadContext, Message
from omnigraph.spark.load.load_tasks import TaskReport, seen_messages
from omnigraph.spark.source.keys.key_doubts import KeyDoubts, version_in
from omnigraph.spark.source.keys.key_hashes import hash_runs
from omnigraph.spark.source.keys.key_parts import PARTS, Doubt
from omnigraph.spark.source.keys.key_rules import KeyRule, key_rules
from omnigraph.spark.source.keys.repeated_keys import repeat_doubts
from omnigraph.spark.source.keys.staged_keys import KeysOfTask, few_keys, few_messages, put_messages
from omnigraph.storage.objects.objects import ObjectStore

BUCKET_BYTES = 32 << 20
"""Keys that are looked at together. A check holds some times as much."""

MOST_AT_ONCE = 4
"""Buckets that are looked at at the same time, at most: a bound on memory."""


def check_keys(
    objects: ObjectStore, context: LoadContext, type_: GraphType, told: Sequence[KeysOfTask]
) -> list[TaskReport]:
    """What breaks a rule, and which tables were looked at. `context` says nothing of buckets yet."""
    rules = list(key_rules(type_))
    few = few_keys(told)
    look = KeyDoubts(context, type_)
    edges = _edges_of_replaced(context, type_)
    hold_all = [rule for rule in rules if rule.needs_all or _has_moved(context, rule, told)]
    if any(context.snapshot.tables[edge].row_count for edge in edges if edge in context.snapshot.tables):
        # Whether a committed edge loses its end is told by all nodes that come in the place of those that go.
        hold_all += [rule for rule in rules if rule.columns == ("id",)]
    doubts = {(rule.subject, part) for rule in hold_all for part in range(PARTS)}
    doubts.update(*(task.doubts for task in told))
    for keys in few:
        doubts |= look.of(keys.table, own_ids=keys.own_ids)
    runs = [run for task in told for piece in task.pieces for run in piece.hashes]
    runs += [run for keys in few for run in hash_runs(key_rules(type_, own_ids=keys.own_ids), keys.table)]
    doubts |= repeat_doubts(objects, [rule for rule in rules if rule not in hold_all], runs)
    reads = look.reads.union(edges, *(task.seen for task in told))
    return [TaskReport(reads=reads), *(_settled(objects, context, type_, told, doubts) if doubts else ())]


def _edges_of_replaced(context: LoadContext, type_: GraphType) -> frozenset[str]:
    """The edges that lead to nodes or from nodes which are all replaced."""
    if isinstance(type_, EdgeType) or context.mode != "overwrite":
        return frozenset()
    return frozenset(edge.table_key for edge in context.catalog.edges if type_.name in (edge.source, edge.target))


def _has_moved(context: LoadContext, rule: KeyRule, told: Iterable[KeysOfTask]) -> bool:
    """Whether a task saw another version of a table that the rule leans on."""
    now = {table_key: version_in(context.snapshot, table_key) for table_key in rule.leans_on}
    return any(task.seen.get(table_key, version) != version for task in told for table_key, version in now.items())


def _settled(
    objects: ObjectStore, context: LoadContext, type_: GraphType, told: Sequence[KeysOfTask], doubts: set[Doubt]
) -> list[TaskReport]:
    """What the rules say of the parts in doubt, bucket by bucket."""
    few = [message for message in few_messages(context, type_, told) if (message.subject, message.bucket) in doubts]
    put = (entry for task in told for piece in task.pieces for entry in piece.entries)
    size = sum(entry.end - entry.start for entry in put if (entry.subject, entry.part) in doubts)
    buckets = _buckets(size + sum(len(message.payload) for message in few))
    context = replace(context, buckets=buckets)
    own: dict[int, set[Doubt]] = {}
    for doubt in doubts:
        own.setdefault(doubt[1] % buckets, set()).add(doubt)

    def check(bucket: int) -> list[TaskReport]:
        messages = [message for message in seen_messages(context, [type_.table_key], 0) if message.bucket == bucket]
        messages += (_in_bucket(message, bucket) for message in few if message.bucket % buckets == bucket)
        for task in told:
            messages += (_in_bucket(message, bucket) for message in put_messages(objects, task, own[bucket]))
        return [pickle.loads(found.payload) for found in check_bucket(context, bucket, messages)]

    with ThreadPoolExecutor(min(len(own), os.cpu_count() or 1, MOST_AT_ONCE)) as pool:
        return [report for found in pool.map(check, sorted(own)) for report in found]


def _in_bucket(message: Message, bucket: int) -> Message:
    return replace(message, bucket=bucket)


def _buckets(size: int) -> int:
    """As few as keep each within its bound, and no more than there are parts; a power of two."""
    wanted = 1
    while wanted < PARTS and size > wanted * BUCKET_BYTES:
        wanted *= 2
    return wanted
