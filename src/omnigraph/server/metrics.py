"""What a server counts, for Prometheus. Labels are routes, never paths: a path would make a series of each branch."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are told apart. Any other word may stand in its place, as many as somebody likes to make up."""

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

        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. To find the series of its labels costs more than to count, so they are kept."""
        found = self._series.get((method, route, status))
        if found is None:
            known = method if method in METHODS else "other"
            found = self.requests.labels(known, route, status), self.seconds.labels(known, route)
            if known == method:
                self._series[method, route, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        """All of them; with several workers those of all workers together."""
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            gathered = CollectorRegistry()
            MultiProcessCollector(gathered)  # type: ignore[no-untyped-call]  # the library has no types here
            return generate_latest(gathered)
        return generate_latest(self.registry)
