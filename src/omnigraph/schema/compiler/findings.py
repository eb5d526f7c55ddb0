"""Collects what a compiler finds, so that all errors of a text are reported and not only the first."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.diagnostics import Diagnostic, Severity, Span, did_you_mean
from omnigraph.schema.limits import MAX_DIAGNOSTICS, MAX_FINDINGS

_SHOWN = 80


def shown(value: object) -> str:
    """A type or a list of names as a message quotes it: cut short when it is long."""
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class Findings:
    """A growing list of diagnostics, up to a bound for each severity. The same finding is kept once."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, int, int, str], Diagnostic] = {}
        self._kept = dict.fromkeys(Severity, 0)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Something that makes the text invalid."""
        self._add(Diagnostic(code, message, span, Severity.ERROR, hint))

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Something that is valid and probably not meant."""
        self._add(Diagnostic(code, message, span, Severity.WARNING, hint))

    def suggest(self, name: str, known: Iterable[str]) -> str | None:
        """A hint with the nearest known name, as long as there are few enough errors to read hints."""
        return did_you_mean(name, known) if len(self._diagnostics) < MAX_DIAGNOSTICS else None

    def extend(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Take over findings made elsewhere."""
        for diagnostic in diagnostics:
            self._add(diagnostic)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of the text."""
        return tuple(sorted(self._diagnostics.values(), key=lambda d: (d.span.start, d.span.end, d.code, d.message)))

    def _add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.span.start, diagnostic.span.end, diagnostic.message)
        if self._kept[diagnostic.severity] < MAX_FINDINGS and key not in self._diagnostics:
            self._diagnostics[key] = diagnostic
            self._kept[diagnostic.severity] += 1
