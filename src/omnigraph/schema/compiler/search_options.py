"""What `@search(…)` on a text and `@index(metric="…")` on a vector say; the catalog keeps both as annotations."""

from __future__ import annotations

from omnigraph.schema.catalog import Annotation, LiteralValue
from omnigraph.schema.compiler.findings import Findings, shown
from omnigraph.schema.search_settings import LANGUAGES, Metric
from omnigraph.schema.syntax.syntax import AnnotationSyntax, OptionArgument
from omnigraph.schema.types import PropertyType, Scalar, ScalarType, VectorType

_SWITCHES = ("stem", "stop_words", "fold", "positions")
_SEARCH_SHAPE = 'write `@search(language="english", stem=true)`; also stop_words, fold and positions'
_INDEX_SHAPE = 'write `@index(metric="cosine")`, `"l2"` or `"dot"`'


def search_options(
    name: str, type_: PropertyType | None, annotation: AnnotationSyntax, findings: Findings
) -> Annotation | None:
    """How the texts of a property become tokens, or None after reporting what is wrong."""
    if type_ is not None and type_ != ScalarType(Scalar.STRING):
        message = f"`@search` is about a `String`, and `{name}` is `{shown(type_)}`"
        findings.error("S150", message, annotation.span, "remove `@search`")
        return None
    options = _options(annotation, findings, ("language", *_SWITCHES), _SEARCH_SHAPE)
    if options is None:
        return None
    for key, (value, argument) in options.items():
        if key in _SWITCHES and not isinstance(value, bool):
            findings.error("S150", f"`{key}` of `@search` is `true` or `false`", argument.value.span, _SEARCH_SHAPE)
            return None
        if key == "language" and value not in LANGUAGES:
            hint = findings.suggest(str(value), LANGUAGES) or f"it is one of {', '.join(LANGUAGES)}"
            findings.error("S150", f"`@search` knows no language `{value}`", argument.value.span, hint)
            return None
    return Annotation("search", (), tuple(sorted((key, value) for key, (value, _) in options.items())))


def index_options(
    name: str, type_: PropertyType | None, annotation: AnnotationSyntax, findings: Findings
) -> Annotation | None:
    """The metric of a vector's index, or None after reporting what is wrong."""
    if type_ is not None and not isinstance(type_, VectorType):
        message = f"`@index` takes a metric for vectors only, and `{name}` is `{shown(type_)}`"
        findings.error("S150", message, annotation.span, "write `@index` alone")
        return None
    options = _options(annotation, findings, ("metric",), _INDEX_SHAPE)
    if options is None:
        return None
    for value, argument in options.values():
        if value not in list(Metric):
            findings.error("S150", f"`{value}` is no metric", argument.value.span, _INDEX_SHAPE)
            return None
    return Annotation("index", (), tuple((key, value) for key, (value, _) in options.items()))


def _options(
    annotation: AnnotationSyntax, findings: Findings, known: tuple[str, ...], shape: str
) -> dict[str, tuple[LiteralValue, OptionArgument]] | None:
    options: dict[str, tuple[LiteralValue, OptionArgument]] = {}
    for argument in annotation.arguments or ():
        if not isinstance(argument, OptionArgument) or argument.key.text not in known or argument.key.text in options:
            hint = findings.suggest(argument.key.text, known) if isinstance(argument, OptionArgument) else None
            findings.error("S150", f"`@{annotation.name}` does not take this", argument.span, hint or shape)
            return None
        options[argument.key.text] = (argument.value.value, argument)
    return options
