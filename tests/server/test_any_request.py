"""Requests that a machine makes up from the OpenAPI document: no 500, and what is said is what is meant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import make
from tests.server.running import serving

CHECKS = [
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 60 if os.environ.get("OMNIGRAPH_EXPLORE") else 6


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fuzzed")
    graph = GraphSettings("default", make(folder), queries=str(folder / "queries"))
    with serving(graph, actor_requests=1000) as running:
        yield schemathesis.openapi.from_url(f"{running.url}/openapi.json")


def test_whatever_comes(api: Any) -> None:
    asked = 0
    for found in api.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            if "graph_id" in case.path_parameters:
                case.path_parameters["graph_id"] = "default"
            case.call_and_validate(checks=CHECKS, timeout=60)

        ask()
        asked += 1
    assert asked > 25
