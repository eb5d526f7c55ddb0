"""What a run of `embed` did, or would do: plain values, and the JSON that the command line and the server print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.choices import EmbedMode
from omnigraph.ledger.values import GraphCommit


@dataclass(frozen=True, slots=True)
class EmbeddedProperty:
    """One property: how many rows get a vector, and how much text that is.

    `tokens` is a guess, a quarter of the bytes, which is about what English text has. `rows_ready` of the rows have
    their vector waiting from a run that did not end. `rows_cleared` lose a vector whose text is gone.
    """

    table_key: str
    property: str
    source: str
    model: str | None
    rows: int
    tokens: int
    rows_ready: int = 0
    rows_cleared: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What was embedded, and the one commit that it made: None for a preview, and when there was nothing to do."""

    uri: str
    branch: str
    mode: EmbedMode
    properties: tuple[EmbeddedProperty, ...]
    commit: GraphCommit | None = None
    dry_run: bool = False
    engine: str = "local"
    actor_id: str | None = None

    @property
    def rows(self) -> int:
        """The rows of all properties together."""
        return sum(one.rows for one in self.properties)

    @property
    def tokens(self) -> int:
        """The tokens of all properties together."""
        return sum(one.tokens for one in self.properties)

    def to_json(self) -> dict[str, Any]:
        """The response of `embed`."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "mode": self.mode,
            "dry_run": self.dry_run,
            "rows": self.rows,
            "tokens": self.tokens,
            "properties": [one.to_json() for one in self.properties],
            "commit": self.commit.to_json() if self.commit is not None else None,
            "engine": self.engine,
        }
