"""Taking fragments from one line of a table into another without reading a row: their files are copied as they are.

Lines of one table share the ids of its columns, so a data file means the same in each of them. A copy costs nothing
where the store can make one by itself: on a local disk it is a second name of the same file, on an object store a copy
that never leaves it. Each line owns its files afterwards, as it owns those that it wrote.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from uuid import uuid4

from lance.fragment import FragmentMetadata

from omnigraph.errors import StorageError
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.objects.objects import open_objects
from omnigraph.storage.staging.staged_files import line_directory
from omnigraph.storage.staging.staging import all_field_ids
from omnigraph.storage.values import TableVersion

_log = logging.getLogger(__name__)


def adoptable(handles: Handles, source: TableVersion, target: TableVersion, least_rows: int) -> dict[int, int]:
    """The fragments of `source` whose files another line can take as they are, with their numbers of rows.

    They lie on the source's own line, nothing of them is deleted, and they have at least so many rows.
    """
    theirs, ours = handles.at(source), handles.at(target)
    if all_field_ids(theirs) != all_field_ids(ours) or theirs.schema != ours.schema:
        return {}
    found = {}
    for fragment in theirs.get_fragments():
        metadata = fragment.metadata
        described = metadata.to_json()
        own = all(file.get("base_id") is None for file in described["files"])
        plain = own and not described.get("overlays") and metadata.deletion_file is None
        if plain and metadata.physical_rows >= least_rows:
            found[metadata.id] = metadata.physical_rows
    return found


def adopt_fragments(
    handles: Handles, source: TableVersion, target: TableVersion, fragment_ids: Collection[int]
) -> list[str] | None:
    """Copy the files of these fragments to the line of `target`; descriptions as those of rows that were written.

    The rows are new on that line. None when the store cannot copy them (too large for one request, say): the rows have
    to be written then.
    """
    objects = open_objects(handles.root)
    adopted: list[str] = []
    copied: list[str] = []
    try:
        for fragment in handles.at(source).get_fragments():
            if fragment.fragment_id not in fragment_ids:
                continue
            described = fragment.metadata.to_json()
            files = []
            for file in described["files"]:
                # A name of its own: names of files are unique across the lines of a table.
                name = f"{uuid4().hex}.lance"
                copied.append(f"{line_directory(target)}/data/{name}")
                objects.copy(f"{line_directory(source)}/data/{file['path']}", copied[-1])
                files.append({**file, "path": name})
            rows = described["physical_rows"]
            adopted.append(json.dumps({"id": 0, "files": files, "physical_rows": rows, "deletion_file": None}))
            FragmentMetadata.from_json(adopted[-1])
    except StorageError as error:
        _log.info("files of %s cannot be copied, its rows are: %s", source, error)
        for path in copied:
            objects.delete(path)
        return None
    return adopted
