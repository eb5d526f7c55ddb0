"""The syntax tree of `.pg`: what was written, with the place of every part, before anything is checked.

Spans (and the spelling of literals) take no part in equality: two trees are equal when they say the same in the same
order, wherever it stands in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.diagnostics import Span
from omnigraph.schema.catalog import LiteralValue


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier."""

    text: str
    span: Span = field(compare=False)


class LiteralKind(StrEnum):
    """How a literal was written. A bare word such as `active` is a `WORD`; its value is its text."""

    STRING = "string"
    WORD = "word"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `text` is how it was spelt."""

    kind: LiteralKind
    value: LiteralValue
    text: str = field(compare=False)
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class RangeArgument:
    """`low..high`; either end may be absent."""

    low: Literal | None
    high: Literal | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class OptionArgument:
    """`key=literal`."""

    key: Name
    value: Literal
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EndpointArgument:
    """`@src` or `@dst` inside an argument list; the name is without the `@`."""

    name: Name
    span: Span = field(compare=False)


Argument = Literal | RangeArgument | OptionArgument | EndpointArgument


@dataclass(frozen=True, slots=True)
class AnnotationSyntax:
    """`@name` or `@name(arguments)`; `arguments` is None when there are no parentheses."""

    name: str
    arguments: tuple[Argument, ...] | None
    span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedTypeSyntax:
    """`String`, `I64` and so on."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class SizedTypeSyntax:
    """`Vector(384)`."""

    name: str
    size: Literal
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EnumTypeSyntax:
    """`enum(a, b)`, values in the order written."""

    values: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ListTypeSyntax:
    """`[T]`. The item may be anything here; that it must be a scalar is checked later."""

    item: TypeSyntax
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeSyntax:
    """A type with its optional `?`."""

    base: NamedTypeSyntax | SizedTypeSyntax | EnumTypeSyntax | ListTypeSyntax
    nullable: bool
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class PropertySyntax:
    """`name: Type` and the annotations that belong to it."""

    name: Name
    type: TypeSyntax
    annotations: tuple[AnnotationSyntax, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ConstraintSyntax:
    """A body constraint: `@unique(a, b)`, `@range(age, 0..150)` and so on."""

    annotation: AnnotationSyntax
    span: Span = field(compare=False)


BodyItem = PropertySyntax | ConstraintSyntax


@dataclass(frozen=True, slots=True)
class BodySyntax:
    """What stands between the braces, in order."""

    items: tuple[BodyItem, ...]
    span: Span = field(compare=False)

    @property
    def properties(self) -> tuple[PropertySyntax, ...]:
        """The properties, in order."""
        return tuple(item for item in self.items if isinstance(item, PropertySyntax))

    @property
    def constraints(self) -> tuple[AnnotationSyntax, ...]:
        """The body constraints, in order."""
        return tuple(item.annotation for item in self.items if isinstance(item, ConstraintSyntax))


@dataclass(frozen=True, slots=True)
class InterfaceSyntax:
    """`interface Name { … }`."""

    name: Name
    annotations: tuple[AnnotationSyntax, ...]
    body: BodySyntax
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    """`node Name implements A, B { … }`."""

    name: Name
    annotations: tuple[AnnotationSyntax, ...]
    implements: tuple[Name, ...]
    body: BodySyntax
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class EdgeSyntax:
    """`edge Name: From -> To { … }`; `body` is None when there are no braces."""

    name: Name
    source: Name
    target: Name
    annotations: tuple[AnnotationSyntax, ...]
    body: BodySyntax | None
    span: Span = field(compare=False)


Declaration = InterfaceSyntax | NodeSyntax | EdgeSyntax


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A whole `.pg` text."""

    declarations: tuple[Declaration, ...]
