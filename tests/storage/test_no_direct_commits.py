"""Only the storage package touches Lance, and only one place in it moves a table's HEAD."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import omnigraph

SOURCE = Path(omnigraph.__file__).parent
STORAGE = SOURCE / "storage"

WRITES_AND_COMMITS = {
    "add_bases",
    "add_columns",
    "alter_columns",
    "checkout_latest",
    "cleanup_old_versions",
    "commit_batch",
    "commit_existing_index_segments",
    "commit_transaction",
    "compact_files",
    "create_branch",
    "create_index",
    "create_scalar_index",
    "delete_config_keys",
    "drop_columns",
    "drop_index",
    "enable_auto_cleanup",
    "merge_insert",
    "optimize_indices",
    "replace_field_metadata",
    "replace_schema",
    "replace_schema_metadata",
    "truncate_table",
    "update_config",
    "update_field_metadata",
    "update_metadata",
    "update_schema_metadata",
    "write_dataset",
}
"""Names of Lance's Python API that write and commit in one go, or change what a table refers to."""

NOT_LANCES_ALONE = {"create_branch", "drop_columns", "replace_schema_metadata"}
"""Names that Arrow tables or our own classes have too. Outside storage there is no Lance handle to call them on."""

ALLOWED_IN_STORAGE = {
    "cleanup_old_versions": {"table_history.py"},
    "create_branch": {"forks.py"},
    "drop_columns": {"reading.py"},
}
"""Where the storage package may use them: what these change is no content of a table."""


def modules(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.py"))


def names_used(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return attributes | imported


def imports_lance(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "lance" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "lance":
            return True
        if isinstance(node, ast.Call) and any(
            isinstance(value, ast.Constant) and value.value == "lance" for value in node.args
        ):
            return True
    return False


@pytest.mark.parametrize(
    "path", [p for p in modules(SOURCE) if STORAGE not in p.parents], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_outside_storage_nobody_imports_lance_or_calls_what_commits(path: Path) -> None:
    assert not imports_lance(path)
    assert names_used(path) & (WRITES_AND_COMMITS - NOT_LANCES_ALONE) == set()
    assert not opens_handles(path), "a Lance handle must not leave the storage package"


def opens_handles(path: Path) -> bool:
    """Whether something is asked of a store's handles, rather than handing them on to a function of storage."""
    return any(
        isinstance(node, ast.Attribute)
        and (
            (isinstance(node.value, ast.Attribute) and node.value.attr == "handles")
            or (isinstance(node.value, ast.Name) and node.value.id == "handles")
        )
        for node in ast.walk(ast.parse(path.read_text()))
    )


@pytest.mark.parametrize("path", modules(STORAGE), ids=lambda p: p.name)
def test_inside_storage_every_write_is_staged(path: Path) -> None:
    used = names_used(path) & WRITES_AND_COMMITS
    assert {name for name in used if path.name not in ALLOWED_IN_STORAGE.get(name, set())} == set()


def test_head_moves_in_three_places_only() -> None:
    """`LanceDataset.commit` and `Compaction.commit`: the strict commit, the first version, the compaction."""
    found = set()
    for path in modules(STORAGE):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "commit"
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ("LanceDataset", "Compaction")
            ):
                found.add((path.name, node.func.value.id))
    assert found == {
        ("committing.py", "LanceDataset"),
        ("creating.py", "LanceDataset"),
        ("compaction.py", "Compaction"),
    }


def test_the_walk_would_find_an_offender(tmp_path: Path) -> None:
    offender = tmp_path / "offender.py"
    offender.write_text("import lance.dataset\nlance.write_dataset(rows, 'x')\nds.merge_insert('id').execute(rows)\n")
    assert imports_lance(offender)
    assert names_used(offender) & WRITES_AND_COMMITS == {"write_dataset", "merge_insert"}
    offender.write_text("store.tables.handles.at(version).delete('id = 1')\n")
    assert opens_handles(offender)
    offender.write_text("__import__('lance')\n")
    assert imports_lance(offender)
    offender.write_text("from lance import write_dataset as w\n")
    assert names_used(offender) & WRITES_AND_COMMITS == {"write_dataset"}
