"""The migration planner: every step and every code, in a fixed order, as values with a JSON form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from omnigraph.errors import BadRequest, SchemaError
from omnigraph.schema.catalog import Cardinality, Catalog, Check, Range
from omnigraph.schema.codes import MIGRATION_CODES
from omnigraph.schema.compiler.compile import compile_schema
from omnigraph.schema.migration.migrate import DataFacts, MigrationPlan, plan, plan_from_json, plan_sources
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
)
from omnigraph.schema.types import Scalar, ScalarType
from tests.strategies.schemas import catalogs, schema_sources

STRING = ScalarType(Scalar.STRING)
A = "node:A"


def steps(
    old: str,
    new: str,
    rows: dict[str, int] | None = None,
    values: dict[str, int] | None = None,
    nulls: dict[str, int] | None = None,
    inexact: dict[str, int] | None = None,
) -> list[Step]:
    """The steps between two texts; facts are given by stable id."""
    accepted = compile_schema(old)
    facts = DataFacts(rows or {}, values or {}, nulls or {}, inexact or {})
    found = plan(accepted, compile_schema(new, accepted), facts=facts)
    assert plan_from_json(json.loads(json.dumps(found.to_json()))) == found
    return list(found.steps)


def in_a(*bodies: str) -> tuple[str, str]:
    old, new = bodies
    return f"node A {{ {old} }}", f"node A {{ {new} }}"


# --- types -------------------------------------------------------------------------------------------------------


def test_equal_schemas_need_no_step() -> None:
    found = plan_sources("node A { a: I32 }", "node A { a: I32 } // only a comment")
    assert found.steps == ()
    assert found.supported
    assert found.render() == "nothing changes"


def test_add_type() -> None:
    assert steps("node A { }", "node A { } edge E: A -> A { x: I32 @unique }") == [AddType("edge:E", "e2")]


def test_rename_type_is_only_a_label() -> None:
    old = "node A { a: I32 @unique(a) } edge E: A -> A @card(0..1)"
    new = 'node B @rename_from("A") { a: I32 @unique(a) } edge E: B -> B @card(0..1)'
    assert steps(old, new) == [RenameType("node:B", "n1", A)]


def test_an_edge_type_whose_case_changes_is_renamed() -> None:
    assert steps("node A { } edge WorksAt: A -> A", "node A { } edge Worksat: A -> A") == [
        RenameType("edge:Worksat", "e2", "edge:WorksAt")
    ]


@pytest.mark.parametrize(
    ("rows", "expected_rows", "code"), [({}, None, "OG-DS-102"), ({"n2": 3}, 3, "OG-DS-102"), ({"n2": 0}, 0, None)]
)
def test_drop_of_a_node_type(rows: dict[str, int], expected_rows: int | None, code: str | None) -> None:
    assert steps("node A { } node B { }", "node A { }", rows) == [DropType("node:B", "n2", False, expected_rows, code)]


def test_drop_of_an_edge_type_with_rows() -> None:
    assert steps("node A { } edge E: A -> A", "node A { }", {"e2": 1}) == [
        DropType("edge:E", "e2", False, 1, "OG-DS-103")
    ]


def test_drops_are_soft_unless_data_may_be_lost() -> None:
    old, new = "node A { a: I32 b: I32 } node B { }", "node A { a: I32 }"
    soft = plan_sources(old, new)
    hard = plan_sources(old, new, allow_data_loss=True)
    assert soft.supported
    assert hard.supported
    assert [step.hard for step in soft.steps if isinstance(step, DropType | DropProperty)] == [False, False]
    assert [step.hard for step in hard.steps if isinstance(step, DropType | DropProperty)] == [True, True]
    assert soft.codes == hard.codes == ("OG-DS-104", "OG-DS-102")


def test_edge_types_are_dropped_before_node_types() -> None:
    found = steps("node A { } node B { } edge Z: A -> B", "node A { }")
    assert [step.table_key for step in found] == ["edge:Z", "node:B"]


# --- properties --------------------------------------------------------------------------------------------------


def test_add_a_nullable_property() -> None:
    assert steps(*in_a("", "a: String?")) == [AddProperty(A, "n1", "a", "p2", STRING, True)]


def test_add_a_property_with_a_default() -> None:
    assert steps(*in_a("", 'a: String @default("x")')) == [AddProperty(A, "n1", "a", "p2", STRING, False, True, "x")]


def test_a_required_property_without_default_needs_an_empty_type() -> None:
    old, new = in_a("", "a: String")
    reason = "`A.a`: a required property without a default cannot be added where there are rows"
    assert steps(old, new, {"n1": 1}) == [UnsupportedChange(A, "n1", "A.a", reason, "OG-MF-103", False)]
    assert steps(old, new) == [UnsupportedChange(A, "n1", "A.a", reason, "OG-MF-103", True)]
    assert steps(old, new, {"n1": 0}) == [AddProperty(A, "n1", "a", "p2", STRING, False)]


def test_rename_property_keeps_everything_else() -> None:
    old, new = in_a(
        'a: I32 @key b: String @range(a, 0..1) @check(b, "x") @unique(a, b)',
        'z: I32 @key @rename_from("a") b: String @range(z, 0..1) @check(b, "x") @unique(z, b)',
    )
    assert steps(old, new) == [RenameProperty(A, "n1", "z", "p2", "a")]


@pytest.mark.parametrize(
    ("rows", "values", "count", "code"),
    [
        ({}, {}, None, "OG-DS-104"),
        ({"n1": 5}, {"p3": 2}, 2, "OG-DS-104"),
        ({"n1": 5}, {"p3": 0}, 0, None),
        ({"n1": 0}, {}, 0, None),
    ],
)
def test_drop_property(rows: dict[str, int], values: dict[str, int], count: int | None, code: str | None) -> None:
    found = steps(*in_a("a: I32 b: I32", "a: I32"), rows, values)
    assert found == [DropProperty(A, "n1", "b", "p3", False, count, code)]


def test_nullable_to_required_needs_that_every_row_has_a_value() -> None:
    assert steps(*in_a("a: I32?", "a: I32")) == [RequireProperty(A, "n1", "a", "p2", needs_check=True)]
    assert steps(*in_a("a: I32?", "a: I32"), {"n1": 0}) == [RequireProperty(A, "n1", "a", "p2", needs_check=False)]
    assert steps(*in_a("a: I32?", "a: I32"), {"n1": 3}, nulls={"p2": 0}) == [RequireProperty(A, "n1", "a", "p2", False)]
    reason = "`A.a`: it cannot become required: 2 rows have no value"
    assert steps(*in_a("a: I32?", "a: I32"), {"n1": 3}, nulls={"p2": 2}) == [
        UnsupportedChange(A, "n1", "A.a", reason, "OG-MF-104")
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I64", "I32"),
        ("F64", "F32"),
        ("I32", "F32"),
        ("I32", "U64"),
        ("U64", "I64"),
        ("[I32]", "[I64]"),
        ("String", "I32"),
        ("Vector(2)", "Vector(3)"),
        ("I32", "[I32]"),
        ("enum(a, b)", "enum(a)"),
        ("enum(a, b)", "enum(a, c)"),
        ("enum(a)", "String"),
        ("String", "enum(a)"),
    ],
)
def test_a_change_of_type_is_refused(old: str, new: str) -> None:
    reason = f"`A.a`: `{old}` cannot become `{new}`"
    found = steps(*in_a(f"a: {old}", f"a: {new}"))
    assert found == [UnsupportedChange(A, "n1", "A.a", reason, "OG-MF-106")]


@pytest.mark.parametrize(
    ("old", "new", "exact"),
    [
        ("I32", "I64", True),
        ("U32", "U64", True),
        ("U32", "I64", True),
        ("F32", "F64", True),
        ("I32", "F64", True),
        ("U32", "F64", True),
        ("I64", "F64", False),
        ("U64", "F64", False),
    ],
)
def test_a_number_gets_wider_where_every_value_is_kept(old: str, new: str, exact: bool) -> None:
    def step(needs_check: bool) -> WidenProperty:
        types = ScalarType(Scalar(old)), ScalarType(Scalar(new))
        return WidenProperty(A, "n1", "a", "p2", *types, needs_check)

    assert steps(*in_a(f"a: {old}", f"a: {new}")) == [step(needs_check=not exact)]
    assert steps(*in_a(f"a: {old}", f"a: {new}"), {"n1": 5}, inexact={"p2": 0}) == [step(needs_check=False)]
    if not exact:
        (refused,) = steps(*in_a(f"a: {old}", f"a: {new}"), {"n1": 5}, inexact={"p2": 1})
        assert isinstance(refused, UnsupportedChange)
        assert refused.code == "OG-MF-106"
        assert "1 row has a value that it cannot hold exactly" in refused.reason


def test_a_key_gets_wider_only_where_its_text_stays() -> None:
    (found,) = steps(*in_a("a: I32 @key", "a: I64 @key"), {"n1": 5})
    assert isinstance(found, WidenProperty)
    for old in ("F32", "I32"):
        (refused,) = steps(*in_a(f"a: {old} @key", "a: F64 @key"), {"n1": 5})
        assert isinstance(refused, UnsupportedChange)
        assert "in a key" in refused.reason


def test_extend_enum() -> None:
    found = steps(*in_a("a: enum(b, d)", "a: enum(a, b, c, d)"))
    assert found == [ExtendEnum(A, "n1", "a", "p2", ("a", "c"))]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("a: I32", "a: I32 @index", "index"),
        ("a: I32 @index", "a: I32", "no index"),
        ("a: I32", "a: I32?", "nullable"),
        ("a: I32", "a: I32 @default(3)", "default 3"),
        ("a: I32 @default(3)", "a: I32", "no default"),
        ("a: I32 @default(3)", "a: I32 @default(4)", "default 4"),
        ("a: I32", "a: I32 @pii", "annotations"),
        ("a: I32 @n(1)", "a: I32 @n(true)", "annotations"),
    ],
)
def test_metadata_of_a_property(old: str, new: str, change: str) -> None:
    assert steps(*in_a(old, new)) == [UpdatePropertyMetadata(A, "n1", "a", "p2", (change,))]


def test_metadata_of_an_embedding() -> None:
    old, new = in_a('t: String v: Vector(2) @embed("t")', 't: String v: Vector(2) @embed("t", model="m")')
    assert steps(old, new) == [UpdatePropertyMetadata(A, "n1", "v", "p3", ("embedded from t",))]
    assert steps(new, old.replace(' @embed("t")', "")) == [
        UpdatePropertyMetadata(A, "n1", "v", "p3", ("not embedded",))
    ]


# --- constraints -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "constraint"),
    [
        ("a: I32", "a: I32 @unique", Unique(("a",))),
        ("a: I32", "a: I32 @range(a, 0..)", Range("a", 0, None)),
        ("a: I32 @range(a, 0..9)", "a: I32 @range(a, 1..9)", Range("a", 1, 9)),
        ("a: I32 @range(a, 0..9)", "a: I32 @range(a, 0..8)", Range("a", 0, 8)),
        ("a: I32 @range(a, 0..)", "a: I32 @range(a, 0..8)", Range("a", 0, 8)),
        ("a: String", 'a: String @check(a, "x")', Check("a", "x")),
    ],
)
def test_a_constraint_that_is_added_or_narrowed_is_checked(old: str, new: str, constraint: Constraint) -> None:
    assert steps(*in_a(old, new)) == [AddConstraint(A, "n1", constraint, True)]
    assert steps(*in_a(old, new), {"n1": 4}) == [AddConstraint(A, "n1", constraint, True)]
    assert steps(*in_a(old, new), {"n1": 0}) == [AddConstraint(A, "n1", constraint, False)]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("a: I32 @unique", "a: I32", "no @unique(a)"),
        ("a: I32 @range(a, 0..5)", "a: I32", "no @range(a, 0..5)"),
        ("a: I32 @range(a, 0..5)", "a: I32 @range(a, ..6)", "wider @range(a, ..6)"),
        ('a: String @check(a, "x\\"")', "a: String", 'no @check(a, "x\\"")'),
        ("a: I32 @key", "a: I32", "no @key(a)"),
    ],
)
def test_a_constraint_that_goes_or_gets_wider_touches_no_data(old: str, new: str, change: str) -> None:
    assert steps(*in_a(old, new)) == [UpdateTypeMetadata(A, "n1", (change,))]


def test_a_check_that_changes_is_one_that_goes_and_one_that_is_added() -> None:
    assert steps(*in_a('a: String @check(a, "x")', 'a: String @check(a, "y")')) == [
        UpdateTypeMetadata(A, "n1", ('no @check(a, "x")',)),
        AddConstraint(A, "n1", Check("a", "y"), True),
    ]


def test_constraints_on_a_new_column_without_values_need_no_check() -> None:
    found = steps(*in_a("a: I32", "a: I32 b: I32? @range(b, 0..1) @unique(a, b)"), {"n1": 3})
    assert found[1:] == [
        AddConstraint(A, "n1", Range("b", 0, 1), False),
        AddConstraint(A, "n1", Unique(("a", "b")), False),
    ]


def test_a_unique_new_column_with_a_default_needs_a_check() -> None:
    found = steps(*in_a("", "b: I32 @default(1) @unique(b)"), {"n1": 3})
    assert found[1:] == [AddConstraint(A, "n1", Unique(("b",)), True)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "@card(0..1)", AddConstraint("edge:E", "e2", Cardinality(0, 1), True)),
        ("@card(0..2)", "@card(0..1)", AddConstraint("edge:E", "e2", Cardinality(0, 1), True)),
        ("@card(0..2)", "@card(1..2)", AddConstraint("edge:E", "e2", Cardinality(1, 2), True)),
        ("@card(0..2)", "@card(0..3)", UpdateTypeMetadata("edge:E", "e2", ("wider @card(0..3)",))),
        ("@card(1..2)", "", UpdateTypeMetadata("edge:E", "e2", ("no @card(1..2)",))),
    ],
)
def test_cardinality(old: str, new: str, expected: Step) -> None:
    assert steps(f"node A {{ }} edge E: A -> A {old}", f"node A {{ }} edge E: A -> A {new}") == [expected]


def test_a_key_cannot_be_added_or_changed_where_there_are_rows() -> None:
    reason = "`A`: the key cannot become (b), since ids are derived from it"
    for old in ("a: I32 b: I32", "a: I32 @key b: I32"):
        found = steps(*in_a(old, "a: I32 b: I32 @key"))
        assert found == [UnsupportedChange(A, "n1", "A", reason, "OG-MF-107", True)]
        found = steps(*in_a(old, "a: I32 b: I32 @key"), {"n1": 1})
        assert found == [UnsupportedChange(A, "n1", "A", reason, "OG-MF-107", False)]
        found = steps(*in_a(old, "a: I32 b: I32 @key"), {"n1": 0})
        assert found == [AddConstraint(A, "n1", Key(("b",)), False)]


# --- edges, interfaces, annotations ------------------------------------------------------------------------------


def test_the_ends_of_an_edge_type_cannot_change_where_there_are_rows() -> None:
    old, new = "node A { } node B { } edge E: A -> A", "node A { } node B { } edge E: A -> B"
    assert steps(old, new) == [UnsupportedChange("edge:E", "e3", "E", "`E`: its ends change", "OG-MF-105", True)]
    assert steps(old, new, {"e3": 2})[0] == UnsupportedChange(
        "edge:E", "e3", "E", "`E`: its ends change", "OG-MF-105", False
    )
    assert steps(old, new, {"e3": 0}) == [UpdateTypeMetadata("edge:E", "e3", ("ends A -> B",))]


def test_an_end_that_is_dropped_and_declared_again_under_another_id_is_another_end() -> None:
    first = compile_schema("node A { } node B { } edge E: A -> B")
    without = compile_schema("node A { }", first)
    again = compile_schema("node A { } node B { } edge E: A -> B", without)
    assert [step.kind for step in plan(first, without).steps] == ["drop_type", "drop_type"]
    assert [step.kind for step in plan(without, again).steps] == ["add_type", "add_type"]


def test_interfaces_and_what_implements_them_are_metadata() -> None:
    old = "interface I { a: I32 } node A implements I { }"
    new = "interface J { a: I32 } node A implements J { a: I32 }"
    assert steps(old, new) == [
        UpdateTypeMetadata("interface:I", None, ("removed",)),
        UpdateTypeMetadata("interface:J", None, ("added",)),
        UpdateTypeMetadata(A, "n1", ("implements J",)),
    ]


def test_annotations_of_a_type_are_metadata() -> None:
    assert steps("node A { }", 'node A @doc("x") { }') == [UpdateTypeMetadata(A, "n1", ("annotations",))]


# --- plans -------------------------------------------------------------------------------------------------------

BIG_OLD = """
node Person { slug: String @key age: I32? status: enum(a, b) old: String note: String? }
node Gone { }
edge Knows: Person -> Person
edge Left: Person -> Gone
"""
BIG_NEW = """
node Human @rename_from("Person") {
    slug: String @key  years: I32? @rename_from("age")  status: enum(a, b, c)  note: String  extra: F64?  must: Bool
    @unique(years)
}
node Place @doc("x") { }
edge Knows: Human -> Human @card(0..9) { since: Date? @index }
"""


def test_steps_come_in_one_order() -> None:
    found = plan_sources(BIG_OLD, BIG_NEW)
    assert found.render() == (
        "rename_type node:Human (was node:Person)\n"
        "add_type node:Place\n"
        "rename_property node:Human.years (was age)\n"
        "add_property node:Human.extra: F64?\n"
        "add_property edge:Knows.since: Date?\n"
        "extend_enum node:Human.status: c\n"
        "require_property node:Human.note (checks the data)\n"
        "add_constraint node:Human @unique(years) (checks the data)\n"
        "add_constraint edge:Knows @card(0..9) (checks the data)\n"
        "drop_property node:Human.old, soft: older snapshots keep it until cleanup, values not counted [OG-DS-104]\n"
        "drop_type edge:Left, soft: older snapshots keep it until cleanup, rows not counted [OG-DS-103]\n"
        "drop_type node:Gone, soft: older snapshots keep it until cleanup, rows not counted [OG-DS-102]\n"
        "unsupported_change node:Human: `Human.must`: a required property without a default cannot be added where "
        "there are rows (rows not counted) [OG-MF-103]\n"
        "this plan cannot be applied: 1 unsupported\n"
        "OG-DS-102: A node type with rows is dropped.\n"
        "OG-DS-103: An edge type with rows is dropped.\n"
        "OG-DS-104: A property with values is dropped.\n"
        "OG-MF-103: A required property without a default is added to a type with rows."
    )
    assert not found.supported
    assert [refusal.code for refusal in found.refusals] == ["OG-MF-103"]


def test_a_plan_has_a_json_form() -> None:
    found = plan_sources("node A { a: I32 }", "node A { a: I32 @unique b: F32? }")
    assert found.to_json() == {
        "supported": True,
        "allow_data_loss": False,
        "steps": [
            {
                "kind": "add_property",
                "table_key": "node:A",
                "type_id": "n1",
                "property": "b",
                "property_id": "p3",
                "type": {"kind": "scalar", "name": "F32"},
                "nullable": True,
                "has_default": False,
                "default": None,
            },
            {
                "kind": "add_constraint",
                "table_key": "node:A",
                "type_id": "n1",
                "constraint": {"kind": "unique", "properties": ["a"]},
                "needs_check": True,
            },
        ],
    }


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"steps": [], "allow_data_loss": "no"},
        {"steps": [{"kind": "fly"}], "allow_data_loss": False},
        {"steps": [{"kind": "add_type"}], "allow_data_loss": False},
        {"steps": [{"kind": "add_property", "type": {"kind": "odd"}}], "allow_data_loss": False},
    ],
)
def test_json_that_is_no_plan_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        plan_from_json(data)


def test_catalogs_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(BadRequest, match="was not compiled against the accepted one"):
        plan(compile_schema("node B { } node A { }"), compile_schema("node A { } node B { } node C { }"))


def test_errors_of_two_texts_say_which_of_them() -> None:
    with pytest.raises(SchemaError, match=r"old\.pg:1:6"):
        plan_sources("node a { }", "node A { }", accepted_filename="old.pg")
    with pytest.raises(SchemaError, match=r"new\.pg:1:6"):
        plan_sources("node A { }", "node a { }", desired_filename="new.pg")


def test_every_code_of_the_planner_has_a_test_and_a_meaning() -> None:
    tested = {"OG-DS-102", "OG-DS-103", "OG-DS-104", *(f"OG-MF-{n}" for n in range(103, 108))}
    from_applying = {code for code in MIGRATION_CODES if code.startswith("OG-AC-")}
    assert tested | from_applying == set(MIGRATION_CODES)


@settings(max_examples=40, deadline=None)
@given(catalogs(), schema_sources())
def test_any_two_schemas_have_a_plan_that_reads_back(accepted: Catalog, source: str) -> None:
    desired = compile_schema(source, accepted)
    found = plan(accepted, desired)
    assert plan_from_json(json.loads(json.dumps(found.to_json()))) == found
    order = [STEP_ORDER.index(type(step)) for step in found.steps]
    assert order == sorted(order)
    assert plan(accepted, desired) == found
    assert plan(desired, desired) == MigrationPlan(())
    assert all(step.code in MIGRATION_CODES for step in found.refusals)


@settings(max_examples=30, deadline=None)
@given(catalogs(), schema_sources())
def test_a_plan_accounts_for_every_type_and_property(accepted: Catalog, source: str) -> None:
    desired = compile_schema(source, accepted)
    found = plan(accepted, desired).steps
    before, after = {t.id for t in accepted.types()}, {t.id for t in desired.types()}
    assert {s.type_id for s in found if isinstance(s, AddType)} == after - before
    assert {s.type_id for s in found if isinstance(s, DropType)} == before - after
    dropped = {s.property_id for s in found if isinstance(s, DropProperty)}
    kept = [t for t in accepted.types() if t.id in after]
    remaining = {p.id for t in desired.types() for p in t.properties}
    assert dropped == {p.id for t in kept for p in t.properties} - remaining
