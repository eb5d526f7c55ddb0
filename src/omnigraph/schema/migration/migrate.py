"""Plan a migration: compare an accepted catalog with a desired one and say, step by step, what changes.

The planner is pure. What it has to know about data (whether a type has rows, a property values) comes in as
`DataFacts`; where a fact is missing it assumes that there is data and marks the step as one that needs a check.
The desired catalog must have been compiled with the accepted one as `previous`: things are matched by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    EdgeType,
    GraphType,
    NodeType,
    Property,
    Range,
    column_titles,
    property_column,
)
from omnigraph.schema.codes import MIGRATION_CODES
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.migration.migration_steps import (
    STEP_ORDER,
    AddConstraint,
    AddProperty,
    AddType,
    Constraint,
    DropProperty,
    DropType,
    ExtendEnum,
    Key,
    RenameProperty,
    RenameType,
    RequireProperty,
    Step,
    Unique,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
    constraint_text,
    step_from_json,
    step_text,
    step_to_json,
)
from omnigraph.schema.types import EnumType
from omnigraph.schema.widening import keeps_ids, widens


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What is known about the data, by stable id: rows of types, values (not null) and nulls of properties.

    `inexact` are values that a wider type could not hold exactly. An id that is not there is not known.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    inexact: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps from an accepted schema to a desired one, in the order in which they are carried out."""

    steps: tuple[Step, ...]
    allow_data_loss: bool = False

    @property
    def supported(self) -> bool:
        """Whether every step can be carried out (those that check data still may fail)."""
        return not self.refusals

    @property
    def refusals(self) -> tuple[UnsupportedChange, ...]:
        """The steps that cannot be carried out."""
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def drops_of_data(self) -> tuple[DropType | DropProperty, ...]:
        """The drops of what has rows or values, or of what nobody counted."""
        return tuple(step for step in self.steps if isinstance(step, DropType | DropProperty) and step.code)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all steps that have one, in order."""
        found = (getattr(step, "code", None) for step in self.steps)
        return tuple(code for code in found if code)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; `plan_from_json` gives the plan back."""
        return {
            "supported": self.supported,
            "allow_data_loss": self.allow_data_loss,
            "steps": [step_to_json(step) for step in self.steps],
        }

    def render(self) -> str:
        """The plan for people: a line for each step, then what the codes mean."""
        if not self.steps:
            return "nothing changes"
        lines = [step_text(step) for step in self.steps]
        if not self.supported:
            lines.append(f"this plan cannot be applied: {len(self.refusals)} unsupported")
        return "\n".join([*lines, *(f"{code}: {MIGRATION_CODES[code]}" for code in sorted(set(self.codes)))])


def plan_from_json(data: Mapping[str, Any]) -> MigrationPlan:
    """The plan that `MigrationPlan.to_json` wrote. Raises BadRequest if it is not one."""
    if not isinstance(data.get("steps"), list) or not isinstance(data.get("allow_data_loss"), bool):
        raise BadRequest("not a migration plan: it has no `steps` or no `allow_data_loss`")
    return MigrationPlan(tuple(step_from_json(step) for step in data["steps"]), data["allow_data_loss"])


def plan_sources(
    accepted: str,
    desired: str,
    *,
    allow_data_loss: bool = False,
    accepted_filename: str = "<accepted>",
    desired_filename: str = "<desired>",
) -> MigrationPlan:
    """The plan between two `.pg` texts, without data to look at. Raises SchemaError if one of them does not hold."""
    before = compile_schema(accepted, filename=accepted_filename)
    after = compile_schema(desired, before, desired_filename)
    return plan(before, after, allow_data_loss=allow_data_loss)


def plan(
    accepted: Catalog, desired: Catalog, *, facts: DataFacts | None = None, allow_data_loss: bool = False
) -> MigrationPlan:
    """The steps that lead from the accepted catalog to the desired one. `allow_data_loss` makes every drop hard."""
    if not _continues(desired, accepted):
        raise BadRequest("the desired schema was not compiled against the accepted one; their ids do not match")
    return plan_by_ids(accepted, desired, facts=facts, allow_data_loss=allow_data_loss)


def plan_by_ids(
    accepted: Catalog, desired: Catalog, *, facts: DataFacts | None = None, allow_data_loss: bool = False
) -> MigrationPlan:
    """The steps between two catalogs of one graph, of which neither need have been compiled against the other."""
    planner = _Planner(accepted, desired, facts or DataFacts(), allow_data_loss)
    return MigrationPlan(tuple(sorted(planner.steps(), key=_order)), allow_data_loss)


def _continues(desired: Catalog, accepted: Catalog) -> bool:
    """Whether what has one name in both also has one id, as compiling against the accepted catalog makes it."""
    pairs = ((type_, accepted.table(type_.table_key)) for type_ in desired.types())
    return desired.next_id >= accepted.next_id and all(old is None or old.id == new.id for new, old in pairs)


def _order(step: Step) -> tuple[int, bool, str, int, str]:
    """By kind of step, then type, then property. Edge types are dropped before the node types they connect."""
    is_edge = step.table_key.startswith("edge:")
    if isinstance(step, DropType):
        is_edge = not is_edge
    property_id = getattr(step, "property_id", "p0")
    return STEP_ORDER.index(type(step)), is_edge, step.table_key, int(property_id[1:]), step_text(step)


class _Planner:
    """Compares two catalogs type by type."""

    def __init__(self, accepted: Catalog, desired: Catalog, facts: DataFacts, hard: bool) -> None:
        self._accepted = accepted
        self._desired = desired
        self._facts = facts
        self._hard = hard

    def steps(self) -> Iterator[Step]:
        before = {type_.id: type_ for type_ in self._accepted.types()}
        after = {type_.id: type_ for type_ in self._desired.types()}
        for id_, old in before.items():
            if id_ not in after:
                yield self._drop_type(old)
        for id_, new in after.items():
            if id_ in before:
                yield from self._compare(before[id_], new)
            else:
                yield AddType(new.table_key, new.id)
        yield from self._interfaces()

    def _rows(self, type_: GraphType) -> int | None:
        return self._facts.rows.get(type_.id)

    def _empty(self, type_: GraphType) -> bool:
        return self._rows(type_) == 0

    def _drop_type(self, old: GraphType) -> DropType:
        rows = self._rows(old)
        code = "OG-DS-102" if isinstance(old, NodeType) else "OG-DS-103"
        return DropType(old.table_key, old.id, self._hard, rows, None if rows == 0 else code)

    def _compare(self, old: GraphType, new: GraphType) -> Iterator[Step]:
        if old.name != new.name:
            yield RenameType(new.table_key, new.id, old.table_key)
        names = {p.id: p.name for p in new.properties}
        renamed = {p.name: names.get(p.id, p.name) for p in old.properties}
        yield from self._properties(old, new)
        changes: list[str] = []
        if isinstance(old, EdgeType) and isinstance(new, EdgeType) and self._ends_differ(old, new):
            if self._empty(old):
                changes.append(f"ends {new.source} -> {new.target}")
            else:
                yield self._refuse(new, new.name, "its ends change", "OG-MF-105", self._rows(old) is None)
        yield from self._constraints(old, new, renamed, changes)
        if isinstance(old, NodeType) and isinstance(new, NodeType) and old.implements != new.implements:
            changes.append("implements " + (", ".join(new.implements) or "nothing"))
        if _differ(old.annotations, new.annotations):
            changes.append("annotations")
        if changes:
            yield UpdateTypeMetadata(new.table_key, new.id, tuple(changes))

    def _ends_differ(self, old: EdgeType, new: EdgeType) -> bool:
        def ids(catalog: Catalog, edge: EdgeType) -> list[str | None]:
            nodes = (catalog.node(edge.source), catalog.node(edge.target))
            return [node.id if node else None for node in nodes]

        return ids(self._accepted, old) != ids(self._desired, new)

    def _refuse(self, type_: GraphType, entity: str, reason: str, code: str, needs_check: bool) -> UnsupportedChange:
        return UnsupportedChange(type_.table_key, type_.id, entity, f"`{entity}`: {reason}", code, needs_check)

    # --- properties ----------------------------------------------------------------------------------------------

    def _properties(self, old: GraphType, new: GraphType) -> Iterator[Step]:
        before = {p.id: p for p in old.properties}
        after = {p.id: p for p in new.properties}
        for id_, property_ in before.items():
            if id_ not in after:
                values = 0 if self._empty(old) else self._facts.values.get(id_)
                code = None if values == 0 else "OG-DS-104"
                yield DropProperty(new.table_key, new.id, property_.name, id_, self._hard, values, code)
        for id_, property_ in after.items():
            if id_ in before:
                yield from self._compare_property(old, new, before[id_], property_)
            else:
                yield self._add_property(old, new, property_)

    def _add_property(self, old: GraphType, new: GraphType, property_: Property) -> Step:
        if not property_.nullable and not property_.has_default and not self._empty(old):
            reason = "a required property without a default cannot be added where there are rows"
            entity = f"{new.name}.{property_.name}"
            return self._refuse(new, entity, reason, "OG-MF-103", self._rows(old) is None)
        return AddProperty(
            new.table_key,
            new.id,
            property_.name,
            property_.id,
            property_.type,
            property_.nullable,
            property_.has_default,
            property_.default,
        )

    def _compare_property(self, old_type: GraphType, type_: GraphType, old: Property, new: Property) -> Iterator[Step]:
        entity = f"{type_.name}.{new.name}"
        place = (type_.table_key, type_.id, new.name, new.id)
        if old.name != new.name:
            yield RenameProperty(*place, old.name)
        if old.type != new.type:
            added = _extension(old, new)
            yield self._change_type(old_type, type_, old, new) if added is None else ExtendEnum(*place, added)
        if old.nullable and not new.nullable:
            nulls = 0 if self._empty(old_type) else self._facts.nulls.get(old.id)
            if nulls:
                reason = f"it cannot become required: {_rows_have(nulls)} no value"
                yield self._refuse(type_, entity, reason, "OG-MF-104", False)
            else:
                yield RequireProperty(*place, nulls is None)
        changes = tuple(self._property_changes(old, new))
        if changes:
            yield UpdatePropertyMetadata(*place, changes)

    def _change_type(self, old_type: GraphType, type_: GraphType, old: Property, new: Property) -> Step:
        """The step to a wider type, or the refusal of any other one."""
        entity = f"{type_.name}.{new.name}"
        exact = widens(old.type, new.type)
        if exact is None:
            return self._refuse(type_, entity, f"`{old.type}` cannot become `{new.type}`", "OG-MF-106", False)
        empty = self._empty(old_type)
        if old.column in old_type.key and not empty and not keeps_ids(old.type, new.type):
            reason = f"`{old.type}` cannot become `{new.type}` in a key: the ids are derived from it and would change"
            return self._refuse(type_, entity, reason, "OG-MF-106", self._rows(old_type) is None)
        inexact = 0 if exact or empty else self._facts.inexact.get(old.id)
        if inexact:
            reason = (
                f"`{old.type}` cannot become `{new.type}`: {_rows_have(inexact)} a value that it cannot hold exactly"
            )
            return self._refuse(type_, entity, reason, "OG-MF-106", False)
        place = (type_.table_key, type_.id, new.name, new.id)
        return WidenProperty(*place, old.type, new.type, inexact is None)

    def _property_changes(self, old: Property, new: Property) -> Iterator[str]:
        if new.nullable and not old.nullable:
            yield "nullable"
        if old.indexed != new.indexed:
            yield "index" if new.indexed else "no index"
        if (old.has_default, old.default, type(old.default)) != (new.has_default, new.default, type(new.default)):
            yield f"default {new.default!r}" if new.has_default else "no default"
        if old.embed != new.embed:
            yield f"embedded from {new.embed.source}" if new.embed else "not embedded"
        if _differ(old.annotations, new.annotations):
            yield "annotations"

    # --- constraints ---------------------------------------------------------------------------------------------

    def _constraints(
        self, old: GraphType, new: GraphType, renamed: Mapping[str, str], changes: list[str]
    ) -> Iterator[Step]:
        """Steps for constraints that are added or narrowed; those that go or get wider are noted in `changes`."""
        key = _renamed_columns(old.key, renamed)
        if key != new.key:
            if not new.key:
                changes.append(f"no {constraint_text(Key(key))}")
            elif self._empty(old):
                yield AddConstraint(new.table_key, new.id, Key(new.key), False)
            else:
                reason = f"the key cannot become ({column_titles(new.key)}), since ids are derived from it"
                yield self._refuse(new, new.name, reason, "OG-MF-107", self._rows(old) is None)
        kept_ids = {p.id for p in old.properties}
        added = [p for p in new.properties if p.id not in kept_ids]
        # Rows have a null there, or the default, of which compiling has seen that it is in bounds.
        null_in_rows = {p.column for p in added if p.default is None}
        in_bounds = {p.name for p in added}
        before = dict.fromkeys(_constraints_of(old, renamed))
        after = dict.fromkeys(_constraints_of(new, {}))
        bounds_before = {_bounded_thing(constraint): constraint for constraint in before}
        bounds_after = {_bounded_thing(constraint) for constraint in after}
        for constraint in after:
            if constraint in before:
                continue
            replaced = bounds_before.get(_bounded_thing(constraint))
            if replaced is not None and _allows(constraint, replaced):
                changes.append(f"wider {constraint_text(constraint)}")
            else:
                holds = null_in_rows if isinstance(constraint, Key | Unique) else in_bounds
                needs_check = not self._empty(old) and not (_named(constraint) & holds)
                yield AddConstraint(new.table_key, new.id, constraint, needs_check)
        gone = (c for c in before if c not in after and _bounded_thing(c) not in bounds_after)
        changes.extend(f"no {constraint_text(constraint)}" for constraint in gone)

    # --- interfaces ----------------------------------------------------------------------------------------------

    def _interfaces(self) -> Iterator[Step]:
        before = {interface.name: interface for interface in self._accepted.interfaces}
        after = {interface.name: interface for interface in self._desired.interfaces}
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                change = "added" if name not in before else "removed" if name not in after else "changed"
                yield UpdateTypeMetadata(f"interface:{name}", None, (change,))


def _differ(old: tuple[Annotation, ...], new: tuple[Annotation, ...]) -> bool:
    """Whether annotations say different things; to Python `1`, `1.0` and `True` are equal."""
    return repr(old) != repr(new)


def _rows_have(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _extension(old: Property, new: Property) -> tuple[str, ...] | None:
    """The values that an enum gains, or None if the change is another one."""
    if (
        isinstance(old.type, EnumType)
        and isinstance(new.type, EnumType)
        and set(old.type.values) < set(new.type.values)
    ):
        return tuple(value for value in new.type.values if value not in old.type.values)
    return None


def _renamed_columns(columns: tuple[str, ...], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Columns by the new names of their properties; the ends of edges stay."""
    moved = {property_column(old): property_column(new) for old, new in renamed.items()}
    return tuple(moved.get(column, column) for column in columns)


def _constraints_of(type_: GraphType, renamed: Mapping[str, str]) -> Iterator[Constraint]:
    for names in type_.uniques:
        yield Unique(_renamed_columns(names, renamed))
    if isinstance(type_, EdgeType):
        if type_.card != Cardinality():
            yield type_.card
        return
    for range_ in type_.ranges:
        yield Range(renamed.get(range_.property, range_.property), range_.low, range_.high)
    for check in type_.checks:
        yield type(check)(renamed.get(check.property, check.property), check.pattern)


def _named(constraint: Constraint) -> set[str]:
    if isinstance(constraint, Key | Unique):
        return set(constraint.properties)
    return set() if isinstance(constraint, Cardinality) else {constraint.property}


def _bounded_thing(constraint: Constraint) -> object:
    """What a constraint bounds: two of one thing are one that changes, not one that goes and one that comes."""
    if isinstance(constraint, Cardinality):
        return Cardinality
    return (Range, constraint.property) if isinstance(constraint, Range) else constraint


def _allows(new: Constraint, old: Constraint) -> bool:
    """Whether everything that the old bounds allow is allowed by the new ones."""
    if isinstance(new, Cardinality) and isinstance(old, Cardinality):
        return new.min <= old.min and (new.max is None or (old.max is not None and new.max >= old.max))
    assert isinstance(new, Range)
    assert isinstance(old, Range)
    low = new.low is None or (old.low is not None and new.low <= old.low)
    high = new.high is None or (old.high is not None and new.high >= old.high)
    return low and high
