"""One request to a provider over HTTP, tried again while that can help and the deadline allows it.

Busy servers, dropped connections and answers that make no sense are tried again, with pauses that grow and differ, or
as long as the server says. What the server refuses is not. The key goes into a header and nowhere else: no message of
ours holds it, and what a server answers is shown without it.
"""

from __future__ import annotations

import email.utils
import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx

from omnigraph.embed.provider_settings import EmbeddingSettings
from omnigraph.errors import EmbeddingRefused, EmbeddingUnavailable

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_SHOWN = 300


class Calls:
    """The connection to one provider. Safe to share between threads, which share its limit of calls too."""

    def __init__(self, settings: EmbeddingSettings, base_url: str, headers: Mapping[str, str]) -> None:
        self._settings = settings
        self._client = httpx.Client(
            base_url=base_url.rstrip("/") + "/", headers=dict(headers), timeout=settings.timeout, follow_redirects=False
        )
        self._lock = threading.Lock()
        self._next_call = 0.0

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object that the provider answers. Raises when it refuses, or gives none in time."""
        deadline = time.monotonic() + self._settings.deadline
        pause = _FIRST_PAUSE
        tries = 0
        while True:
            self._wait_for_my_turn(deadline)
            tries += 1
            problem, asked_pause = self._try(path, body, deadline)
            if isinstance(problem, Mapping):
                return problem
            wait = max(asked_pause or 0.0, pause * random.uniform(0.5, 1.5))
            if time.monotonic() + wait >= deadline:
                raise EmbeddingUnavailable(
                    f"the embedding provider at {self._client.base_url} gave no vectors within "
                    f"{self._settings.deadline:g} s ({tries} {'try' if tries == 1 else 'tries'}): {problem}"
                )
            time.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _try(self, path: str, body: Mapping[str, Any], deadline: float) -> tuple[Mapping[str, Any] | str, float | None]:
        """The answer, or what was wrong and how long the server asks to wait."""
        left = max(0.05, min(self._settings.timeout, deadline - time.monotonic()))
        try:
            answer = self._client.post(path, json=dict(body), timeout=left)
        except httpx.HTTPError as error:
            return f"{type(error).__name__} {self._shown(str(error))}".strip(), None
        if answer.status_code in _TRY_AGAIN:
            return f"status {answer.status_code} {self._shown(answer.text)}", _asked_pause(answer)
        if answer.status_code != 200:
            raise EmbeddingRefused(
                f"the embedding provider at {self._client.base_url} refused: status {answer.status_code} "
                f"{self._shown(answer.text)}",
                status=answer.status_code,
            )
        try:
            found = answer.json()
        except ValueError:
            return "its answer is no JSON", None
        return (found, None) if isinstance(found, Mapping) else ("its answer is no JSON object", None)

    def _wait_for_my_turn(self, deadline: float) -> None:
        limit = self._settings.calls_per_second
        if not limit:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_call)
            if turn >= deadline:
                raise EmbeddingUnavailable(
                    f"the limit of {limit:g} calls a second leaves no turn within {self._settings.deadline:g} s"
                )
            self._next_call = turn + 1.0 / limit
        time.sleep(turn - now)

    def _shown(self, text: str) -> str:
        key = self._settings.api_key
        text = " ".join(text.split())
        if key:
            text = text.replace(key, "…")
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _asked_pause(answer: httpx.Response) -> float | None:
    """What `Retry-After` says, in seconds; it may be a number or a date."""
    written = answer.headers.get("retry-after", "").strip()
    if not written:
        return None
    try:
        return max(0.0, float(written))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(written)
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.timestamp() - time.time())
