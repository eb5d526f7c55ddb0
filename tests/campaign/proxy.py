"""A proxy on loopback between a graph and its object store that drops and delays what passes through."""

from __future__ import annotations

import random
import socket
import threading
import time
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to an endpoint. `trouble` is the share of answers that are delayed or cut off."""

    def __init__(self, endpoint: str, trouble: float) -> None:
        parts = urlsplit(endpoint)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._chance = random.Random(1)
        self.trouble = trouble
        self.dropped = self.delayed = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            try:
                upstream = socket.create_connection(self._target, timeout=30)
            except OSError:
                client.close()
                continue
            for source, sink, disturbed in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(target=self._pump, args=(source, sink, disturbed), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, disturbed: bool) -> None:
        try:
            while data := source.recv(65536):
                if disturbed and self._chance.random() < self.trouble:
                    if self._chance.random() < 0.5:
                        self.dropped += 1
                        break
                    self.delayed += 1
                    time.sleep(self._chance.uniform(0.05, 0.6))
                sink.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            sink.close()
