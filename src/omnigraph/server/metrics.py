"""What a server counts, for Prometheus. Labels are routes, never paths: a path would make a series of each branch."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "omnigraph_requests", "Requests by route and status.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "omnigraph_request_seconds",
            "How long requests took, to the last byte.",
            ("method", "route"),
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.under_way = Gauge(
            "omnigraph_requests_under_way", "Requests being answered.", registry=self.registry, multiprocess_mode="sum"
        )
        self.bytes_in = Counter("omnigraph_request_bytes", "Bytes of request bodies.", registry=self.registry)
        self.bytes_out = Counter("omnigraph_response_bytes", "Bytes of response bodies.", registry=self.registry)

    def text(self) -> bytes:
        """All of them; with several workers those of all workers together."""
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            gathered = CollectorRegistry()
            MultiProcessCollector(gathered)  # type: ignore[no-untyped-call]  # the library has no types here
            return generate_latest(gathered)
        return generate_latest(self.registry)
