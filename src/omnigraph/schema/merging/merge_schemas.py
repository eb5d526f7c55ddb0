"""The three-way merge of schemas: base, source and target give one catalog, or every conflict.

Things are matched by stable id. What one side changed is taken; both sides' different changes of one thing are a
conflict, and so is a drop of what the other side changed or has come to need. Values that both sides add to one enum
are all taken. The result is compiled again from its text before it counts, so that a merge makes no schema that could
not have been written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.errors import SchemaError
from omnigraph.schema.catalog import Cardinality, Catalog
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.merging.facts import THERE, Fact, Facts, Thing, catalog_of, facts_of
from omnigraph.schema.merging.render import render_schema
from omnigraph.schema.migration.migration_steps import constraint_text
from omnigraph.schema.types import EnumType


class _Nothing:
    """What a side says that does not know the thing, or where the common ancestors themselves disagree."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = _Nothing("ABSENT")
UNKNOWN: Final = _Nothing("UNKNOWN")

_WORDS = {
    "name": "the name",
    "type": "the type",
    "nullable": "whether it is required",
    "index": "the index",
    "default": "the default",
    "embed": "the embedding",
    "key": "the key",
    "card": "the cardinality",
    "from": "where it starts",
    "to": "where it ends",
    "range": "the range",
    "annotation": "an annotation",
    "property": "a property",
}


@dataclass(frozen=True, slots=True)
class SchemaClash:
    """One thing that the schemas of both sides cannot agree about. `table_key` is that of its type."""

    table_key: str
    message: str


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """The catalog with its text, or the clashes."""

    catalog: Catalog
    source: str
    clashes: tuple[SchemaClash, ...] = ()


def merge_schemas(base: Facts, source: tuple[str, Catalog], target: tuple[str, Catalog]) -> MergedSchema:
    """Merge the accepted schemas (text and catalog) of source and target over what their common ancestor says."""
    theirs, ours = facts_of(source[1]), facts_of(target[1])
    if _same(theirs, ours) or _same(theirs, base):
        return MergedSchema(target[1], target[0])
    if _same(ours, base):
        return MergedSchema(source[1], source[0])
    merged, collided = merged_facts(base, theirs, ours)
    names = _Names(base, theirs, ours)
    clashes = [names.collision(fact, theirs.get(fact, ABSENT), ours.get(fact, ABSENT)) for fact in collided]
    clashes += names.dangling(merged)
    clashes += names.doubled(merged)
    if clashes:
        return MergedSchema(target[1], target[0], tuple(dict.fromkeys(clashes)))
    next_id = max(source[1].next_id, target[1].next_id)
    return _compiled(catalog_of(merged, next_id), target)


def merged_facts(base: Facts, source: Facts, target: Facts) -> tuple[dict[Fact, Any], list[Fact]]:
    """What both sides say together, and the facts that they say differently; those are `UNKNOWN`."""
    merged: dict[Fact, Any] = {}
    collided: list[Fact] = []
    dropped = _dropped(base, source, target)
    for fact in dict.fromkeys((*target, *source, *base)):
        if fact[0] in dropped:
            continue
        known, theirs, ours = (side.get(fact, ABSENT) for side in (base, source, target))
        value = _merged_value(known, theirs, ours)
        if value is UNKNOWN:
            collided.append(fact)
        if value is not ABSENT:
            merged[fact] = value
    for thing, changed in dropped.items():
        if changed:
            collided.append((thing, THERE))
            merged[thing, THERE] = UNKNOWN
    return merged, collided


def _dropped(base: Facts, source: Facts, target: Facts) -> dict[Thing, bool]:
    """The things that a side dropped, and whether the other side changed them meanwhile."""
    found: dict[Thing, bool] = {}
    for thing, about in base:
        if about != THERE:
            continue
        gone = [side for side in (source, target) if (thing, THERE) not in side]
        if gone:
            kept = target if gone[0] is source else source
            found[thing] = len(gone) == 1 and _parts(base, thing) != _parts(kept, thing)
    # What belongs to a type goes with it, and counts for it.
    types = {thing[1] for thing in found if thing[0] == "type"}
    owned = {thing for side in (base, source, target) for thing, _ in side if thing[0] == "property"}
    return found | {thing: False for thing in owned if thing[1] in types}


def _parts(facts: Facts, thing: Thing) -> dict[Fact, str]:
    """What is said about a thing, and for a type about its properties."""
    owner = thing[1] if thing[0] == "type" else None
    return {
        fact: repr(value)
        for fact, value in facts.items()
        if fact[0] == thing or (owner is not None and fact[0][:2] == ("property", owner))
    }


def _merged_value(base: Any, source: Any, target: Any) -> Any:
    if _same(source, target):
        return target
    if base is not UNKNOWN and _same(source, base):
        return target
    if base is not UNKNOWN and _same(target, base):
        return source
    if isinstance(base, EnumType) and isinstance(source, EnumType) and isinstance(target, EnumType):
        return EnumType(tuple(sorted({*source.values, *target.values})))
    return UNKNOWN


def _same(left: Any, right: Any) -> bool:
    """Whether two values say one thing; to Python `1`, `1.0` and `True` are equal."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    return bool(left == right) and repr(left) == repr(right)


def _compiled(catalog: Catalog, target: tuple[str, Catalog]) -> MergedSchema:
    """The merged schema as its text makes it. What the compiler refuses is a clash too."""
    text = render_schema(catalog)
    try:
        compiled = compile_schema(text, previous=catalog, filename="<merged>")
    except SchemaError as error:
        clash = SchemaClash("schema", f"together they break a rule: {error.diagnostics[0].message}")
        return MergedSchema(target[1], target[0], (clash,))
    if compiled != catalog:
        different = sorted(
            {one.table_key for one in compiled.types() if catalog.table(one.table_key) != one} or {"schema"}
        )
        message = "an interface got other properties on one side than its node types have on the other"
        return MergedSchema(target[1], target[0], tuple(SchemaClash(key, message) for key in different))
    return MergedSchema(catalog, text)


class _Names:
    """Words for clashes: what things are called, in the base if they were there."""

    def __init__(self, base: Facts, source: Facts, target: Facts) -> None:
        self._base, self._source, self._target = base, source, target
        self._all: dict[Fact, Any] = {**source, **target, **base}

    def collision(self, fact: Fact, theirs: Any, ours: Any) -> SchemaClash:
        """Words for a fact that both sides say differently, or for a drop of what the other side changed."""
        thing, about = fact
        if about == THERE:
            gone, kept = ("source", "target") if (thing, THERE) not in self._source else ("target", "source")
            message = f"{self._title(thing)} is dropped on the {gone} and changed on the {kept}"
            return SchemaClash(self._key(thing), message)
        what = _WORDS.get(str(about[0]), "something")
        shown = f"{self._shown(about, theirs)} on the source, {self._shown(about, ours)} on the target"
        return SchemaClash(self._key(thing), f"{what} of {self._title(thing)} was changed on both sides: {shown}")

    def dangling(self, merged: Facts) -> Iterator[SchemaClash]:
        """Clashes of rules and ends with what they name being gone."""
        for (thing, about), value in merged.items():
            if thing[0] != "type":
                continue
            for needed in _needed(thing, about, value):
                if (needed, THERE) in merged:
                    continue
                gone = "source" if (needed, THERE) not in self._source else "target"
                message = f"{self._title(thing)} needs {self._title(needed)}, which is dropped on the {gone}"
                yield SchemaClash(self._key(thing), message)

    def doubled(self, merged: Facts) -> Iterator[SchemaClash]:
        """Clashes of two things that would have one name."""
        seen: dict[tuple[Any, ...], Thing] = {}
        for (thing, about), name in sorted(merged.items(), key=repr):
            if about != ("name",) or name is UNKNOWN:
                continue
            kind = merged[thing, THERE]
            place = (kind, name.lower() if kind == "edge" else name) if thing[0] == "type" else (thing[1], name.lower())
            first = seen.setdefault(place, thing)
            if first != thing:
                owner = "" if thing[0] == "type" else f"{self._all[('type', thing[1]), ('name',)]}."
                message = f"both sides have their own `{owner}{name}`: rename or drop one of the two"
                yield SchemaClash(self._key(thing), message)

    def _key(self, thing: Thing) -> str:
        if thing[0] == "interface":
            return f"interface:{thing[1]}"
        own = ("type", thing[1])
        return f"{self._all[own, THERE]}:{self._all[own, ('name',)]}"

    def _title(self, thing: Thing) -> str:
        if thing[0] == "interface":
            return f"`{thing[1]}`"
        name = self._all[("type", thing[1]), ("name",)]
        return f"`{name}`" if thing[0] == "type" else f"`{name}.{self._all[thing, ('name',)]}`"

    def _shown(self, about: tuple[Any, ...], value: Any) -> str:
        if value is ABSENT:
            return "none"
        if about[0] == "default":
            return repr(value[1]) if value[0] else "none"
        if about[0] == "range":
            low, high = ("" if end is None else end for end in value)
            return f"{low}..{high}"
        if isinstance(value, Cardinality):
            return constraint_text(value)
        if about[0] == "key":
            names = (self._id_name(one) for one in value)
            return f"({', '.join(names)})"
        if about[0] in ("from", "to"):
            return self._title(("type", value))
        return f"`{value}`" if about[0] in ("name", "type") else str(value)

    def _id_name(self, id_: str) -> str:
        for (thing, about), value in self._all.items():
            if thing[0] == "property" and thing[2] == id_ and about == ("name",):
                return str(value)
        return id_


def _needed(thing: Thing, about: tuple[Any, ...], value: Any) -> Iterator[Thing]:
    """The things that a fact of a type names."""
    named: tuple[str, ...] = ()
    if about == ("key",):
        named = value if value is not UNKNOWN else ()
    elif about[:1] == ("unique",):
        named = about[1]
    elif about[:1] in (("range",), ("check",)):
        named = (about[1],)
    elif about in (("from",), ("to",)) and value is not UNKNOWN:
        yield ("type", value)
    elif about[:1] == ("implements",):
        yield ("interface", about[1])
    for one in named:
        if one not in ("src", "dst"):
            yield ("property", thing[1], one)
