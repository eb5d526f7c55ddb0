"""What is wrong with a folder, each with its place; gathered, so that a person mends all of it in one go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.cluster.folder.placed_yaml import Place
from omnigraph.diagnostics import Span
from omnigraph.errors import BadRequest, LanguageError, OmniGraphError


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `line` and `column` are 0 where a file as a whole is meant."""

    file: str
    message: str
    line: int = 0
    column: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "file": self.file,
            "line": self.line or None,
            "column": self.column or None,
            "message": self.message,
        }

    @property
    def text(self) -> str:
        """`file:line:column: message`, as compilers print it."""
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{place}: {self.message}"


class Problems:
    """The problems of a folder, as they are found."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, file: str, message: str, place: Place | None = None) -> None:
        """One more; the same one is told once."""
        problem = Problem(file, message, place.line if place else 0, place.column if place else 0)
        if problem not in self.found:
            self.found.append(problem)

    def add_error(self, file: str, error: OmniGraphError, start: Place | None = None) -> None:
        """What an error of a language, or another one, says about a file, or about its text from `start` on."""
        if isinstance(error, LanguageError):
            for finding in error.diagnostics:
                hint = f"; {finding.hint}" if finding.hint else ""
                self.add(file, f"{finding.message} [{finding.code}]{hint}", _from(start, finding.span))
            return
        for message in error.details.get("problems") or [error.message]:
            self.add(file, str(message))

    def sorted(self) -> tuple[Problem, ...]:
        """By file and place."""
        return tuple(sorted(self.found, key=lambda problem: (problem.file, problem.line, problem.column)))


def _from(start: Place | None, span: Span) -> Place:
    if start is None:
        return Place(span.line, span.column)
    return Place(start.line + span.line - 1, span.column + (start.column - 1 if span.line == 1 else 0))


class ClusterInvalid(BadRequest):
    """The folder does not describe a cluster. `problems` has all that is wrong with it."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message, problems=[problem.to_json() for problem in problems])
        self.problems = problems

    @classmethod
    def of(cls, problems: tuple[Problem, ...]) -> ClusterInvalid:
        """The error that lists them all."""
        listed = "\n".join(f"  {problem.text}" for problem in problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        return cls(f"the cluster is not valid, {count}:\n{listed}", problems)
