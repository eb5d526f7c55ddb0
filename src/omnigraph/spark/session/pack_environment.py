"""An archive of this Python with all that tasks import, for executors that have neither.

`python -m omnigraph.spark.session.pack_environment environment.tar.gz` packs the interpreter, its standard library and
the installed packages that this one needs. A virtual environment in an archive would still look for the Python that it
was made with, at the same path on every machine; what is packed here looks for nothing beside itself. PySpark is left
out: executors have that of their Spark.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from omnigraph.errors import BadRequest

SUFFIX = ".tar.gz"
"""Spark unpacks a plain `.tar` without the permission to run what is in it."""

PACKAGE = "omnigraph"
OURS = (PACKAGE, "pyspark_omnigraph")
BROUGHT_BY_SPARK = {"pyspark", "py4j"}
LEFT_OUT = {"test", "tests", "idlelib", "turtledemo", "ensurepip", "site-packages", "dist-packages"}
"""Folders of libraries that no program needs, and those of packages, which are looked at one by one."""

PROGRAM = "bin/python"
_QUICK = 1
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_STARTER = """#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/{packages}"
exec "$here/bin/{program}" "$@"
"""


def pack_environment(target: Path) -> int:
    """Write the archive and give its size in bytes. It appears whole or not at all."""
    if not target.name.endswith(SUFFIX):
        raise BadRequest(f"{target} must be a *{SUFFIX}: Spark unpacks others without the permission to run them.")
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    unfinished = target.with_name(target.name + ".unfinished")
    try:
        with (
            gzip.open(unfinished, "wb", _QUICK) as stream,
            tarfile.open(fileobj=stream, mode="w", dereference=True) as archive,
        ):
            _add_starter(archive, f"{library}/site-packages")
            for file, place in _files(library):
                archive.add(file, place, recursive=False)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target.stat().st_size


def needed_packages() -> list[metadata.Distribution]:
    """The installed packages that this one needs, and those that they need, extras left out."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [PACKAGE]
    while waiting:
        name = _plain(waiting.pop())
        if name in found or name in BROUGHT_BY_SPARK:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # wanted on other systems or versions of Python only
        wanted = [line for line in found[name].requires or [] if "extra ==" not in line]
        waiting += [match[0] for match in map(_NAME.match, wanted) if match]
    return [package for name, package in sorted(found.items()) if name != PACKAGE]


def _files(library: str) -> Iterator[tuple[Path, str]]:
    """Every file with its place in the archive."""
    program = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # not in the stubs
    yield program, f"bin/{program.name}"
    shared = Path(sysconfig.get_config_var("LIBDIR") or "") / (sysconfig.get_config_var("INSTSONAME") or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared.is_file():
        yield shared.resolve(), f"lib/{shared.name}"
    yield from _below(Path(sysconfig.get_path("stdlib")), library)
    for package in needed_packages():
        for entry in package.files or []:
            # Programs beside the packages (`../../../bin/…`) name the Python that they were installed for.
            if ".." not in entry.parts and not LEFT_OUT.intersection(entry.parts[1:-1]):
                file = Path(str(entry.locate()))
                if file.is_file():
                    yield file, f"{library}/site-packages/{entry}"
    for name in OURS:
        # An editable installation has no files of its own.
        place = Path(__file__).parents[3] / name
        yield from _below(place, f"{library}/site-packages/{name}")


def _below(folder: Path, place: str) -> Iterator[tuple[Path, str]]:
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder)
        is_static = inside.parts[0].startswith("config-")
        if file.is_file() and not is_static and not LEFT_OUT.intersection(inside.parts[:-1]):
            yield file, f"{place}/{inside}"


def _add_starter(archive: tarfile.TarFile, packages: str) -> None:
    """The program that is named `python`: it finds the library of the interpreter and the packages beside itself."""
    program = Path(sys._base_executable).resolve().name  # type: ignore[attr-defined]  # not in the stubs
    text = _STARTER.format(packages=packages, program=program).encode()
    entry = tarfile.TarInfo(PROGRAM)
    entry.size, entry.mode = len(text), 0o755
    archive.addfile(entry, io.BytesIO(text))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Pack this Python and its packages into the file that is named."""
    import argparse

    parser = argparse.ArgumentParser(description="Pack this Python and its packages for the executors of a cluster.")
    parser.add_argument("target", type=Path, help=f"the archive to write, *{SUFFIX}")
    target = parser.parse_args().target
    try:
        size = pack_environment(target)
    except BadRequest as error:
        parser.error(error.message)
    print(f"{target}: {size >> 20} MB. Ship it by spark.archives={target}#environment and")
    print(f"name its Python by spark.pyspark.python=./environment/{PROGRAM}")


if __name__ == "__main__":
    main()
