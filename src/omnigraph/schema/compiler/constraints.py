"""Body constraints: `@key`, `@unique`, `@index`, `@range` and `@check`, checked against the properties they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.diagnostics import Span
from omnigraph.schema.catalog import Check, Range, column_titles, property_column
from omnigraph.schema.compiler.annotations import INTEGER_BOUNDS, finite_float
from omnigraph.schema.compiler.findings import Findings, shown
from omnigraph.schema.compiler.properties import PropertyDraft
from omnigraph.schema.patterns import BadPattern, matches, portable_pattern
from omnigraph.schema.syntax.syntax import (
    AnnotationSyntax,
    Argument,
    EndpointArgument,
    Literal,
    LiteralKind,
    Name,
    RangeArgument,
)
from omnigraph.schema.types import INTEGERS, ListType, Scalar, ScalarType, VectorType, is_number

ENDPOINTS = ("src", "dst")


@dataclass(slots=True)
class ConstraintDraft:
    """The constraints of one type as they are collected, in the order written. `key` and `uniques` hold columns."""

    key: tuple[str, ...] = ()
    key_span: Span | None = None
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    indexed: set[str] = field(default_factory=set)
    ranges: dict[str, Range] = field(default_factory=dict)
    checks: dict[str, dict[Check, None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owner:
    """The type whose constraints are read. `complete` is False when some of its properties are unknown to us."""

    name: str
    properties: dict[str, PropertyDraft]
    is_edge: bool
    complete: bool


def read_constraints(owner: Owner, body: Iterable[AnnotationSyntax], findings: Findings) -> ConstraintDraft:
    """All constraints of a type: those on its properties first, then those of its body."""
    draft = ConstraintDraft()
    for property_ in owner.properties.values():
        _read_property(owner, property_, draft, findings)
    readers = {"key": _key, "unique": _unique, "index": _index, "range": _range, "check": _check}
    for annotation in body:
        if owner.is_edge and annotation.name in ("range", "check"):
            message = f"`@{annotation.name}` is not allowed on edge types"
            findings.error("S131", message, annotation.span, "edge bodies take `@key`, `@unique` and `@index`")
            continue
        readers[annotation.name](owner, annotation, draft, findings)
    _check_defaults(owner, draft, findings)
    return draft


def refuse_constraints(owner: str, body: Iterable[AnnotationSyntax], findings: Findings) -> None:
    """Interfaces have properties only."""
    for annotation in body:
        message = f"the interface `{owner}` cannot have the constraint `@{annotation.name}(…)`"
        hint = f"write `@{annotation.name}` after the property, or put it into the nodes"
        findings.error("S131", message, annotation.span, hint)


# --- on properties -----------------------------------------------------------------------------------------------


def _read_property(owner: Owner, property_: PropertyDraft, draft: ConstraintDraft, findings: Findings) -> None:
    name = property_.name.text
    if property_.key is not None:
        if owner.is_edge:
            hint = f"write `@key(src, dst, {name})` in the body"
            findings.error("S131", "the key of an edge is not written on a property", property_.key, hint)
        elif _may_identify(property_, "@key", property_.key, findings):
            _set_key(owner, (property_column(name),), property_.key, draft, findings)
    if property_.unique is not None and _may_identify(property_, "@unique", property_.unique, findings):
        draft.uniques.append((property_column(name),))
    if property_.index is not None:
        draft.indexed.add(name)


def _may_identify(property_: PropertyDraft, what: str, span: Span, findings: Findings) -> bool:
    type_ = property_.type
    if isinstance(type_, VectorType | ListType) or type_ == ScalarType(Scalar.BLOB):
        message = f"`{property_.name.text}` is `{shown(type_)}` and cannot be in `{what}`"
        findings.error("S134", message, span, "blobs, vectors and lists have no identity")
        return False
    return True


def _set_key(owner: Owner, names: tuple[str, ...], span: Span, draft: ConstraintDraft, findings: Findings) -> None:
    if draft.key_span is not None:
        message = (
            f"`{owner.name}` has a key already: ({shown(column_titles(draft.key))}), on line {draft.key_span.line}"
        )
        findings.error(
            "S135",
            message,
            span,
            f"for one key of several properties write `@key({shown(column_titles((*draft.key, *names)))})`",
        )
        return
    by_column = {property_column(name): property_ for name, property_ in owner.properties.items()}
    for property_ in (by_column.get(column) for column in names):
        if property_ is not None and property_.nullable:
            name = property_.name.text
            message = f"the key property `{name}` of `{owner.name}` is nullable"
            findings.error("S133", message, span, f"remove the `?` from the type of `{name}`")
    draft.key, draft.key_span = names, span


# --- in bodies ---------------------------------------------------------------------------------------------------


def _key(owner: Owner, annotation: AnnotationSyntax, draft: ConstraintDraft, findings: Findings) -> None:
    names = _tuple(owner, annotation, findings)
    if names is None:
        return
    if owner.is_edge and not set(ENDPOINTS) <= set(names):
        rest = column_titles(name for name in names if name not in ENDPOINTS)
        ends = "@src, @dst" if set(ENDPOINTS) & owner.properties.keys() else "src, dst"
        hint = (
            f"write `@key({ends}, {rest})`; for the rest alone there is `@unique({rest})`"
            if rest
            else f"write `@key({ends})`"
        )
        findings.error("S137", "the key of an edge names both `src` and `dst`", annotation.span, hint)
        return
    _set_key(owner, names, annotation.span, draft, findings)


def _unique(owner: Owner, annotation: AnnotationSyntax, draft: ConstraintDraft, findings: Findings) -> None:
    names = _tuple(owner, annotation, findings)
    if names is not None:
        draft.uniques.append(names)


def _tuple(owner: Owner, annotation: AnnotationSyntax, findings: Findings) -> tuple[str, ...] | None:
    """The columns of `@key(a, b)` or `@unique(a, b)`, or None after reporting what is wrong."""
    names: dict[str, None] = {}
    valid = True
    for argument in annotation.arguments or ():
        name = _property_name(owner, annotation, argument, findings)
        if name is None:
            valid = False
        elif (column := _column(owner, argument, name.text)) in names:
            findings.error("S136", f"`{name.text}` stands twice in `@{annotation.name}`", name.span, "name it once")
            valid = False
        else:
            names[column] = None
            property_ = owner.properties.get(name.text)
            if property_ is not None and column not in ENDPOINTS:
                valid = _may_identify(property_, f"@{annotation.name}", name.span, findings) and valid
    if not annotation.arguments:
        message = f"`@{annotation.name}` names no property"
        findings.error("S132", message, annotation.span, f"write `@{annotation.name}(first, second)`")
        valid = False
    return tuple(names) if valid else None


def _column(owner: Owner, argument: Argument, name: str) -> str:
    """The column that an argument names: `@src` is always the end of an edge, `src` unless a property is called so."""
    if isinstance(argument, EndpointArgument):
        return name
    return property_column(name) if name in owner.properties else name


def _index(owner: Owner, annotation: AnnotationSyntax, draft: ConstraintDraft, findings: Findings) -> None:
    arguments = annotation.arguments or ()
    if len(arguments) != 1:
        hint = "an index covers one property; write one `@index` for each"
        findings.error("S132", "`@index` in a body names one property", annotation.span, hint)
        return
    name = _property_name(owner, annotation, arguments[0], findings)
    if name is None or _column(owner, arguments[0], name.text) in ENDPOINTS:
        return  # the ends of edges always have an index
    property_ = owner.properties.get(name.text)
    if property_ and (isinstance(property_.type, ListType) or property_.type == ScalarType(Scalar.BLOB)):
        message = f"`{name.text}` is `{shown(property_.type)}`: lists and blobs have no index, so none is built"
        findings.warning("S173", message, annotation.span, "remove `@index`")
    draft.indexed.add(name.text)


def _range(owner: Owner, annotation: AnnotationSyntax, draft: ConstraintDraft, findings: Findings) -> None:
    arguments = annotation.arguments or ()
    shape = "write `@range(property, low..high)`; either end may be left out"
    if len(arguments) != 2 or not isinstance(arguments[1], RangeArgument):
        findings.error("S132", "`@range` takes a property and a range", annotation.span, shape)
        return
    name = _property_name(owner, annotation, arguments[0], findings)
    bounds = arguments[1]
    if bounds.low is None and bounds.high is None:
        findings.error("S139", "a range needs at least one bound", bounds.span, shape)
        return
    property_ = owner.properties.get(name.text) if name else None
    if name is None or property_ is None or property_.type is None:
        return
    if not is_number(property_.type) or not isinstance(property_.type, ScalarType):
        message = f"`@range` is for numbers, and `{name.text}` is `{shown(property_.type)}`"
        findings.error("S138", message, name.span)
        return
    if name.text in draft.ranges:
        findings.error("S143", f"`{name.text}` has a range already", annotation.span, "write one range")
        return
    ends = [_bound(end, property_.type, findings) if end else None for end in (bounds.low, bounds.high)]
    low, high = ends
    if (bounds.low and low is None) or (bounds.high and high is None):
        return
    if low is not None and high is not None and low > high:
        message = f"the range is empty: {low} is above {high}"
        findings.error("S139", message, bounds.span, f"write `{high}..{low}`")
        return
    draft.ranges[name.text] = Range(name.text, low, high)


def _bound(end: Literal, type_: ScalarType, findings: Findings) -> int | float | None:
    number: int | float = end.value  # type: ignore[assignment]  # the grammar has a number here
    if type_.scalar not in INTEGERS:
        value = finite_float(number, type_.scalar)
        if value is None:
            findings.error("S139", f"the bound {end.text} is too large for `{type_}`", end.span)
        return value
    low, high = INTEGER_BOUNDS[type_.scalar]
    if end.kind is not LiteralKind.INTEGER:
        findings.error("S139", f"the bound {end.text} is not a whole number as `{type_}` is", end.span)
        return None
    if not low <= number <= high:
        message = f"the bound {end.text} does not fit `{type_}`, which holds {low} to {high}"
        findings.error("S139", message, end.span, "leave an end open that is no bound")
        return None
    return number


def _check(owner: Owner, annotation: AnnotationSyntax, draft: ConstraintDraft, findings: Findings) -> None:
    arguments = annotation.arguments or ()
    pattern = arguments[1] if len(arguments) == 2 else None
    if not isinstance(pattern, Literal) or pattern.kind is not LiteralKind.STRING:
        hint = 'write `@check(property, "pattern")`'
        findings.error("S132", "`@check` takes a property and a pattern", annotation.span, hint)
        return
    name = _property_name(owner, annotation, arguments[0], findings)
    property_ = owner.properties.get(name.text) if name else None
    if name and property_ and property_.type is not None and property_.type != ScalarType(Scalar.STRING):
        message = f"`@check` is for `String`, and `{name.text}` is `{shown(property_.type)}`"
        findings.error("S140", message, name.span)
    text = str(pattern.value)
    try:
        portable_pattern(text)
    except BadPattern as error:
        message = f"the pattern does not hold at character {error.offset + 1}: {error}"
        findings.error("S141", message, pattern.span, "the dialect is the part of RE2 that all engines share")
        return
    if name and property_:
        draft.checks.setdefault(name.text, {})[Check(name.text, text)] = None


# --- names and defaults ------------------------------------------------------------------------------------------


def _property_name(owner: Owner, annotation: AnnotationSyntax, argument: Argument, findings: Findings) -> Name | None:
    """The property (or end of an edge) that an argument names, or None after reporting what is wrong."""
    if isinstance(argument, EndpointArgument):
        if owner.is_edge and argument.name.text in ENDPOINTS:
            return argument.name
        advice = "write `src` or `dst`" if owner.is_edge else "write the name of a property"
        findings.error("S132", f"`@{argument.name.text}` is not the name of a property", argument.span, advice)
        return None
    if not isinstance(argument, Literal) or argument.kind in (LiteralKind.INTEGER, LiteralKind.FLOAT):
        message = f"`@{annotation.name}` expects the name of a property here"
        findings.error("S132", message, argument.span)
        return None
    if argument.kind is LiteralKind.STRING:
        message = f"`@{annotation.name}` expects the name of a property here, not a string"
        findings.error("S132", message, argument.span, "write the name without quotes")
        return None
    name = Name(argument.text, argument.span)
    if owner.is_edge and name.text in ENDPOINTS and annotation.name in ("key", "unique", "index"):
        return name
    if name.text in owner.properties:
        return name
    if owner.complete:
        known = (*owner.properties, *(ENDPOINTS if owner.is_edge else ()))
        hint: str | None = findings.suggest(name.text, known)
        if not owner.is_edge and name.text in ENDPOINTS:
            hint = "only edges have `src` and `dst`"
        findings.error("S130", f"`{owner.name}` has no property `{name.text}`", name.span, hint)
    return None


def _within(value: int | float, range_: Range) -> bool:
    return (range_.low is None or value >= range_.low) and (range_.high is None or value <= range_.high)


def _check_defaults(owner: Owner, draft: ConstraintDraft, findings: Findings) -> None:
    """A default that a constraint refuses would make every row that leaves it out invalid."""
    for property_ in owner.properties.values():
        if property_.default is None:
            continue
        name, value, span = property_.name.text, property_.default.value, property_.default.span
        range_ = draft.ranges.get(name)
        if range_ and isinstance(value, int | float) and not _within(value, range_):
            findings.error("S156", f"the default of `{name}` is outside its range", span)
        for check in draft.checks.get(name, ()):
            if isinstance(value, str) and not matches(check.pattern, value):
                findings.error("S156", f"the default of `{name}` does not match `{check.pattern}`", span)
