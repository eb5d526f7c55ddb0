"""The strict commit: a staged write becomes exactly the next version of its table, or it fails.

Lance would help a late writer by rebasing its transaction over what others committed meanwhile. For a graph that is
wrong: the write was validated against the version it was prepared on. So a commit is guarded in three ways.

* A change of rows also lists the table's first fragment as touched, unchanged. Any two such commits from one base then
  touch the same fragment, and Lance refuses the second. A table without fragments has nothing to touch; there the rows
  go in as an `Overwrite` with no retries, which Lance commits as exactly the next version or not at all.
* The newest version is looked up just before, and a table that moved is refused without trying.
* The version that comes back is compared. A commit that Lance rebased all the same (over an index, say) is a conflict
  with `landed_version` in its details: it moved HEAD and carries our operation id, so its writer or recovery undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance import Transaction
from lance.dataset import LanceDataset, LanceOperation

from omnigraph.errors import Conflict
from omnigraph.failpoints import declare, failpoint
from omnigraph.storage.constants import OPERATION_ID_PROPERTY
from omnigraph.storage.handles.handles import Handles
from omnigraph.storage.lance_errors import lance_errors, raise_ours
from omnigraph.storage.staging.plain_paths import with_plain_paths
from omnigraph.storage.staging.staging import all_field_ids
from omnigraph.storage.values import StagedWrite, TableVersion

declare("storage.commit.before", "in commit_staged, before Lance is asked to commit")
declare("storage.commit.after", "in commit_staged, after the table's HEAD has moved")
declare("storage.restore.before", "in restore, before Lance is asked to commit")
declare("storage.restore.after", "in restore, after the table's HEAD has moved")


def commit_staged(
    handles: Handles,
    write: StagedWrite,
    operation_id: str,
    extra_properties: Mapping[str, str] | None = None,
    *,
    looked: bool = False,
) -> TableVersion:
    """Move the table's HEAD by this one transaction. `Conflict` when the table moved since the write was prepared.

    `looked`: the caller has just seen that it has not, which saves the look.
    """
    handle = handles.at(write.base)
    transaction: Transaction = write.transaction
    transaction.transaction_properties = {**(extra_properties or {}), OPERATION_ID_PROPERTY: operation_id}
    transaction.operation = guarded(handle, transaction.operation)
    if isinstance(transaction.operation, LanceOperation.Update):
        with_plain_paths(transaction.operation.updated_fragments)
    if not looked:
        refuse_if_moved(handles, write.base)
    failpoint("storage.commit.before")
    with handles.committing(write.base):
        landed = _commit(handles, handle, write.base, transaction)
    handles.fragment_ids.landed(write.base, landed, handles.at(landed), transaction.operation)
    failpoint("storage.commit.after")
    return landed


def restore(handles: Handles, target: TableVersion, expected_head: int, operation_id: str) -> TableVersion:
    """Make a new version with the content of `target`, as a tagged commit right after `expected_head`.

    Only inside the commit window with the branch's lease held: Lance accepts a restore while another commit is under
    way, and that commit would vanish. When the restore did not become the next version, `landed_version` of the
    `Conflict` says where it landed: the version before it is somebody's commit and has to be restored at once.
    """
    base = target.at(expected_head)
    handle = handles.at(base)
    refuse_if_moved(handles, base)
    transaction = Transaction(
        expected_head,
        LanceOperation.Restore(target.version),
        transaction_properties={OPERATION_ID_PROPERTY: operation_id},
    )
    failpoint("storage.restore.before")
    with handles.committing(base):
        landed = _commit(handles, handle, base, transaction)
    failpoint("storage.restore.after")
    return landed


def guarded(handle: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceOperation.BaseOperation:
    """The operation in a form that Lance refuses when a guarded commit came between."""
    if isinstance(operation, LanceOperation.Append):
        operation = LanceOperation.Update(
            new_fragments=list(operation.fragments),
            update_mode="rewrite_rows",
            fields_for_preserving_frag_bitmap=all_field_ids(handle),
        )
    if not isinstance(operation, LanceOperation.Update):
        return operation
    first = min(handle.fragment_ids(), default=None)
    if first is None:
        return LanceOperation.Overwrite(handle.lance_schema, list(operation.new_fragments))
    touched = {fragment.id for fragment in operation.updated_fragments} | set(operation.removed_fragment_ids)
    if first not in touched:
        operation.updated_fragments = [*operation.updated_fragments, handle.get_fragment(first).metadata]
    return operation


def refuse_if_moved(handles: Handles, base: TableVersion) -> None:
    """Raise `Conflict` when the newest version of the line is not the one a write was prepared on."""
    with lance_errors("looking up the newest version of", base.location):
        newest = handles.newest_version(base)
    if newest != base.version:
        raise Conflict(
            f"{base.location} is at version {newest} and the write was prepared on {base.version}: another writer came "
            "first. Nothing was committed; prepare the write again",
            expected=base.version,
            actual=newest,
        )


def _commit(handles: Handles, handle: LanceDataset, base: TableVersion, transaction: Transaction) -> TableVersion:
    handles.called("commit", base.location)
    try:
        committed = LanceDataset.commit(handle, transaction, max_retries=0, storage_options=handles.storage_options)
    except Exception as error:
        # The store may have taken the commit and lost its answer: what the table says counts.
        if _landed_after_all(handles, base, transaction.uuid):
            return base.at(base.version + 1)
        raise_ours("committing to", base, error)
    landed = base.at(int(committed.version))
    if landed.version != base.version + 1:
        raise Conflict(
            f"the commit to {base} landed as version {landed.version}, on top of another writer's; it is not published "
            "and will be undone",
            expected=base.version,
            actual=landed.version - 1,
            landed_version=landed.version,
        )
    handles.landed(landed, committed)
    return landed


def _landed_after_all(handles: Handles, base: TableVersion, transaction_uuid: str) -> bool:
    try:
        found = handles.private(base.at(base.version + 1)).read_transaction(base.version + 1)
    except Exception:
        return False
    return found is not None and found.uuid == transaction_uuid
