"""What goes into the archive of this Python. That it runs where nothing else is: `tests/spark/packed`."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnigraph.errors import BadRequest, SparkUnavailable
from omnigraph.spark.session import pack_environment
from omnigraph.spark.session.worker_python import NEEDED, require_python_for_planning

LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def places() -> dict[str, Path]:
    """The place in the archive of every file, each once."""
    found = list(pack_environment._files(LIBRARY))
    places = {place: file for file, place in found}
    assert len(places) == len(found)
    return places


def test_all_that_tasks_import_is_packed_and_nothing_that_spark_brings(places: dict[str, Path]) -> None:
    packages = {place.removeprefix(f"{LIBRARY}/site-packages/").split("/")[0] for place in places}
    assert {*NEEDED, "pandas", "pyspark_omnigraph", "typing_extensions.py"} <= packages
    assert not {"pyspark", "py4j", "pytest", "pip", "moto"} & packages
    assert {f"{LIBRARY}/os.py", f"{LIBRARY}/encodings/__init__.py"} <= set(places)
    assert not any("/tests/" in place or "/test/" in place for place in places)
    assert all(file.is_file() for file in places.values())


def test_a_requirement_is_followed_to_its_end_and_extras_are_not() -> None:
    names = {package.name.lower() for package in pack_environment.needed_packages()}
    assert {"pylance", "pandas", "python-dateutil"} <= names
    assert not {"fastapi", "uvicorn", "polars", "omnigraph"} & names


def test_the_program_in_the_archive_runs_what_lies_beside_it(
    tmp_path: Path, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the packages, which take half a minute to pack; a small module stands for them."""
    small = tmp_path / "beside.py"
    small.write_text("answer = 42\n")
    packed = {place: file for place, file in places.items() if "/site-packages/" not in place}
    packed[f"{LIBRARY}/site-packages/beside.py"] = small
    monkeypatch.setattr(pack_environment, "_files", lambda library: ((file, place) for place, file in packed.items()))
    archive = tmp_path / "environment.tar.gz"
    assert pack_environment.pack_environment(archive) == archive.stat().st_size
    with tarfile.open(archive) as stream:
        stream.extractall(tmp_path / "environment", filter="tar")
    script = "import sys, beside, first, json, encodings; print(beside.answer, first.answer, sys.prefix, json.__file__)"
    (tmp_path / "given").mkdir()
    (tmp_path / "given/first.py").write_text("answer = 7\n")
    ran = subprocess.run(
        ["environment/bin/python", "-c", script],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "given")},
        capture_output=True,
        text=True,
        check=False,
    )
    inside = tmp_path / "environment"
    assert ran.stdout.split() == ["42", "7", str(inside), str(inside / LIBRARY / "json/__init__.py")], ran.stderr
    assert [path.name for path in tmp_path.glob("*.unfinished")] == []


def test_an_archive_that_spark_unpacks_without_permissions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"\.tar\.gz"):
        pack_environment.pack_environment(tmp_path / "environment.tar")


def driver_in(directory: Path, program: str) -> Any:
    """A context on a cluster, as far as planning goes: its JVM was started in a directory."""
    system = SimpleNamespace(getProperty={"user.dir": str(directory)}.__getitem__)
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    return SimpleNamespace(master="spark://head:7077", pythonExec=program, _jvm=jvm)


def test_a_driver_without_the_packed_python_is_told_before_spark_looks_for_it(tmp_path: Path) -> None:
    shipped = "./environment/bin/python"
    with pytest.raises(SparkUnavailable, match=r"planned with it on the driver too.*Unpack the archive") as refused:
        require_python_for_planning(driver_in(tmp_path, shipped))
    assert str(tmp_path) in refused.value.message
    (tmp_path / "environment/bin").mkdir(parents=True)
    (tmp_path / shipped).touch()
    require_python_for_planning(driver_in(tmp_path, shipped))


@pytest.mark.parametrize("program", ["python3", "/opt/somewhere/bin/python"])
def test_a_python_that_spark_finds_by_itself_is_not_looked_for(program: str, tmp_path: Path) -> None:
    require_python_for_planning(driver_in(tmp_path, program))
