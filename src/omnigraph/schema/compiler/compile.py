"""Compile `.pg` text to a catalog: read names, then properties, then constraints, then give out stable ids.

Every rule is checked before anything is refused, so that all errors of a text are reported together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.diagnostics import Diagnostic, Severity
from omnigraph.errors import SchemaError
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    EdgeType,
    Interface,
    InterfaceProperty,
    NodeType,
    Property,
    property_column,
)
from omnigraph.schema.compiler.annotations import cardinality_of, kept_annotation, rename_of
from omnigraph.schema.compiler.constraints import (
    ENDPOINTS,
    ConstraintDraft,
    Owner,
    read_constraints,
    refuse_constraints,
)
from omnigraph.schema.compiler.declarations import Declared, declare, is_bounded
from omnigraph.schema.compiler.findings import Findings
from omnigraph.schema.compiler.properties import (
    PropertyDraft,
    check_embeddings,
    draft_properties,
    expand_interfaces,
    warn_of_end_names,
)
from omnigraph.schema.compiler.stable_ids import IdMinter
from omnigraph.schema.syntax.parse import bounded, parse_tolerantly
from omnigraph.schema.syntax.syntax import Declaration, EdgeSyntax, InterfaceSyntax, Literal, NodeSyntax

_IN_BODIES = frozenset({"key", "unique", "index", "range", "check"})
_ON_PROPERTIES = frozenset({"default", "embed"})


@dataclass(frozen=True, slots=True)
class CheckedSchema:
    """What was found in a text, warnings included; there is a catalog when there is no error."""

    catalog: Catalog | None
    diagnostics: tuple[Diagnostic, ...]


def compile_schema(
    source: str, previous: Catalog | None = None, filename: str = "<input>", *, unused_id: int = 1
) -> Catalog:
    """The catalog of a `.pg` text. Raises SchemaError with every error.

    `previous` is the accepted catalog: types and properties that it has, by name or by `@rename_from`, keep their ids.
    New ids begin at `unused_id`, if `previous` has not given out higher ones: those of other branches are not theirs.
    """
    checked = check_schema(source, previous, unused_id=unused_id)
    if checked.catalog is None:
        errors = tuple(d for d in checked.diagnostics if d.severity is Severity.ERROR)
        raise SchemaError(bounded(errors), source, filename)
    return checked.catalog


def check_schema(source: str, previous: Catalog | None = None, *, unused_id: int = 1) -> CheckedSchema:
    """Everything there is to say about a text: the catalog, or the errors; and warnings in both cases. Never raises."""
    parsed = parse_tolerantly(source)
    findings = Findings()
    findings.extend(parsed.diagnostics)
    declared = declare(parsed, findings)
    catalog = _compile(declared, previous, findings, unused_id) if is_bounded(declared, findings) else None
    diagnostics = findings.sorted()
    failed = any(d.severity is Severity.ERROR for d in diagnostics)
    return CheckedSchema(None if failed else catalog, diagnostics)


@dataclass(frozen=True, slots=True)
class _Header:
    """What the annotations of a declaration say."""

    annotations: tuple[Annotation, ...]
    rename_from: Literal | None
    card: Cardinality


def _compile(declared: Declared, previous: Catalog | None, findings: Findings, unused_id: int) -> Catalog:
    minter = IdMinter(previous, findings, unused_id)
    interfaces: dict[str, dict[str, PropertyDraft]] = {}
    compiled: list[Interface] = []
    for interface in declared.interfaces.values():
        header = _header(interface, findings)
        drafts = draft_properties(interface.name.text, interface.body, findings)
        refuse_constraints(interface.name.text, interface.body.constraints, findings)
        interfaces[interface.name.text] = drafts
        compiled.append(_interface(interface, header, drafts, findings))
    nodes = [_node(node, interfaces, declared, minter, findings) for node in declared.nodes.values()]
    edges = [_edge(edge, declared, minter, findings) for edge in declared.edges.values()]
    return Catalog(
        tuple(sorted(nodes, key=lambda t: t.name)),
        tuple(sorted(edges, key=lambda t: t.name)),
        tuple(sorted(compiled, key=lambda t: t.name)),
        minter.next_id,
    )


def _interface(
    syntax: InterfaceSyntax, header: _Header, drafts: dict[str, PropertyDraft], findings: Findings
) -> Interface:
    properties: list[InterfaceProperty] = []
    for draft in drafts.values():
        written = [kept_annotation(a, findings) for a in draft.written if a.name != "rename_from"]
        kept = tuple(sorted((a for a in written if a), key=_annotation_order))
        if draft.type is not None:
            properties.append(InterfaceProperty(draft.name.text, draft.type, draft.nullable, kept))
    return Interface(syntax.name.text, tuple(properties), header.annotations)


def _node(
    syntax: NodeSyntax,
    interfaces: dict[str, dict[str, PropertyDraft]],
    declared: Declared,
    minter: IdMinter,
    findings: Findings,
) -> NodeType:
    name = syntax.name.text
    header = _header(syntax, findings)
    own = draft_properties(name, syntax.body, findings)
    drafts = expand_interfaces(syntax, own, interfaces, findings)
    complete = name not in declared.incomplete and all(
        interface.text in interfaces and interface.text not in declared.incomplete for interface in syntax.implements
    )
    check_embeddings(name, drafts, complete, findings)
    constraints = read_constraints(Owner(name, drafts, False, complete), syntax.body.constraints, findings)
    id_, old = minter.node(name, header.rename_from, declared.nodes.keys())
    ids = minter.properties(drafts, old)
    return NodeType(
        name,
        id_,
        _properties(drafts, ids, constraints),
        key=_in_id_order(constraints.key, ids),
        uniques=_uniques(constraints, ids),
        ranges=tuple(sorted(constraints.ranges.values(), key=lambda r: _number(ids[r.property]))),
        checks=tuple(
            sorted(
                (c for checks in constraints.checks.values() for c in checks),
                key=lambda c: (_number(ids[c.property]), c.pattern),
            )
        ),
        implements=tuple(sorted({interface.text for interface in syntax.implements})),
        annotations=header.annotations,
        iso_dates=old is None or old.iso_dates,
    )


def _edge(syntax: EdgeSyntax, declared: Declared, minter: IdMinter, findings: Findings) -> EdgeType:
    name = syntax.name.text
    header = _header(syntax, findings)
    drafts = draft_properties(name, syntax.body, findings)
    warn_of_end_names(name, drafts, findings)
    complete = name not in declared.incomplete
    check_embeddings(name, drafts, complete, findings)
    body = syntax.body.constraints if syntax.body else ()
    constraints = read_constraints(Owner(name, drafts, True, complete), body, findings)
    id_, old = minter.edge(name, header.rename_from, declared.edges.keys())
    ids = minter.properties(drafts, old)
    return EdgeType(
        name,
        id_,
        syntax.source.text,
        syntax.target.text,
        _properties(drafts, ids, constraints),
        card=header.card,
        key=_in_id_order(constraints.key, ids),
        uniques=_uniques(constraints, ids),
        annotations=header.annotations,
        iso_dates=old is None or old.iso_dates,
    )


def _properties(
    drafts: dict[str, PropertyDraft], ids: dict[str, str], constraints: ConstraintDraft
) -> tuple[Property, ...]:
    properties = [
        Property(
            name,
            ids[name],
            draft.type,
            draft.nullable,
            indexed=name in constraints.indexed,
            default=draft.default.value if draft.default else None,
            has_default=draft.default is not None,
            embed=draft.embed.spec if draft.embed else None,
            annotations=tuple(sorted(draft.annotations, key=_annotation_order)),
        )
        for name, draft in drafts.items()
        if draft.type is not None
    ]
    return tuple(sorted(properties, key=lambda p: _number(p.id)))


def _number(id_: str) -> int:
    return int(id_[1:])


def _in_id_order(columns: tuple[str, ...], ids: dict[str, str]) -> tuple[str, ...]:
    """Ends of edges first, then properties by id: an order that no rename changes."""
    return tuple(sorted(columns, key=_rank(ids)))


def _rank(ids: dict[str, str]) -> Callable[[str], int]:
    numbers = {property_column(name): _number(id_) for name, id_ in ids.items()}
    return lambda column: ENDPOINTS.index(column) - 2 if column in ENDPOINTS else numbers[column]


def _uniques(constraints: ConstraintDraft, ids: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    tuples = {_in_id_order(names, ids) for names in constraints.uniques}
    rank = _rank(ids)
    return tuple(sorted(tuples, key=lambda columns: [rank(column) for column in columns]))


# --- annotations of declarations ---------------------------------------------------------------------------------


def _header(declaration: Declaration, findings: Findings) -> _Header:
    kept: list[Annotation] = []
    rename: Literal | None = None
    card = Cardinality()
    seen: set[str] = set()
    for annotation in declaration.annotations:
        name = annotation.name
        if name in seen and name in ("rename_from", "card"):
            message = f"`@{name}` stands twice on `{declaration.name.text}`"
            findings.error("S157", message, annotation.span, "remove one of them")
        elif name == "rename_from" and not isinstance(declaration, InterfaceSyntax):
            rename = rename_of(annotation, findings)
        elif name == "card" and isinstance(declaration, EdgeSyntax):
            card = cardinality_of(annotation, findings) or card
        elif name in ("rename_from", "card"):
            hint = "`@card` is for edge types" if name == "card" else "interfaces have no identity: rename them freely"
            message = f"`@{name}` is not allowed on `{declaration.name.text}`"
            findings.error("S151", message, annotation.span, hint)
        elif name in _IN_BODIES or name in _ON_PROPERTIES:
            place = "between the braces" if name in _IN_BODIES else "after a property"
            message = f"`@{name}` is not allowed on `{declaration.name.text}` itself"
            findings.error("S151", message, annotation.span, f"write it {place}")
        else:
            annotation_kept = kept_annotation(annotation, findings)
            kept.extend([annotation_kept] if annotation_kept else [])
        seen.add(name)
    return _Header(tuple(sorted(kept, key=_annotation_order)), rename, card)


def _annotation_order(annotation: Annotation) -> tuple[str, str]:
    return annotation.name, repr((annotation.args, annotation.options))
