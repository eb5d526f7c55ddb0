"""Traces, where they are configured: one span for each request, in the caller's trace, with nothing that is secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.server import tracing
from omnigraph.server.server_settings import GraphSettings
from tests.server.graphs import ALL_PEOPLE, TOKENS, make
from tests.server.running import serving

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Recorder:
    """A tracer that keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []

    @contextmanager
    def start_as_current_span(self, name: str, *, context: Any, kind: Any) -> Iterator[Any]:
        from opentelemetry import trace

        told: dict[str, Any] = {"kind": kind.name}
        told["trace"] = f"{trace.get_current_span(context).get_span_context().trace_id:032x}"

        class Span:
            def update_name(self, name: str) -> None:
                told["name"] = name

            def set_attributes(self, values: dict[str, Any]) -> None:
                told.update(values)

        yield Span()
        self.spans.append(told)


def test_a_request_is_a_span_of_its_callers_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = pytest.importorskip("opentelemetry.trace", reason="traces are optional")
    recorder = Recorder()
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: recorder)
    with serving(GraphSettings("default", make(tmp_path)), tokens=TOKENS) as running:
        with running.client(TOKENS["act-ada"]) as http:
            headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-Id": "mine"}
            http.post("/query", json={"query": ALL_PEOPLE}, headers=headers)
            http.get("/nowhere")
        with running.client("wrong") as http:
            http.get("/snapshot")
    asked, lost, refused = recorder.spans
    assert asked == {
        "name": "POST /graphs/{graph_id}/query",
        "kind": "SERVER",
        "trace": TRACE,
        "http.request.method": "POST",
        "http.route": "/graphs/{graph_id}/query",
        "http.response.status_code": 200,
        "omnigraph.request_id": "mine",
        "omnigraph.actor": "act-ada",
    }
    assert (lost["name"], lost["http.response.status_code"]) == ("GET none", 404)
    assert (refused["http.response.status_code"], "omnigraph.actor" in refused) == (401, False)
    assert not any(token in str(recorder.spans) for token in (*TOKENS.values(), "wrong"))


def test_without_configuration_there_is_none(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert not tracing.is_configured({})
    assert not tracing.is_configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"})
    assert tracing.is_configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"})
    tracing.start_tracing()
    assert caplog.text == ""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    tracing.start_tracing()
    assert "opentelemetry-sdk" in caplog.text
