"""Roots on every kind of store, and a small table to work on."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.storage.objects.objects import ObjectStore, open_objects
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uri import Root, parse_root

PEOPLE = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("age", pa.int64())])
ON_S3 = pytest.param("s3", marks=pytest.mark.s3)


def people(*ids: object, age: int | None = 0) -> pa.Table:
    """Rows of the small table."""
    return pa.table({"id": [str(one) for one in ids], "age": pa.array([age] * len(ids), pa.int64())}, schema=PEOPLE)


def make_root(kind: str, directory: Path, request: pytest.FixtureRequest) -> Root:
    """A fresh root of a kind."""
    if kind == "local":
        return parse_root(directory / "a graph")
    if kind == "memory":
        return parse_root(f"memory://{uuid.uuid4().hex}")
    fresh: Callable[[], str] = request.getfixturevalue("s3_uri")
    return parse_root(fresh())


@pytest.fixture(scope="session")
def other_process(s3_server: str) -> Iterator[Pool]:
    """Two other processes that know the S3 server, started once: importing Lance anew takes seconds."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        yield pool


@pytest.fixture(params=["local", "memory", ON_S3])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An object store of each kind."""
    return open_objects(make_root(request.param, tmp_path, request))


@pytest.fixture(params=["local", ON_S3])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """A root where tables can live, of each kind."""
    return make_root(request.param, tmp_path, request)


@pytest.fixture
def tables(root: Root) -> TableStore:
    """The tables of a fresh graph, on each kind of store."""
    return TableStore(root)


@pytest.fixture
def local_tables(tmp_path: Path) -> TableStore:
    """The tables of a fresh graph on local disk."""
    return TableStore(parse_root(tmp_path / "a graph"))
