"""Collects what a compiler finds, so that all errors of a text are reported and not only the first."""

from __future__ import annotations

from omnigraph.diagnostics import Diagnostic, Severity, Span


class Findings:
    """A growing list of diagnostics. The same finding at the same place is kept once."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, int, int, str], Diagnostic] = {}

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Something that makes the text invalid."""
        self._add(Diagnostic(code, message, span, Severity.ERROR, hint))

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Something that is valid and probably not meant."""
        self._add(Diagnostic(code, message, span, Severity.WARNING, hint))

    def extend(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Take over findings made elsewhere."""
        for diagnostic in diagnostics:
            self._add(diagnostic)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of the text."""
        return tuple(sorted(self._diagnostics.values(), key=lambda d: (d.span.start, d.span.end, d.code, d.message)))

    def _add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.span.start, diagnostic.span.end, diagnostic.message)
        self._diagnostics.setdefault(key, diagnostic)
