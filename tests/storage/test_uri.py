"""Where a graph lives, in one normal form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.objects.path_segments import decode_name, encode_name
from omnigraph.storage.uri import Scheme, parse_root


def test_local_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        "my graph",
        "./my graph",
        f"{tmp_path}/./my graph/",
        f"file://{tmp_path}/my graph",
        f"file://{tmp_path}/my%20graph",
    ):
        root = parse_root(text)
        assert root.uri == str(tmp_path / "my graph")
        assert root.is_local
    assert parse_root(tmp_path / "x").uri == str(tmp_path / "x")


def test_s3_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    root = parse_root("s3://bucket//a/./b/")
    assert (root.scheme, root.uri, root.bucket, root.prefix) == (Scheme.S3, "s3://bucket/a/b", "bucket", "a/b")
    assert root.child("nodes/n1") == "s3://bucket/a/b/nodes/n1"
    assert parse_root("s3://bucket").child("x") == "s3://bucket/x"


def test_children_stay_below_the_root() -> None:
    root = parse_root("/graphs/one")
    assert root.child("./nodes//n 1/") == f"{os.sep}graphs/one/nodes/n 1"
    with pytest.raises(BadRequest):
        root.child("../two")


@pytest.mark.parametrize("text", ["", "  ", "gs://x", "s3://", "file://host/path", "a\0b", "s3:/x/y", "FILE:/x"])
def test_what_is_no_place_for_a_graph_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_root(text)


def test_a_scheme_may_be_in_capitals() -> None:
    assert parse_root("S3://bucket/X").uri == "s3://bucket/X"
    assert parse_root("FILE:///tmp/X").uri == "/tmp/X"


def test_options_come_from_the_usual_variables() -> None:
    root = parse_root("s3://bucket/x")
    retries = {"client_max_retries": "12", "client_retry_timeout": "30"}
    assert root.storage_options({}) == {"aws_region": "us-east-1", **retries}
    assert root.storage_options({"AWS_ENDPOINT_URL": "http://localhost:9", "AWS_DEFAULT_REGION": "eu"}) == {
        "aws_endpoint": "http://localhost:9",
        "allow_http": "true",
        "aws_region": "eu",
        **retries,
    }
    assert (
        root.storage_options({"AWS_ENDPOINT_URL_S3": "https://a", "AWS_ENDPOINT_URL": "https://b"})["aws_endpoint"]
        == "https://a"
    )
    assert not any("secret" in key for key in root.storage_options({"AWS_SECRET_ACCESS_KEY": "hidden"}))
    assert parse_root("/x").storage_options({"AWS_REGION": "eu"}) == {}


@pytest.mark.parametrize("name", ["main", "review/1", "a b", "ä%=", "..", ".hidden", "x=2F", "emoji 🙂", "a\\b:c*"])
def test_names_survive_as_path_segments(name: str) -> None:
    segment = encode_name(name)
    assert decode_name(segment) == name
    assert "/" not in segment
    assert "%" not in segment
    assert not segment.startswith(".")


def test_different_names_never_share_a_segment() -> None:
    names = ["a/b", "a=2Fb", "a%2Fb", "a b", "a=20b"]
    assert len({encode_name(name) for name in names}) == len(names)
