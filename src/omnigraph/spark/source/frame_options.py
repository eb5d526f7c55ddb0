"""The options of a frame that is read from or written to a graph, as the caller gave them, and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.choices import Target
from omnigraph.errors import BadRequest
from omnigraph.spark.source.option_names import FRAME, OF_STREAMS, known_options
from omnigraph.storage.uri import parse_root


def graph_uri(given: Mapping[str, str]) -> str:
    """Where the graph lies. A local path is absolute from here on: executors work in directories of their own."""
    path = next((value for name, value in given.items() if name.lower() == "path"), None)
    if not path:
        raise BadRequest(
            'Say which graph, and only one: .load("graph.omni") or .save("s3://bucket/graph"). (Of a table in its '
            "catalog Spark tells a Python source nothing: make a temporary view instead.)"
        )
    # A table of Spark's catalog has its local path in a form that Spark alone writes.
    one_slash = path.startswith("file:/") and not path.startswith("file://")
    return parse_root(path.removeprefix("file:") if one_slash else path).uri


class FrameOptions:
    """Options by name, whatever the case."""

    def __init__(self, given: Mapping[str, str], known: Sequence[str] = FRAME) -> None:
        self._given = known_options(given, known, "the data source", OF_STREAMS)

    def get(self, name: str) -> str | None:
        """The value of an option; None when it is not given, or empty."""
        return self._given.get(name.lower()) or None

    def names(self, name: str) -> bool:
        """Whether an option is given, be it empty."""
        return name.lower() in self._given

    @property
    def uri(self) -> str:
        """Where the graph lies."""
        return graph_uri(self._given)

    @property
    def type_name(self) -> str:
        """The type that is read."""
        name = self.get("type")
        if name is None:
            raise BadRequest(
                'Say which type: .option("type", "Person"). The stream of a graph\'s changes also needs to know where '
                'it starts: .option("startingFrom", "now").'
            )
        return name

    @property
    def type_written(self) -> str:
        """The type that is written."""
        name = self.get("type")
        if name is None:
            raise BadRequest('Say of which type the rows are: .option("type", "Person").')
        return name

    @property
    def branch(self) -> str:
        """The branch, `main` unless another is named."""
        return self.get("branch") or "main"

    @property
    def target(self) -> Target:
        """The snapshot to read: a commit or tag, a version of the branch's manifest, or the newest."""
        if self.get("version") and self.get("snapshot"):
            raise BadRequest("Give `snapshot` or `version`, not both: each of them names the state to read.")
        return self.number("version") if self.get("version") else self.get("snapshot")

    @property
    def columns(self) -> list[str] | None:
        """The columns to read; None for all but the blobs."""
        names = self.get("columns")
        return None if names is None else [name.strip() for name in names.split(",") if name.strip()]

    def number(self, name: str, default: int = 0) -> int:
        """A whole number above zero."""
        text = self.get(name)
        if text is None:
            return default
        if not text.strip().isdecimal() or int(text) == 0:
            raise BadRequest(f"The option `{name}` is a whole number above zero, and `{text}` is not.")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words, in any case; the first is the default."""
        text = (self.get(name) or choices[0]).lower()
        if text not in choices:
            raise BadRequest(f"The option `{name}` is one of {', '.join(choices)}, and `{text}` is none of them.")
        return text
