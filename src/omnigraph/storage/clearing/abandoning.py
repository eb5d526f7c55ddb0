"""Clearing away what a write staged and will not commit. Best effort: `cleanup` finds whatever stays."""

from __future__ import annotations

import json
import logging

from omnigraph.errors import StorageError
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.layout.compaction import StagedCompaction
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.values import StagedWrite, TableVersion

_log = logging.getLogger(__name__)


def abandon(handles: Handles, write: StagedWrite | StagedCompaction) -> int:
    """Remove the files of a staged write; how many objects went. One that was committed after all is left alone."""
    if _was_committed(handles, write):
        return 0
    objects = open_objects(handles.root)
    removed = 0
    try:
        for path in _files(write):
            if path.endswith("/"):
                removed += objects.delete_prefix(path)
            elif objects.head(path) is not None:
                objects.delete(path)
                removed += 1
    except StorageError as error:
        _log.warning("some files of an abandoned write to %s stay until cleanup: %s", write.location, error)
    return removed


def _files(write: StagedWrite | StagedCompaction) -> tuple[str, ...]:
    if isinstance(write, StagedWrite):
        return write.new_files
    directory = line_directory(TableVersion(write.location, write.branch, write.base_version))
    return tuple(
        f"{directory}/data/{file['path']}"
        for result in write.results
        for fragment in json.loads(result)["new_fragments"]
        for file in fragment["files"]
    )


def _was_committed(handles: Handles, write: StagedWrite | StagedCompaction) -> bool:
    """Whether the table refers to the files by now. When that cannot be told, they are kept."""
    try:
        newest = handles.newest(write.location, write.branch)
        if newest.version == write.base_version:
            return False
        used = {str(file.path) for fragment in newest.get_fragments() for file in fragment.metadata.files}
        if any(path.rsplit("/", 1)[-1] in used for path in _files(write)):
            return True
        if isinstance(write, StagedCompaction):
            return False
        later = range(write.base_version + 1, newest.version + 1)
        alone = handles.private(TableVersion(write.location, write.branch, int(newest.version)))
        found = [alone.read_transaction(version) for version in later]
        return any(entry is not None and entry.uuid == write.transaction_uuid for entry in found)
    except Exception:
        return True
