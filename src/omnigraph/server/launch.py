"""The program `omnigraph-server`: from the command line and the environment to a server that listens."""

from __future__ import annotations

import argparse
import logging
import logging.config
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.server.bearer_tokens import read_tokens
from omnigraph.server.generation import VARIABLE as GENERATION_VARIABLE
from omnigraph.server.generation import Generation
from omnigraph.server.process import even_shares
from omnigraph.server.server_settings import ONLY_GRAPH, GraphSettings, ServerSettings, limits_from, parse_bind

_logger = logging.getLogger("omnigraph.server")

KEEP_ALIVE_SECONDS = 75
"""How long a connection may be idle. Longer than clients and proxies keep one: whoever closes it first should be them,
since a server that does may do so while the next request is on its way."""


BACKLOG = 2048
"""So many connections may wait to be taken: as many as the server below asks for."""


def run() -> None:
    """The entry point of the console script."""
    with suppress(OmniGraphError):  # what is wrong with the log is told with all else
        logging.config.dictConfig(log_config())
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Serve until told to stop; the exit code."""
    try:
        settings = read_arguments(argv, os.environ)
        return serve(settings)
    except OmniGraphError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.outcome.exit_code


def read_arguments(argv: Sequence[str], environment: Any) -> ServerSettings:
    """What the command line says, and where it says nothing, the environment."""
    parser = argparse.ArgumentParser(
        prog="omnigraph-server",
        description="Serve a graph, or a cluster, over HTTP.",
        epilog="Tokens come from the environment only.",
    )
    parser.add_argument("uri", nargs="?", help="the graph (OMNIGRAPH_TARGET_URI)")
    parser.add_argument("--cluster", help="a cluster instead of a graph: its folder or its storage (OMNIGRAPH_CLUSTER)")
    parser.add_argument(
        "--require-all-graphs", action="store_true", help="do not start when a graph of the cluster cannot be served"
    )
    parser.add_argument("--policy", help="a policy file, YAML (OMNIGRAPH_POLICY)")
    parser.add_argument(
        "--queries", help="stored queries: a folder, a .gq file, a YAML list or map (OMNIGRAPH_QUERIES)"
    )
    parser.add_argument("--bind", help="HOST:PORT; port 0 picks a free one (OMNIGRAPH_BIND); 127.0.0.1:8080 by default")
    parser.add_argument("--unauthenticated", action="store_true", help="let in everybody, without tokens")
    parser.add_argument("--workers", type=int, default=1, help="processes that serve together")
    parser.add_argument("--combine", action="store_true", help="let mutations that wait share their commits")
    given = parser.parse_args(argv)
    _log_level(environment)
    named = environment.get("OMNIGRAPH_TARGET_URI")
    if given.uri and named and given.uri != named:
        raise BadRequest(f"the command line names {given.uri} and OMNIGRAPH_TARGET_URI names {named}: leave out one")
    uri = given.uri or named
    cluster = _cluster(given, uri, environment)
    if not uri and not cluster:
        raise BadRequest(
            "no graph to serve: name its URI or set OMNIGRAPH_TARGET_URI; for a cluster, --cluster or OMNIGRAPH_CLUSTER"
        )
    if given.workers < 1:
        raise BadRequest(f"--workers must be at least 1 and is {given.workers}")
    host, port = parse_bind(given.bind or environment.get("OMNIGRAPH_BIND") or "127.0.0.1:8080")
    policy = given.policy or environment.get("OMNIGRAPH_POLICY") or None
    queries = given.queries or environment.get("OMNIGRAPH_QUERIES") or None
    return ServerSettings(
        graphs=(GraphSettings(ONLY_GRAPH, uri, policy, queries),) if uri else (),
        cluster=cluster,
        require_all_graphs=given.require_all_graphs,
        host=host,
        port=port,
        unauthenticated=given.unauthenticated,
        workers=given.workers,
        combine=given.combine,
        **limits_from(environment),
    )


def _cluster(given: argparse.Namespace, uri: str | None, environment: Any) -> str | None:
    """The cluster to serve; whatever else says what to serve contradicts it."""
    named = environment.get("OMNIGRAPH_CLUSTER") or None
    if given.cluster and named and given.cluster != named:
        raise BadRequest(f"the command line names {given.cluster} and OMNIGRAPH_CLUSTER names {named}: leave out one")
    cluster: str | None = given.cluster or named
    if cluster and uri:
        raise BadRequest(f"{uri} is a graph and {cluster} a cluster: serve one of the two, and leave out the other")
    for option, variable in (("policy", "OMNIGRAPH_POLICY"), ("queries", "OMNIGRAPH_QUERIES")):
        if cluster and (getattr(given, option) or environment.get(variable)):
            raise BadRequest(
                f"a cluster has its own {option}: leave out --{option} and {variable}, and declare it in cluster.yaml"
            )
    return cluster


def serve(settings: ServerSettings) -> int:
    """Listen and serve, here or in workers."""
    from omnigraph.server.offers import read_offers
    from omnigraph.server.served import refuse_contradictions

    # A client says which URI a blob is read from; this machine's files and credentials are none of its business.
    os.environ.setdefault("OMNIGRAPH_BLOB_URIS", "data")
    refuse_contradictions(settings, read_tokens(), read_offers(settings) if settings.cluster else None)
    with listen(settings.host, settings.port) as listener:
        return _serve_here(settings, listener) if settings.workers == 1 else _serve_in_workers(settings, listener)


def _serve_here(settings: ServerSettings, listener: socket.socket) -> int:
    import uvicorn

    from omnigraph.server.app import create_app
    from omnigraph.server.process.collector_pace import collect_less_often
    from omnigraph.server.process.few_heaps import share_heaps

    share_heaps()
    app: Any = create_app(settings, read_tokens())
    app.state.graphs.open()
    collect_less_often()
    server = uvicorn.Server(uvicorn.Config(app, **_options(settings)))
    _announce(listener)
    _reload_on_hangup(app)
    server.run(sockets=[listener])
    return 0 if server.started else 1


def _serve_in_workers(settings: ServerSettings, listener: socket.socket) -> int:
    import uvicorn

    from omnigraph.server.app import SETTINGS_VARIABLE

    os.environ[SETTINGS_VARIABLE] = settings.to_json()
    with tempfile.TemporaryDirectory(prefix="omnigraph-workers-") as folder:
        generation = Generation.create(Path(folder) / "generation")
        os.environ[GENERATION_VARIABLE] = str(Path(folder) / "generation")
        even_shares.Shares.create(Path(folder) / "shares")
        os.environ[even_shares.VARIABLE] = str(Path(folder) / "shares")
        os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
        config = uvicorn.Config(
            "omnigraph.server.app:app_of_this_process",
            factory=True,
            workers=settings.workers,
            loop=even_shares.LOOP,
            timeout_worker_healthcheck=15,
            **_options(settings),
        )
        _announce(listener)
        _workers(config, listener, generation).run()
    return 0


def _options(settings: ServerSettings) -> dict[str, Any]:
    from omnigraph.server.punctual_heads import PROTOCOL

    return {
        "http": PROTOCOL,
        "log_config": log_config(),
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": int(settings.drain_seconds) or 1,
    }


def _workers(config: Any, listener: socket.socket, generation: Generation) -> Any:
    """The process above the workers. A hangup makes them read again what they serve; none of them is replaced."""
    from uvicorn.supervisors import Multiprocess

    class Workers(Multiprocess):
        def handle_hup(self) -> None:
            generation.raise_it()

        def terminate_all(self) -> None:
            # Whoever comes while the workers drain is turned away at once, and does not wait for the end of it.
            listener.close()
            super().terminate_all()

    return Workers(config, sockets=[listener])


def log_config() -> dict[str, Any]:
    """The log: one JSON object on each line of standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "omnigraph.server.gate.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "loggers": {
            name: {"handlers": ["stderr"], "level": _log_level(os.environ), "propagate": False}
            for name in ("omnigraph", "uvicorn")
        },
    }


def _log_level(environment: Any) -> str:
    level = (environment.get("OMNIGRAPH_LOG") or "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise BadRequest(f"OMNIGRAPH_LOG: `{level}` is no level of a log: use DEBUG, INFO, WARNING or ERROR")
    return level


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections which send what they have at once.

    Head and body of a response are two writes. Where the system holds the second back until the first is acknowledged,
    and the client holds back its acknowledgement, every answer comes 40 ms late.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise BadRequest(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(True)
    return listener


def _announce(listener: socket.socket) -> None:
    """Say where the server is. From here on requests wait until a worker takes them, and none is turned away."""
    listener.listen(BACKLOG)
    host, port = listener.getsockname()[:2]
    place = f"{f'[{host}]' if ':' in host else host}:{port}"
    _logger.info("listening on %s", place)
    sys.stdout.write(f"OMNIGRAPH_LISTEN_ADDR={place}\n")
    sys.stdout.flush()


def _reload_on_hangup(app: Any) -> None:
    import threading

    def reload() -> None:
        try:
            app.state.graphs.reload()
        except OmniGraphError as error:
            _logger.error("nothing was reloaded: %s", error.message)

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=reload, daemon=True).start())
