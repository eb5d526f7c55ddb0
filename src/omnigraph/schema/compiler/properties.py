"""Properties of types: what their declarations and annotations say, and how interfaces give theirs to nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.diagnostics import Span
from omnigraph.schema.catalog import Annotation, EmbedSpec, LiteralValue
from omnigraph.schema.compiler.annotations import default_of, embed_of, kept_annotation, rename_of
from omnigraph.schema.compiler.declarations import check_case_clash, check_property_name
from omnigraph.schema.compiler.findings import Findings, shown
from omnigraph.schema.compiler.search_options import index_options, search_options
from omnigraph.schema.limits import MAX_VECTOR_DIMENSION
from omnigraph.schema.syntax.syntax import (
    AnnotationSyntax,
    BodySyntax,
    EnumTypeSyntax,
    ListTypeSyntax,
    Literal,
    Name,
    NamedTypeSyntax,
    NodeSyntax,
    PropertySyntax,
    SizedTypeSyntax,
    TypeSyntax,
)
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType

SCALAR_NAMES = tuple(scalar.value for scalar in Scalar)
_SINGLE = frozenset({"key", "unique", "index", "default", "embed", "rename_from", "search"})
_KNOWN = _SINGLE | {"range", "check", "card"}


@dataclass(frozen=True, slots=True)
class Embedding:
    """`@embed` with the place of its source's name."""

    spec: EmbedSpec
    span: Span


@dataclass(frozen=True, slots=True)
class Default:
    """`@default` with its place; the value is already in the form the catalog keeps."""

    value: LiteralValue
    span: Span


@dataclass(frozen=True, slots=True)
class PropertyDraft:
    """A property before it has an id. `type` is None when it could not be understood and was reported."""

    name: Name
    owner: str
    type: PropertyType | None
    nullable: bool
    key: Span | None = None
    unique: Span | None = None
    index: Span | None = None
    default: Default | None = None
    embed: Embedding | None = None
    rename_from: Literal | None = None
    annotations: tuple[Annotation, ...] = ()
    written: tuple[AnnotationSyntax, ...] = field(default=(), compare=False)


def draft_properties(owner: str, body: BodySyntax | None, findings: Findings) -> dict[str, PropertyDraft]:
    """The properties that a body declares itself, by name. A second one of a name is reported and left out."""
    drafts: dict[str, PropertyDraft] = {}
    folded: dict[str, tuple[str, Span]] = {}
    for syntax in body.properties if body else ():
        name = syntax.name
        check_property_name(name, findings)
        if name.text in drafts:
            line = drafts[name.text].name.span.line
            message = f"`{owner}` has a property `{name.text}` already, on line {line}"
            findings.error("S114", message, name.span, "remove one of them")
            continue
        check_case_clash(name, folded, owner, findings)
        drafts[name.text] = _draft(owner, syntax, findings)
    return drafts


def expand_interfaces(
    node: NodeSyntax,
    own: dict[str, PropertyDraft],
    interfaces: dict[str, dict[str, PropertyDraft]],
    findings: Findings,
) -> dict[str, PropertyDraft]:
    """The node's properties with those of its interfaces, the interfaces' first, in the order they are named."""
    merged: dict[str, PropertyDraft] = {}
    spans = {name.text: name.span for name in reversed(node.implements)}
    for interface in dict.fromkeys(name.text for name in node.implements):
        for name, draft in interfaces.get(interface, {}).items():
            if name in merged:
                _report_clash(merged[name], draft, spans[interface], findings)
            merged[name] = _merge(draft, merged[name]) if name in merged else draft
    for name, draft in own.items():
        if name in merged:
            _report_clash(merged[name], draft, draft.name.span, findings)
        merged[name] = _merge(merged[name], draft) if name in merged else draft
    folded: dict[str, tuple[str, Span]] = {}
    for draft in merged.values():
        check_case_clash(draft.name, folded, node.name.text, findings)
    return merged


def _report_clash(first: PropertyDraft, second: PropertyDraft, span: Span, findings: Findings) -> None:
    if first.type is None or second.type is None or (first.type, first.nullable) == (second.type, second.nullable):
        return
    name = second.name.text
    message = (
        f"`{name}` is `{_spelling(first)}` in `{first.owner}` (line {first.name.span.line}) "
        f"and `{_spelling(second)}` in `{second.owner}` (line {second.name.span.line})"
    )
    findings.error("S160", message, span, "a property can be stated again only with the same type")


def _spelling(draft: PropertyDraft) -> str:
    return f"{shown(draft.type)}{'?' if draft.nullable else ''}"


def _merge(base: PropertyDraft, again: PropertyDraft) -> PropertyDraft:
    """A property stated twice: the second statement's annotations count where both have one."""
    names = {annotation.name for annotation in again.annotations}
    return replace(
        again,
        type=again.type or base.type,
        key=again.key or base.key,
        unique=again.unique or base.unique,
        index=again.index or base.index,
        default=again.default or base.default,
        embed=again.embed or base.embed,
        rename_from=again.rename_from or base.rename_from,
        annotations=tuple(a for a in base.annotations if a.name not in names) + again.annotations,
    )


def warn_of_end_names(owner: str, drafts: dict[str, PropertyDraft], findings: Findings) -> None:
    """In mutations and records `from` and `to` are the ends of an edge, so that a property of that name is shadowed."""
    for name in ("from", "to"):
        if name in drafts:
            message = f"`{name}` is an end of `{owner}` where queries insert edges, so they cannot set this property"
            findings.warning("S174", message, drafts[name].name.span, f"a name such as `valid_{name}` can be set")


def check_embeddings(owner: str, drafts: dict[str, PropertyDraft], complete: bool, findings: Findings) -> None:
    """`@embed` reads a `String` property of the same type."""
    for draft in drafts.values():
        if draft.embed is None:
            continue
        source = draft.embed.spec.source
        found = drafts.get(source)
        if found is None:
            if complete:
                hint = findings.suggest(source, (d.name.text for d in drafts.values() if _is_string(d)))
                message = f"`{owner}` has no property `{source}` to embed"
                findings.error("S153", message, draft.embed.span, hint or "name a `String` property of this type")
        elif found.type is not None and not _is_string(found):
            message = (
                f"`{draft.name.text}` cannot be embedded from `{source}`: it is `{shown(found.type)}`, not `String`"
            )
            findings.error("S153", message, draft.embed.span, "name a `String` property of this type")


def _is_string(draft: PropertyDraft) -> bool:
    return draft.type == ScalarType(Scalar.STRING)


# --- one property ------------------------------------------------------------------------------------------------


def _draft(owner: str, syntax: PropertySyntax, findings: Findings) -> PropertyDraft:
    type_ = resolve_type(syntax.type, findings)
    draft = PropertyDraft(syntax.name, owner, type_, syntax.type.nullable, written=syntax.annotations)
    seen: set[str] = set()
    kept: list[Annotation | None] = []
    for annotation in syntax.annotations:
        if annotation.name in _SINGLE and annotation.name in seen:
            message = f"`@{annotation.name}` stands twice on `{syntax.name.text}`"
            findings.error("S157", message, annotation.span, "remove one of them")
            continue
        seen.add(annotation.name)
        if annotation.name == "search":
            kept.append(search_options(syntax.name.text, type_, annotation, findings))
        elif annotation.name in _KNOWN:
            draft = _annotate(draft, annotation, findings)
            if annotation.name == "index" and annotation.arguments:
                kept.append(index_options(syntax.name.text, type_, annotation, findings))
        else:
            kept.append(kept_annotation(annotation, findings))
    return replace(draft, annotations=tuple(annotation for annotation in kept if annotation))


def _annotate(draft: PropertyDraft, annotation: AnnotationSyntax, findings: Findings) -> PropertyDraft:
    name = draft.name.text
    if annotation.name == "key":
        return replace(draft, key=annotation.span)
    if annotation.name == "unique":
        return replace(draft, unique=annotation.span)
    if annotation.name == "index":
        if isinstance(draft.type, ListType) or draft.type == ScalarType(Scalar.BLOB):
            message = f"`{name}` is `{shown(draft.type)}`: lists and blobs have no index, so none is built"
            findings.warning("S173", message, annotation.span, "remove `@index`")
        return replace(draft, index=annotation.span)
    if annotation.name in ("range", "check"):
        shape = f"`@range({name}, low..high)`" if annotation.name == "range" else f'`@check({name}, "pattern")`'
        findings.error("S132", f"`@{annotation.name}` needs its arguments", annotation.span, f"write {shape}")
        return draft
    if annotation.name == "card":
        findings.error("S151", "`@card` does not belong on a property", annotation.span, "it follows an edge's ends")
        return draft
    if annotation.name == "default":
        found = default_of(draft.type, annotation, findings)
        return replace(draft, default=Default(found.value, annotation.span)) if found else draft
    if annotation.name == "embed":
        embed = embed_of(name, draft.type, annotation, findings)
        return replace(draft, embed=Embedding(*embed)) if embed else draft
    return replace(draft, rename_from=rename_of(annotation, findings))


# --- types -------------------------------------------------------------------------------------------------------


def resolve_type(syntax: TypeSyntax, findings: Findings) -> PropertyType | None:
    """The type that was written, or None after reporting why there is none."""
    base = syntax.base
    if isinstance(base, NamedTypeSyntax):
        return _named(base, findings)
    if isinstance(base, SizedTypeSyntax):
        return _sized(base, findings)
    if isinstance(base, EnumTypeSyntax):
        if base.values:
            return EnumType(tuple(sorted(set(base.values))))
        findings.error("S123", "an enum needs at least one value", base.span, "write `enum(first, second)`")
        return None
    return _list(base, findings)


def _named(base: NamedTypeSyntax, findings: Findings) -> PropertyType | None:
    if base.name in SCALAR_NAMES:
        return ScalarType(Scalar(base.name))
    if base.name == "Vector":
        findings.error("S121", "`Vector` needs its dimension", base.span, "write `Vector(384)`")
        return None
    hint = findings.suggest(base.name, (*SCALAR_NAMES, "Vector")) or _foreign_name(base.name)
    findings.error("S120", f"there is no type `{base.name}`", base.span, hint or f"types are {', '.join(SCALAR_NAMES)}")
    return None


def _foreign_name(name: str) -> str | None:
    """What other systems call our types."""
    known = {
        "int": "I64", "integer": "I64", "long": "I64", "int32": "I32", "int64": "I64", "uint32": "U32", "uint64": "U64",
        "text": "String", "str": "String", "varchar": "String", "boolean": "Bool", "float": "F64", "double": "F64",
        "float32": "F32", "float64": "F64", "number": "F64", "timestamp": "DateTime", "bytes": "Blob", "binary": "Blob",
    }  # fmt: skip
    ours = known.get(name.lower())
    return f"write `{ours}`" if ours else None


def _sized(base: SizedTypeSyntax, findings: Findings) -> PropertyType | None:
    if base.name != "Vector":
        if base.name in SCALAR_NAMES:
            findings.error("S124", f"`{base.name}` takes no size", base.span, f"write `{base.name}`")
        else:
            hint = findings.suggest(base.name, ("Vector",)) or "only `Vector(n)` has a size"
            findings.error("S120", f"there is no type `{base.name}`", base.span, hint)
        return None
    size = base.size.value
    if isinstance(size, int) and 1 <= size <= MAX_VECTOR_DIMENSION:
        return VectorType(size)
    message = f"a vector has between 1 and {MAX_VECTOR_DIMENSION} components, not {base.size.text}"
    findings.error("S121", message, base.size.span)
    return None


def _list(base: ListTypeSyntax, findings: Findings) -> PropertyType | None:
    item = base.item
    if item.nullable:
        findings.error("S122", "the items of a list cannot be nullable", item.span, "write `[T]?` for a list or null")
        return None
    if isinstance(item.base, NamedTypeSyntax):
        resolved = resolve_type(item, findings)
        if isinstance(resolved, ScalarType) and resolved.scalar is not Scalar.BLOB:
            return ListType(resolved.scalar)
        if resolved is None:
            return None
    message = "a list holds scalars: no lists, enums, vectors or blobs"
    findings.error("S122", message, item.span, f"write one of {', '.join(n for n in SCALAR_NAMES if n != 'Blob')}")
    return None
