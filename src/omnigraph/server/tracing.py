"""Traces of requests by OpenTelemetry, where the environment configures it and its packages are installed.

A span is named by the method and the route, goes on with the trace that the caller sends (`traceparent`), and holds
what the log holds of a request: no body, no parameter, no token.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

_logger = logging.getLogger("omnigraph.server")

_CONFIGURED_BY = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")


class Traced(Protocol):
    """What a span tells of a request when it is over."""

    request_id: str
    status: int
    actor: str | None


def is_configured(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces."""
    wanted = any(environment.get(name) for name in _CONFIGURED_BY)
    return wanted and environment.get("OTEL_TRACES_EXPORTER", "").lower() != "none"


def start_tracing() -> None:
    """Make a provider that exports spans over OTLP, unless somebody has made one, or none is asked for."""
    if not is_configured():
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # type: ignore[import-not-found]
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found]  # an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # type: ignore[import-not-found]  # an extra
    except ImportError:
        _logger.warning(
            "traces are configured, and opentelemetry-sdk with opentelemetry-exporter-otlp-proto-http is not "
            "installed: there will be none, unless something else provides them"
        )
        return
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)


@contextmanager
def request_span(scope: Mapping[str, Any], headers: Mapping[bytes, str], passage: Traced) -> Iterator[None]:
    """A span around one request."""
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        yield
        return
    carried = {
        name.decode("latin-1"): value for name, value in headers.items() if name in (b"traceparent", b"tracestate")
    }
    tracer = trace.get_tracer("omnigraph.server")
    with tracer.start_as_current_span(
        scope["method"], context=propagate.extract(carried), kind=trace.SpanKind.SERVER
    ) as span:
        try:
            yield
        finally:
            route = getattr(scope.get("route"), "path", None)
            told = {
                "http.request.method": scope["method"],
                "http.route": route,
                "http.response.status_code": passage.status or 499,
                "omnigraph.request_id": passage.request_id,
                "omnigraph.actor": passage.actor,
            }
            span.update_name(f"{scope['method']} {route or 'none'}")
            span.set_attributes({name: value for name, value in told.items() if value is not None})
