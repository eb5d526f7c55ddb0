"""What the known annotations say: `@default`, `@embed`, `@rename_from`, `@card`; others are kept as written."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from omnigraph.diagnostics import Span, did_you_mean
from omnigraph.schema.catalog import Annotation, Cardinality, EmbedSpec, LiteralValue
from omnigraph.schema.compiler.findings import Findings, shown
from omnigraph.schema.floats import NoFloat, as_float
from omnigraph.schema.literals import format_date, format_datetime, parse_date, parse_datetime
from omnigraph.schema.syntax.syntax import AnnotationSyntax, Literal, LiteralKind, OptionArgument, RangeArgument
from omnigraph.schema.types import FLOATS, INTEGERS, EnumType, PropertyType, Scalar, ScalarType, VectorType

INTEGER_BOUNDS = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}

MAX_CARDINALITY = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DefaultValue:
    """A default in the form the catalog keeps: dates as ISO text, floats as floats, the rest as written."""

    value: LiteralValue


def kept_annotation(annotation: AnnotationSyntax, findings: Findings) -> Annotation | None:
    """An annotation that the language has no meaning for: kept, never refused for its name."""
    values: list[LiteralValue] = []
    options: dict[str, LiteralValue] = {}
    for argument in annotation.arguments or ():
        if isinstance(argument, Literal):
            values.append(argument.value)
        elif isinstance(argument, OptionArgument):
            options[argument.key.text] = argument.value.value
        else:
            message = f"`@{annotation.name}` can only hold literals and `key=literal`"
            findings.error("S150", message, argument.span)
            return None
    return Annotation(annotation.name, tuple(values), tuple(sorted(options.items())))


# --- @rename_from ------------------------------------------------------------------------------------------------


def rename_of(annotation: AnnotationSyntax, findings: Findings) -> Literal | None:
    """The old name in `@rename_from("Old")`."""
    arguments = annotation.arguments or ()
    if len(arguments) == 1 and isinstance(arguments[0], Literal) and _is_text(arguments[0]) and arguments[0].value:
        return arguments[0]
    findings.error("S150", "`@rename_from` takes the old name", annotation.span, 'write `@rename_from("Old")`')
    return None


def _is_text(literal: Literal) -> bool:
    return literal.kind in (LiteralKind.STRING, LiteralKind.WORD)


# --- @embed ------------------------------------------------------------------------------------------------------


def embed_of(
    name: str, type_: PropertyType | None, annotation: AnnotationSyntax, findings: Findings
) -> tuple[EmbedSpec, Span] | None:
    """The source and model of `@embed("source", model="m")`, with the place of the source."""
    if type_ is not None and not isinstance(type_, VectorType):
        message = f"`@embed` fills a vector, and `{name}` is `{shown(type_)}`"
        findings.error("S152", message, annotation.span, "write a type such as `Vector(384)`")
        return None
    source: Literal | None = None
    model: str | None = None
    for argument in annotation.arguments or ():
        if isinstance(argument, Literal) and _is_text(argument) and source is None:
            source = argument
        elif isinstance(argument, OptionArgument) and argument.key.text == "model" and model is None:
            if argument.value.kind is not LiteralKind.STRING:
                findings.error("S150", "the model of `@embed` is a string", argument.value.span)
                return None
            model = str(argument.value.value)
        else:
            hint = None
            if isinstance(argument, OptionArgument):
                hint = findings.suggest(argument.key.text, ("model",))
            findings.error("S150", "`@embed` does not take this", argument.span, hint or _EMBED_SHAPE)
            return None
    if source is None:
        findings.error("S150", "`@embed` needs the property to embed", annotation.span, _EMBED_SHAPE)
        return None
    return EmbedSpec(str(source.value), model), source.span


_EMBED_SHAPE = 'write `@embed("source")` or `@embed("source", model="name")`'

# --- @card -------------------------------------------------------------------------------------------------------


def cardinality_of(annotation: AnnotationSyntax, findings: Findings) -> Cardinality | None:
    """The bounds of `@card(min..max)`."""
    arguments = annotation.arguments or ()
    shape = "write `@card(0..1)`, `@card(1..)` or `@card(..3)`"
    if len(arguments) != 1 or not isinstance(arguments[0], RangeArgument):
        findings.error("S142", "`@card` takes a range", annotation.span, shape)
        return None
    low, high = arguments[0].low, arguments[0].high
    if low is None and high is None:
        findings.error("S142", "`@card` needs at least one bound", arguments[0].span, shape)
        return None
    for end in (low, high):
        if end is not None and not (isinstance(end.value, int) and 0 <= end.value <= MAX_CARDINALITY):
            findings.error("S142", f"a cardinality is a whole number from 0, not {end.text}", end.span, shape)
            return None
    least = int(low.value) if low is not None else 0  # type: ignore[arg-type]  # looked at above
    most = int(high.value) if high is not None else None  # type: ignore[arg-type]  # looked at above
    if most is not None and least > most:
        message = f"the least number of edges, {least}, is above the most, {most}"
        findings.error("S142", message, arguments[0].span, f"write `@card({most}..{least})`")
        return None
    return Cardinality(least, most)


# --- @default ----------------------------------------------------------------------------------------------------


def default_of(type_: PropertyType | None, annotation: AnnotationSyntax, findings: Findings) -> DefaultValue | None:
    """The value of `@default(literal)` for a property of the type, or None after reporting what is wrong."""
    arguments = annotation.arguments or ()
    if len(arguments) != 1 or not isinstance(arguments[0], Literal):
        findings.error("S150", "`@default` takes one literal", annotation.span, "write `@default(0)`")
        return None
    if type_ is None:
        return None
    literal = arguments[0]
    if not isinstance(type_, EnumType) and (not isinstance(type_, ScalarType) or type_.scalar is Scalar.BLOB):
        message = f"a property of type `{shown(type_)}` takes no default"
        findings.error("S155", message, annotation.span, "make it nullable instead")
        return None
    try:
        return DefaultValue(_typed(literal, type_))
    except _Misfit as misfit:
        message = f"the default {literal.text} does not fit `{shown(type_)}`: {misfit}"
        findings.error("S154", message, literal.span, misfit.hint)
        return None


class _Misfit(Exception):
    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def _typed(literal: Literal, type_: ScalarType | EnumType) -> LiteralValue:
    if literal.kind is LiteralKind.NULL and not isinstance(type_, EnumType):
        raise _Misfit("null is what a nullable property has without a default", "remove `@default`")
    if isinstance(type_, EnumType):
        text = str(literal.value) if literal.kind is LiteralKind.STRING else literal.text
        if text not in type_.values:
            raise _Misfit("it is not one of the values", did_you_mean(text, type_.values))
        return text
    scalar, value = type_.scalar, literal.value
    if scalar in INTEGERS:
        return _integer(literal, scalar)
    if scalar in FLOATS:
        return _float(literal, scalar)
    if scalar is Scalar.BOOL:
        if not isinstance(value, bool):
            raise _Misfit("write `true` or `false`")
        return value
    if literal.kind is not LiteralKind.STRING:
        raise _Misfit("it is not a string", f'write `@default("{literal.text}")`')
    text = str(value)
    try:
        if scalar is Scalar.DATE:
            return format_date(parse_date(text))
        if scalar is Scalar.DATETIME:
            return format_datetime(parse_datetime(text))
    except ValueError as error:
        raise _Misfit(str(error)) from error
    return text


def _integer(literal: Literal, scalar: Scalar) -> int:
    if literal.kind is not LiteralKind.INTEGER:
        raise _Misfit("it is not a whole number")
    value = int(literal.value)  # type: ignore[arg-type]  # its kind says so
    low, high = INTEGER_BOUNDS[scalar]
    if not low <= value <= high:
        raise _Misfit(f"the type holds {low} to {high}")
    return value


def _float(literal: Literal, scalar: Scalar) -> float:
    if literal.kind not in (LiteralKind.INTEGER, LiteralKind.FLOAT):
        raise _Misfit("it is not a number")
    value: float = literal.value  # type: ignore[assignment]  # its kind says so
    try:
        as_float(value, scalar)
    except NoFloat as problem:
        raise _Misfit(f"it {problem}") from problem
    return float(value) + 0.0


def finite_float(number: int | float, scalar: Scalar) -> float | None:
    """The number as a float of the type, `-0` as `0`; None when the type cannot hold it."""
    try:
        value = float(number)
        if scalar is Scalar.F32:
            struct.pack("<f", value)
    except OverflowError:
        return None
    return value + 0.0 if math.isfinite(value) else None
