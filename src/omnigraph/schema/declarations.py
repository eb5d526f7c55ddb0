"""Who is declared in a schema text: the names of types and properties, and the rules that names follow."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.diagnostics import Span
from omnigraph.schema.findings import Findings
from omnigraph.schema.limits import MAX_EXPANDED_PROPERTIES, MAX_NAME_LENGTH, MAX_PROPERTIES
from omnigraph.schema.parse import ParsedSchema
from omnigraph.schema.syntax import Declaration, EdgeSyntax, InterfaceSyntax, Name, NodeSyntax

LANCE_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""Virtual columns of Lance."""

_KINDS = {InterfaceSyntax: "interface", NodeSyntax: "node type", EdgeSyntax: "edge type"}


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of a text by name, in the order written.

    `broken` are names whose declaration did not parse, `incomplete` those of which a part did not.
    """

    interfaces: dict[str, InterfaceSyntax]
    nodes: dict[str, NodeSyntax]
    edges: dict[str, EdgeSyntax]
    incomplete: frozenset[str]
    broken: frozenset[str]


def declare(parsed: ParsedSchema, findings: Findings) -> Declared:
    """Give every declaration its name and report names that clash, are reserved or ill-formed."""
    declared = Declared({}, {}, {}, parsed.incomplete, parsed.broken)
    by_folded_name: dict[str, Declaration] = {}
    for declaration in parsed.file.declarations:
        _check_type_name(declaration.name, findings)
        name = declaration.name.text
        first = by_folded_name.setdefault(name.lower(), declaration)
        if first is not declaration and _clash(first, declaration, findings):
            continue
        if isinstance(declaration, InterfaceSyntax):
            declared.interfaces.setdefault(name, declaration)
        elif isinstance(declaration, NodeSyntax):
            declared.nodes.setdefault(name, declaration)
        else:
            declared.edges.setdefault(name, declaration)
    for node in declared.nodes.values():
        _check_implements(node, declared, findings)
    for edge in declared.edges.values():
        for end in (edge.source, edge.target):
            _check_end(end, declared, findings)
    return declared


def is_bounded(declared: Declared, findings: Findings) -> bool:
    """Whether the types have no more properties than a schema can hold; interfaces can multiply them."""
    sizes = {name: len(interface.body.properties) for name, interface in declared.interfaces.items()}
    total = 0
    types: list[NodeSyntax | EdgeSyntax] = [*declared.nodes.values(), *declared.edges.values()]
    for type_ in types:
        size = len(type_.body.properties) if type_.body else 0
        if isinstance(type_, NodeSyntax):
            size += sum(sizes.get(name.text, 0) for name in type_.implements)
        total += size
        if size > MAX_PROPERTIES:
            message = f"`{type_.name.text}` has {size} properties; at most {MAX_PROPERTIES} are allowed"
            findings.error("S106", message, type_.name.span, "split the type")
            return False
        if total > MAX_EXPANDED_PROPERTIES:
            message = (
                f"up to `{type_.name.text}` the types have more than {MAX_EXPANDED_PROPERTIES} properties together"
            )
            findings.error("S106", message, type_.name.span, "split the schema into several graphs")
            return False
    return True


def check_property_name(name: Name, findings: Findings) -> None:
    """Report a property name that is reserved or does not look like one."""
    text = name.text
    _check_length(name, findings)
    if text.startswith("__"):
        _reserved(name, "names that start with `__` belong to the store", findings)
    elif text.lower() in LANCE_COLUMNS:
        _reserved(name, f"`{text.lower()}` is a virtual column of Lance", findings)
    elif not (text[0].islower() or text[0] == "_"):
        hint = f"write `{text[0].lower()}{text[1:]}`"
        message = f"the property name `{text}` must start with a lower-case letter or `_`"
        findings.error("S111", message, name.span, hint)


def _check_length(name: Name, findings: Findings) -> None:
    if len(name.text) > MAX_NAME_LENGTH:
        message = f"this name has {len(name.text)} characters; at most {MAX_NAME_LENGTH} are allowed"
        findings.error("S106", message, name.span, "choose a shorter name")


def _check_type_name(name: Name, findings: Findings) -> None:
    text = name.text
    _check_length(name, findings)
    if text.startswith("__"):
        _reserved(name, "names that start with `__` belong to the store", findings)
    elif not text[0].isupper():
        upper = text.lstrip("_")
        hint = f"write `{upper[0].upper()}{upper[1:]}`" if upper and upper[0].isalpha() else None
        findings.error("S110", f"the type name `{text}` must start with an upper-case letter", name.span, hint)


def _reserved(name: Name, why: str, findings: Findings) -> None:
    findings.error("S112", f"the name `{name.text}` is reserved: {why}", name.span, "choose another name")


def _clash(first: Declaration, second: Declaration, findings: Findings) -> bool:
    """Report two names that cannot live together. Whether they clash."""
    place = f"line {first.name.span.line}"
    if first.name.text == second.name.text:
        message = f"`{second.name.text}` is declared already, as {_kind(first)} on {place}"
        findings.error("S113", message, second.name.span, "give one of them another name")
        return True
    if isinstance(first, EdgeSyntax) or isinstance(second, EdgeSyntax):
        other = f"the {_kind(first, article=False)} `{first.name.text}` on {place}"
        message = f"`{second.name.text}` and {other} differ only by case"
        findings.error("S115", message, second.name.span, "edge types are looked up without regard to case")
        return True
    return False


def _kind(declaration: Declaration, *, article: bool = True) -> str:
    kind = _KINDS[type(declaration)]
    if not article:
        return kind
    return f"an {kind}" if kind[0] in "aei" else f"a {kind}"


def _check_implements(node: NodeSyntax, declared: Declared, findings: Findings) -> None:
    seen: set[str] = set()
    for name in node.implements:
        if name.text in seen:
            message = f"`{node.name.text}` implements `{name.text}` twice"
            findings.error("S119", message, name.span, "name it once")
        elif name.text not in declared.interfaces and name.text not in declared.broken:
            if name.text in declared.nodes or name.text in declared.edges:
                message, hint = f"`{name.text}` is not an interface", "only interfaces can be implemented"
            else:
                message = f"there is no interface `{name.text}`"
                hint = findings.suggest(name.text, declared.interfaces) or f"declare `interface {name.text} {{ … }}`"
            findings.error("S118", message, name.span, hint)
        seen.add(name.text)


def _check_end(end: Name, declared: Declared, findings: Findings) -> None:
    if end.text in declared.nodes or end.text in declared.broken:
        return
    if end.text in declared.interfaces or end.text in declared.edges:
        kind = "an interface" if end.text in declared.interfaces else "an edge type"
        findings.error("S117", f"`{end.text}` is {kind}; an edge connects node types", end.span)
        return
    hint = findings.suggest(end.text, declared.nodes) or f"declare `node {end.text} {{ … }}`"
    findings.error("S117", f"there is no node type `{end.text}`", end.span, hint)


def check_case_clash(name: Name, others: dict[str, tuple[str, Span]], owner: str, findings: Findings) -> None:
    """Report a property that differs from another of the type only by case: SQL engines would mix them up."""
    first = others.setdefault(name.text.lower(), (name.text, name.span))
    if first[0] != name.text:
        message = f"the properties `{first[0]}` and `{name.text}` of `{owner}` differ only by case"
        findings.error("S116", message, name.span, "columns are looked up without regard to case by SQL engines")
