"""The rules across the rows of a frame write, checked in the process that commits it.

Spark gives a data source no second stage, and the process that it runs a commit in no way to start a job. So the
buckets that the tasks of a load would check are checked here: some at once, as many as there are processors, and none
larger than a bound.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from omnigraph.schema.catalog import GraphType
from omnigraph.spark.load.load_checks import check_bucket
from omnigraph.spark.load.load_messages import LoadContext, Message
from omnigraph.spark.load.load_tasks import TaskReport, seen_messages
from omnigraph.spark.source.staged_keys import PARTS, KeysOfTask, few_messages, put_messages
from omnigraph.storage.objects.objects import ObjectStore

BUCKET_BYTES = 32 << 20
"""Keys that are looked at together. A check holds some times as much."""

MOST_AT_ONCE = 4
"""Buckets that are looked at at the same time, at most: a bound on memory."""


def check_keys(
    objects: ObjectStore, context: LoadContext, type_: GraphType, told: Sequence[KeysOfTask]
) -> list[TaskReport]:
    """What breaks a rule, and which tables were looked at, bucket by bucket. `context` says nothing of buckets yet."""
    buckets = _buckets(sum(task.size for task in told))
    context = replace(context, buckets=buckets)
    few: dict[int, list[Message]] = {}
    for message in few_messages(context, type_, told):
        few.setdefault(message.bucket, []).append(message)
    for message in seen_messages(context, [type_.table_key], 0):
        few.setdefault(message.bucket, []).append(message)

    def check(bucket: int) -> list[TaskReport]:
        messages = [*few.get(bucket, ()), *put_messages(objects, told, buckets, bucket)]
        return [pickle.loads(found.payload) for found in check_bucket(context, bucket, messages)]

    with ThreadPoolExecutor(min(buckets, os.cpu_count() or 1, MOST_AT_ONCE)) as pool:
        return [report for found in pool.map(check, range(buckets)) for report in found]


def _buckets(size: int) -> int:
    """As few as keep each within its bound, and no more than there are parts; a power of two."""
    wanted = 1
    while wanted < PARTS and size > wanted * BUCKET_BYTES:
        wanted *= 2
    return wanted
