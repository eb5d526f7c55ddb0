"""Random schemas that are valid: as text, as text in any layout with comments, and as catalogs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from omnigraph.schema.annotations import INTEGER_BOUNDS
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.literals import encode_string, format_date, format_datetime
from omnigraph.schema.types import Scalar

PATTERNS = ("[a-z0-9-]+", ".*", r"\\d{1,4}", "^(a|b)?c*$", r"(?:x[^y]|\\w)+?", "ä|ß", r"[\\s\\-]{2,}")
"""Patterns as they are written between quotes in `.pg`."""

_TYPE_NAMES = tuple(
    f"{start}{end}" for start in ("A", "Bc", "D_e", "F1", "Gh") for end in ("", "x", "Y", "_", "2", "Zz")
)
_PROPERTY_NAMES = (
    *("node", "edge", "interface", "enum", "implements", "true", "false", "null", "name", "type", "ids", "rowid"),
    *("a", "b", "c", "_", "_x", "x1", "camelCase", "snake_case", "text", "count", "order", "since", "q_", "z9_z"),
)
_ENUM_VALUES = ("a", "b", "on", "off", "x-1", "-", "2", "007", "_", "true", "null", "größe", "A")
_SEPARATORS = (" ", "\n", "\t ", "  // a comment\n", " /* one, { two } */ ", "\r\n\n", "/* over\n lines */", "//\n")
_TYPES = tuple(scalar.value for scalar in Scalar)
_LIST_ITEMS = tuple(name for name in _TYPES if name != "Blob")
_NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")


@dataclass(frozen=True)
class _Property:
    """A property while a schema is being made up: its name, its type's tokens and its annotations' tokens."""

    name: str
    type: tuple[str, ...]
    nullable: bool
    annotations: tuple[str, ...]
    has_default: bool = False

    @property
    def scalar(self) -> str | None:
        return self.type[0] if len(self.type) == 1 else None

    @property
    def can_identify(self) -> bool:
        return self.type[0] == "enum" or (self.scalar is not None and self.scalar != "Blob")

    @property
    def tokens(self) -> tuple[str, ...]:
        return (self.name, ":", *self.type, *(("?",) if self.nullable else ()), *self.annotations)


def catalogs(max_nodes: int = 4, max_edges: int = 4, max_properties: int = 6) -> st.SearchStrategy[Catalog]:
    """Catalogs of random schemas."""
    return schema_sources(max_nodes, max_edges, max_properties).map(compile_schema)


def schema_sources(max_nodes: int = 4, max_edges: int = 4, max_properties: int = 6) -> st.SearchStrategy[str]:
    """Random valid `.pg` texts, one item to a line."""
    return _declarations(max_nodes, max_edges, max_properties).map(
        lambda declarations: "\n".join(" ".join(tokens) for tokens in declarations)
    )


@st.composite
def messy_schema_sources(draw: st.DrawFn, max_nodes: int = 3, max_edges: int = 3, max_properties: int = 4) -> str:
    """Random valid `.pg` texts in any layout, with comments between any two tokens."""
    declarations = draw(_declarations(max_nodes, max_edges, max_properties))
    tokens = [token for declaration in declarations for token in declaration]
    random = draw(st.randoms(use_true_random=False))
    out: list[str] = []
    for token in tokens:
        out.append(token)
        separators = "".join(random.choice(_SEPARATORS) for _ in range(random.choice((1, 1, 1, 2, 3))))
        out.append(random.choice(("", separators)) if not (token[-1].isalnum() or token[-1] in "_-.") else separators)
    return "".join(out)


# --- names -------------------------------------------------------------------------------------------------------


def type_names(count: int) -> st.SearchStrategy[list[str]]:
    """Names for that many types, no two alike whatever their case."""
    return st.lists(st.sampled_from(_TYPE_NAMES), min_size=count, max_size=count, unique=True)


def property_names(most: int) -> st.SearchStrategy[list[str]]:
    """Names for up to that many properties of one type."""
    return st.lists(st.sampled_from(_PROPERTY_NAMES), max_size=most, unique=True)


# --- properties --------------------------------------------------------------------------------------------------


@st.composite
def _types(draw: st.DrawFn) -> tuple[str, ...]:
    kind = draw(st.sampled_from(("scalar", "scalar", "scalar", "enum", "vector", "list")))
    if kind == "scalar":
        return (draw(st.sampled_from(_TYPES)),)
    if kind == "vector":
        return ("Vector", "(", str(draw(st.integers(1, 8))), ")")
    if kind == "list":
        return ("[", draw(st.sampled_from(_LIST_ITEMS)), "]")
    values = draw(st.lists(st.sampled_from(_ENUM_VALUES), min_size=1, max_size=4))
    return ("enum", "(", *_comma_separated(values), ")")


@st.composite
def _properties(draw: st.DrawFn, most: int, taken: frozenset[str] = frozenset()) -> list[_Property]:
    names = [name for name in draw(property_names(most)) if name.lower() not in taken]
    made: list[_Property] = []
    for name in names:
        type_ = draw(_types())
        strings = [p.name for p in made if p.scalar == "String"]
        annotations, has_default = draw(_property_annotations(type_, strings))
        made.append(_Property(name, type_, draw(st.booleans()), annotations, has_default))
    return made


@st.composite
def _property_annotations(draw: st.DrawFn, type_: tuple[str, ...], strings: list[str]) -> tuple[tuple[str, ...], bool]:
    tokens: list[str] = []
    if draw(st.booleans()):
        tokens.append("@index")
    if _Property("", type_, False, ()).can_identify and draw(st.integers(0, 4)) == 0:
        tokens.append("@unique")
    default = draw(_defaults(type_)) if draw(st.integers(0, 3)) == 0 else None
    if default is not None:
        tokens.extend(("@default", "(", default, ")"))
    if type_[0] == "Vector" and strings and draw(st.booleans()):
        model = draw(st.sampled_from(((), (",", "model", "=", '"m"'))))
        tokens.extend(("@embed", "(", encode_string(draw(st.sampled_from(strings))), *model, ")"))
    if draw(st.integers(0, 5)) == 0:
        tokens.extend(("@note", "(", encode_string(draw(_texts())), ",", "level", "=", "3", ")"))
    return tuple(tokens), default is not None


def _texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


def _defaults(type_: tuple[str, ...]) -> st.SearchStrategy[str | None]:
    if type_[0] == "enum":
        return st.sampled_from([value for value in type_[2:-1] if value != ","]).map(encode_string)
    scalar = type_[0] if len(type_) == 1 else None
    if scalar in ("I32", "I64", "U32", "U64"):
        return st.integers(*INTEGER_BOUNDS[Scalar(scalar)]).map(str)
    if scalar in ("F32", "F64"):
        return st.floats(-(2.0**99), 2.0**99, allow_nan=False, width=32).map(lambda number: f"{number:.9e}")
    if scalar == "Bool":
        return st.sampled_from(("true", "false"))
    if scalar == "String":
        return _texts().map(encode_string)
    if scalar == "Date":
        return st.integers(-100_000, 100_000).map(lambda days: encode_string(format_date(days)))
    if scalar == "DateTime":
        return st.integers(-(10**15), 10**15).map(lambda micros: encode_string(format_datetime(micros)))
    return st.none()


# --- declarations ------------------------------------------------------------------------------------------------


@st.composite
def _declarations(draw: st.DrawFn, max_nodes: int, max_edges: int, max_properties: int) -> list[list[str]]:
    counts = (draw(st.integers(0, 2)), draw(st.integers(1, max_nodes)), draw(st.integers(0, max_edges)))
    names = draw(type_names(sum(counts)))
    interfaces, nodes, edges = (
        names[: counts[0]],
        names[counts[0] : counts[0] + counts[1]],
        names[counts[0] + counts[1] :],
    )
    out: list[list[str]] = []
    shared: dict[str, list[_Property]] = {}
    taken: frozenset[str] = frozenset()
    for name in interfaces:
        shared[name] = draw(_properties(2, taken))
        taken |= {p.name.lower() for p in shared[name]}
        out.append(["interface", name, "{", *_body(draw, shared[name], []), "}"])
    for name in nodes:
        implemented = [i for i in interfaces if draw(st.booleans())]
        own = draw(_properties(max_properties, taken))
        everything = [p for i in implemented for p in shared[i]] + own
        constraints = draw(_node_constraints(everything))
        implements = ["implements", *_comma_separated(implemented)] if implemented else []
        out.append(["node", name, *implements, "{", *_body(draw, own, constraints), "}"])
    for name in edges:
        ends = [draw(st.sampled_from(nodes)), "->", draw(st.sampled_from(nodes))]
        card = draw(st.sampled_from(((), ("@card", "(", "0", "..", "1", ")"), ("@card", "(", "1", "..", ")"))))
        own = draw(_properties(max_properties))
        constraints = draw(_edge_constraints(own))
        body = ["{", *_body(draw, own, constraints), "}"] if own or constraints or draw(st.booleans()) else []
        out.append(["edge", name, ":", *ends, *card, *body])
    return draw(st.permutations(out))


def _body(draw: st.DrawFn, properties: list[_Property], constraints: list[list[str]]) -> list[str]:
    tokens: list[str] = []
    for item in [list(p.tokens) for p in properties] + constraints:
        tokens.extend(item)
        tokens.extend(draw(st.sampled_from(((), (",",)))))
    return tokens


@st.composite
def _node_constraints(draw: st.DrawFn, properties: list[_Property]) -> list[list[str]]:
    out: list[list[str]] = []
    keyable = [p.name for p in properties if p.can_identify and not p.nullable]
    if keyable and draw(st.booleans()):
        out.append(_tuple("@key", draw(st.lists(st.sampled_from(keyable), min_size=1, max_size=3, unique=True))))
    out.extend(draw(_uniques([p.name for p in properties if p.can_identify])))
    for property_ in properties:
        if property_.has_default or draw(st.integers(0, 2)):
            continue
        if property_.scalar in _NUMBERS:
            low, high = sorted((draw(st.integers(0, 100)), draw(st.integers(0, 100))))
            ends = draw(st.sampled_from(((str(low), "..", str(high)), (str(low), ".."), ("..", str(high)))))
            out.append(["@range", "(", property_.name, ",", *ends, ")"])
        elif property_.scalar == "String":
            pattern = draw(st.sampled_from(PATTERNS))
            out.append(["@check", "(", property_.name, ",", f'"{pattern}"', ")"])
    return out


@st.composite
def _edge_constraints(draw: st.DrawFn, properties: list[_Property]) -> list[list[str]]:
    out: list[list[str]] = []
    ends = draw(st.sampled_from((["src", "dst"], ["@src", "@dst"])))
    if draw(st.booleans()):
        keyable = [p.name for p in properties if p.can_identify and not p.nullable]
        more = draw(st.lists(st.sampled_from(keyable), max_size=2, unique=True)) if keyable else []
        out.append(_tuple("@key", ends + more))
    out.extend(draw(_uniques([*ends, *(p.name for p in properties if p.can_identify)])))
    if properties and draw(st.booleans()):
        out.append(_tuple("@index", [draw(st.sampled_from([p.name for p in properties]))]))
    return out


def _uniques(names: list[str]) -> st.SearchStrategy[list[list[str]]]:
    if not names:
        return st.just([])
    tuples = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    return st.lists(tuples.map(lambda chosen: _tuple("@unique", chosen)), max_size=2)


def _tuple(annotation: str, names: list[str]) -> list[str]:
    return [annotation, "(", *_comma_separated(names), ")"]


def _comma_separated(words: list[str]) -> list[str]:
    return [token for word in words for token in (word, ",")][:-1]
