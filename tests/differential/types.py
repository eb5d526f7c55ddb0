"""The schema as this package sees it. Types are plain words: `I64`, `String`, `[String]`, `enum`, `Vector`."""

from __future__ import annotations

from dataclasses import dataclass

INTEGERS = ("I32", "I64", "U32", "U64")
FLOATS = ("F32", "F64")
NUMBERS = (*INTEGERS, *FLOATS)
TEXTS = ("String", "enum")
SINGLE = (*NUMBERS, *TEXTS, "Bool", "Date", "DateTime")

RANGES = {
    "I32": (-(2**31), 2**31 - 1),
    "I64": (-(2**63), 2**63 - 1),
    "U32": (0, 2**32 - 1),
    "U64": (0, 2**64 - 1),
}


def item_of(type_: str) -> str | None:
    """The type of the members of a list type, or None."""
    return type_[1:-1] if type_.startswith("[") else None


def family(type_: str) -> str:
    """Types of one family compare with each other."""
    if type_ in NUMBERS:
        return "number"
    return "text" if type_ in TEXTS else type_


@dataclass(frozen=True)
class Property:
    """One property. `choices` are the values of an enum."""

    name: str
    type: str
    nullable: bool = True
    index: bool = False
    choices: tuple[str, ...] = ()

    @property
    def declared(self) -> str:
        """The type as it is written in `.pg`."""
        text = {"enum": f"enum({', '.join(self.choices)})", "Vector": "Vector(2)"}.get(self.type, self.type)
        return text + ("?" if self.nullable else "")


@dataclass(frozen=True)
class NodeType:
    """A node type; `key` names the properties of its key, none for a type without one."""

    name: str
    properties: tuple[Property, ...]
    key: tuple[str, ...] = ()
    implements: tuple[str, ...] = ()

    @property
    def keyed(self) -> bool:
        """Whether the id comes from the values."""
        return bool(self.key)


@dataclass(frozen=True)
class EdgeType:
    """An edge type. `keyed`: its ends are its identity, with the properties in `key`."""

    name: str
    source: str
    target: str
    properties: tuple[Property, ...] = ()
    keyed: bool = False
    key: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """How queries name it."""
        return self.name[0].lower() + self.name[1:]


@dataclass(frozen=True)
class Interface:
    """An interface and its properties."""

    name: str
    properties: tuple[Property, ...]


@dataclass(frozen=True)
class Schema:
    """A whole schema."""

    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    interfaces: tuple[Interface, ...] = ()

    def find(self, kind: str) -> NodeType | EdgeType | Interface:
        """`node:Person`, `edge:Knows` or `interface:Named`."""
        group, name = kind.split(":")
        every = {"node": self.nodes, "edge": self.edges, "interface": self.interfaces}[group]
        return next(each for each in every if each.name == name)

    def edge(self, name: str) -> EdgeType:
        """An edge type by its name."""
        return next(each for each in self.edges if each.name == name)

    def properties(self, kind: str) -> tuple[Property, ...]:
        """What a variable of that kind has: of several edge types, the properties that all of them have."""
        if "|" not in kind:
            return self.find(kind).properties
        every = [self.find(each).properties for each in self.members(kind)]
        alike = [{(prop.name, prop.type, prop.choices) for prop in each} for each in every]
        return tuple(prop for prop in every[0] if all((prop.name, prop.type, prop.choices) in each for each in alike))

    def members(self, kind: str) -> tuple[str, ...]:
        """The node or edge types whose rows a variable of that kind ranges over."""
        group, name = kind.split(":")
        if group != "interface":
            return tuple(f"{group}:{each}" for each in name.split("|"))
        return tuple(f"node:{node.name}" for node in self.nodes if name in node.implements)

    def text(self) -> str:
        """The schema as `.pg`."""
        lines: list[str] = []
        for interface in self.interfaces:
            inside = "  ".join(f"{each.name}: {each.declared}" for each in interface.properties)
            lines.append(f"interface {interface.name} {{ {inside} }}")
        for node in self.nodes:
            more = f" implements {', '.join(node.implements)}" if node.implements else ""
            key = f" @key({', '.join(node.key)})" if len(node.key) > 1 else ""
            inside = "  ".join(_property(each, node.key) for each in node.properties)
            lines.append(f"node {node.name}{more} {{ {inside}{key} }}")
        for edge in self.edges:
            named = {each.name for each in edge.properties}
            ends = "@src, @dst" if named & {"src", "dst"} else "src, dst"
            key = f" @key({', '.join((ends, *edge.key))})" if edge.keyed else ""
            inside = "  ".join(_property(each, ()) for each in edge.properties)
            lines.append(f"edge {edge.name}: {edge.source} -> {edge.target} {{ {inside}{key} }}")
        return "\n".join(lines) + "\n"


def _property(prop: Property, key: tuple[str, ...]) -> str:
    marks = (" @key" if key == (prop.name,) else "") + (" @index" if prop.index else "")
    return f"{prop.name}: {prop.declared}{marks}"
