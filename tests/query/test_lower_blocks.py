"""Lowering of blocks inside blocks, stages, walks, several types and mutations over a match: shapes and names."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.query import ir
from omnigraph.query.bind import bind_parameters, offset_count
from omnigraph.query.completion import completions
from omnigraph.query.typing import BOOL, I64, STRING, can_fail
from omnigraph.schema.types import EntityType, ListType, Scalar, ScalarType
from tests.query.sample import compiled, filtered, mutation, read

NAME = ir.Prop("p", "name", STRING)


def below(query: ir.ReadQuery, kind: type) -> Any:
    """The first operator of a kind on the way down."""
    operator: Any = query.root
    while not isinstance(operator, kind):
        operator = operator.input
    return operator


def block(body: str) -> Any:
    return below(read(f"match {{ {body} }} return {{ 1 as one }}"), ir.Sort).input


# --- names belong to blocks


def test_sibling_blocks_that_use_one_name_bind_two_variables() -> None:
    query = read("match { $p: Person not { $p knows $x } not { $p worksAt $x } exists { $p knows $x } } return { $p }")
    assert [(v.name, v.table_key, v.written) for v in query.all_variables] == [
        ("p", "node:Person", "p"),
        ("x", "node:Person", "x"),
        ("x#2", "node:Company", "x"),
        ("x#3", "node:Person", "x"),
    ]
    assert [variable.name for variable in query.variables] == ["p"]


def test_a_name_bound_outside_is_the_same_variable_inside() -> None:
    tree = block("$p: Person $p knows $x exists { $x worksAt $c } not { $p worksAt $c }")
    assert isinstance(tree, ir.SemiJoin | ir.AntiJoin)
    query = read("match { $p: Person $p knows $x exists { $x worksAt $c } not { $p worksAt $c } } return { $p }")
    assert [variable.name for variable in query.all_variables] == ["p", "x", "c", "c#2"]


def test_a_later_stage_has_variables_of_its_own() -> None:
    query = read(
        "match { $p: Person $p knows $f } with { $p, count($f) as n } match { $p worksAt $f } return { $f.name, n }"
    )
    assert [variable.name for variable in query.all_variables] == ["p", "f", "f#2"]
    assert [column.name for column in query.columns] == ["f.name", "n"]


# --- optional, exists, either


def test_optional_blocks_come_after_the_clauses_around_them_in_text_order() -> None:
    tree = block("optional { $p worksAt $c } $c.size > 3 $p: Person $p.age > 3 optional { $p knows $f }")
    assert isinstance(tree, ir.Optional)
    assert [variable.name for variable in tree.binds] == ["f"]
    filtered_rows = tree.input
    assert isinstance(filtered_rows, ir.Filter)
    assert filtered_rows.predicate == ir.Compare(ir.CompareOp.GT, ir.Prop("c", "size", I64, True), ir.Literal(3, I64))
    first = filtered_rows.input
    assert isinstance(first, ir.Optional)
    assert first.vars == ("p",)
    assert first.binds == (ir.Variable("c", "node:Company", (), True, "c"),)
    assert isinstance(first.inner, ir.Expand)
    assert first.inner.input == ir.Outer(("p",))


def test_what_an_optional_binds_may_be_null_and_be_tested() -> None:
    query = read("match { $p: Person optional { $p worksAt $c } $c is null } return { $c, $c.name, $c.@type }")
    assert [column.nullable for column in query.columns] == [True, True, True]
    tree = below(query, ir.Sort).input
    assert tree.predicate == ir.IsNull(ir.Entity("c", EntityType("node:Company"), True))


def test_a_block_on_a_variable_that_may_be_null_asks_that_it_is_not() -> None:
    tree = block('$p: Person optional { $p worksAt $c } not { $c: Company { name: "x" } }')
    assert isinstance(tree, ir.AntiJoin)
    assert isinstance(tree.inner, ir.Filter)
    assert tree.inner.input == ir.Filter(
        ir.Outer(("c",)), ir.IsNull(ir.Entity("c", EntityType("node:Company"), True), negated=True)
    )


def test_exists_is_a_semi_join() -> None:
    tree = block("$p: Person exists { $p knows $f }")
    assert tree == ir.SemiJoin(
        ir.Scan("p", "node:Person"),
        ir.Expand(ir.Outer(("p",)), "p", "Knows", ir.Direction.OUT, "f", "node:Person"),
        ("p",),
    )


def test_either_binds_what_all_arms_bind() -> None:
    query = read(
        'match { $p: Person either { $p knows $f $f knows $x } or { $p worksAt $f } $f.name = "a" } '
        "return { $f.name, $f.@type }"
    )
    tree = below(query, ir.Sort).input
    assert isinstance(tree, ir.Filter)
    either = tree.input
    assert isinstance(either, ir.Either)
    assert either.vars == ("p",)
    several = ("node:Company", "node:Person")
    assert either.binds == (ir.Variable("f", "node:Company|Person", several, False, "f"),)
    assert [arm.to_table for arm in either.arms if isinstance(arm, ir.Expand)][-1] == "node:Company"


def test_either_with_scans_of_its_own() -> None:
    assert block("either { $x: Person } or { $x: Company }") == ir.Either(
        ir.Unit(),
        (ir.Scan("x", "node:Person"), ir.Scan("x", "node:Company")),
        (),
        (ir.Variable("x", "node:Company|Person", ("node:Company", "node:Person"), False, "x"),),
    )


# --- walks


def test_edge_alternatives_and_any_edge() -> None:
    one = block("$p: Person $p knows|blockedBy{1,3} $b")
    assert (one.edge, one.edges, one.to_table, one.to_tables) == (
        "BlockedBy|Knows",
        ("BlockedBy", "Knows"),
        "node:Person",
        (),
    )
    several = block("$p: Person $p * $b")
    assert several.edges == ("BlockedBy", "Knows", "WorksAt")
    assert several.to_tables == ("node:Company", "node:Person")
    assert block("$p: Person $c: Company $p * $c").all_edges == ("WorksAt",)


def test_a_bound_edge_of_several_types_has_what_they_share() -> None:
    query = read("match { $p: Person $p $w:knows|worksAt $b } return { $w.since, $w.@type, $w.@src }")
    assert [variable.table_key for variable in query.variables if variable.name == "w"] == ["edge:Knows|WorksAt"]
    assert [str(column.type) for column in query.columns] == ["Date", "String", "String"]


def test_the_condition_of_a_walk_looks_at_its_edges() -> None:
    expand = block("$p: Person $p knows{1,4}[weight > 0.5] $f")
    assert expand.where == ir.Compare(
        ir.CompareOp.GT,
        ir.Prop(ir.EDGE, "weight", ScalarType(Scalar.F64), True),
        ir.Literal(0.5, ScalarType(Scalar.F64)),
    )


def test_a_path_starts_where_the_traversal_was_written_to_start() -> None:
    query = read("match { $f: Person $p knows{1,3} $f as $path hops($path) > 1 } return { nodes($path) as n }")
    tree = below(query, ir.Sort).input
    assert tree.predicate.left == ir.PathValue("path", ir.PathPart.HOPS, I64)
    expand = tree.input
    assert (expand.from_var, expand.direction, expand.path_var, expand.path_start) == (
        "f",
        ir.Direction.IN,
        "path",
        "p",
    )
    assert query.columns[0].type == ListType(Scalar.STRING)


def test_an_interface_binds_all_that_implement_it() -> None:
    query = read('match { $n: Named { name: "a" } } return { $n.name, $n.@type, $n }')
    assert query.columns[2].type == EntityType("interface:Named")
    assert query.reads == ("node:Person",)


# --- stages and results


def test_a_stage_keeps_variables_and_aliases() -> None:
    query = read(
        "match { $p: Person $p knows $f } with { $p, count($f) as n } where n > 3 order { n desc } limit 5 "
        "match { $p worksAt $c not { $p knows $f $f.age > n } } return { $c.name, n }"
    )
    stage = below(query, ir.Stage)
    assert stage.variables == ("p",)
    assert stage.columns == (ir.Column("n", ir.ColumnRef("n", I64), I64),)
    assert isinstance(stage.input, ir.Limit)
    assert isinstance(stage.input.input, ir.Sort)
    assert isinstance(stage.input.input.input, ir.Filter)
    assert isinstance(stage.input.input.input.input, ir.GroupBy)
    anti = below(query, ir.AntiJoin)
    assert (anti.vars, anti.columns) == (("p",), ("n",))
    assert below(query, ir.Sort).tie_break == ("p", "n", "c")


def test_a_stage_without_a_limit_is_not_sorted() -> None:
    query = read("match { $p: Person } with { $p } order { $p.age } match { } return { $p.name }")
    assert below(query, ir.Stage) == ir.Stage(ir.Scan("p", "node:Person"), ("p",), ())


def test_distinct_groups_by_all_columns_and_having_filters_above_the_groups() -> None:
    query = read(
        "match { $p: Person } return distinct { $p.age as a, count($p) as n } having { n > 2 } "
        "order { n desc nulls last }"
    )
    sort = below(query, ir.Sort)
    assert sort.keys == (ir.SortKey(ir.ColumnRef("n", I64), True, False),)
    distinct = sort.input
    assert (distinct.aggregates, [key.name for key in distinct.keys]) == ((), ["a", "n"])
    assert isinstance(distinct.input, ir.Filter)
    assert isinstance(distinct.input.input, ir.GroupBy)


def test_collect_knows_the_order_of_the_rows() -> None:
    query = read("match { $p: Person $p knows $f } return { $p.age, collect(distinct $f.name) as names }")
    group = below(query, ir.GroupBy)
    assert group.row_order == ("p", "f")
    assert group.aggregates[0].expr == ir.Aggregate(ir.AggregateFunction.COLLECT, ir.Prop("f", "name", STRING), True)


def test_offset_and_limit_in_either_order() -> None:
    for text in ("limit 3 offset 2", "offset 2 limit 3"):
        limit = below(read(f"match {{ $p: Person }} return {{ $p }} {text}"), ir.Limit)
        assert (limit.count, limit.offset) == (ir.Literal(3, I64), ir.Literal(2, I64))
        assert offset_count(limit, {}) == 2


# --- expressions


def test_conditions_that_can_fail_stand_above_all_others() -> None:
    tree = block("$p: Person 10 / $p.age > 2 $p knows $f $f.age > 1 not { $f knows $p }")
    assert isinstance(tree, ir.Filter)
    assert can_fail(tree.predicate)
    assert isinstance(tree.input, ir.AntiJoin)
    assert not can_fail(filtered("$p.age + 1 > 2"))
    assert can_fail(filtered("$p.count + 1 > 2"))


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ('lower($p.name) = "a"', False),
        ('substring($p.name, 0, 1) = "a"', False),
        ('substring($p.name, 0, $p.age) = "a"', True),
        ('size(split($p.name, ",")) = 1', False),
        ("size(split($p.name, $p.bio)) = 1", True),
        ("abs($p.age) = 1", False),
        ("abs($p.count) = 1", True),
        ("round($p.score, 2) = 1", False),
        ("to_float($p.age) > 1", False),
        ("to_float($p.name) > 1", True),
        ("try_to_float($p.name) > 1", False),
        ("$p.age / 2 > 1", True),
        ("$p.born + days(1) > $p.born", True),
        ("case { when $p.age = 0 then 1 else 1 / $p.age } > 1", True),
    ],
)
def test_what_can_fail(text: str, fails: bool) -> None:
    assert can_fail(filtered(text)) == fails


def test_searches_may_stand_under_or_and_not() -> None:
    search = ir.TextMatch(ir.TextPredicate.SEARCH, "p", "node:Person", "bio", ir.Literal("x", STRING))
    assert filtered('search($p.bio, "x") or not search($p.bio, "x")') == ir.Or((search, ir.Not(search)))
    query = read('match { $p: Person } return { match_all($p.bio, "x") as hit }')
    assert query.columns[0].type == BOOL


def test_a_fraction_compares_with_an_integer_by_value() -> None:
    assert filtered("$p.age > 4.5").right == ir.Literal(4.5, ScalarType(Scalar.F64))  # type: ignore[union-attr]
    assert filtered("$p.age in [1, 2.5]").items.value == (1.0, 2.5)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("$p.age + 1", "I64"),
        ("$p.visits + 1", "U64"),
        ("$p.visits + $p.age", "I64"),
        ("$p.age * 1.5", "F64"),
        ("$p.age / 2", "F64"),
        ("-$p.visits", "I64"),
        ("$p.height + 1", "F64"),
        ('$p.name + "x"', "String"),
        ("$p.tags + $p.tags", "[String]"),
        ("$p.born + days(1)", "Date"),
        ("$p.born + hours(1)", "DateTime"),
        ("coalesce($p.age, 0)", "I64"),
        ('coalesce($p.status, "active")', "String"),
        ("case { when true then $p.age else 0 }", "I32"),
        ("case { when true then $p.age else 0.5 }", "F64"),
        ('[$p.name, "x"]', "[String]"),
        ("$p.numbers[0]", "I64"),
        ("round($p.score)", "F64"),
        ("abs($p.visits)", "U64"),
    ],
)
def test_computed_values_have_types(text: str, type_: str) -> None:
    [column] = read(f"match {{ $p: Person }} return {{ {text} as v }}").columns
    assert str(column.type) == type_


# --- mutations over a match


def test_statements_name_the_variables_that_they_run_for() -> None:
    query = mutation(
        "match { $p: Person $p $w:knows $f } update $f set { age: age + 1, active: $p.age > 30 } "
        'insert WorksAt { from: $p, to: "acme", role: "x" } insert new Company { name: "acme", size: 1 }'
    )
    update, edge, company = query.statements
    assert isinstance(update, ir.Update)
    assert (update.var, update.vars, update.predicate) == ("f", ("p", "f"), ir.Literal(True, BOOL))
    assert isinstance(update.assignments[0].value, ir.Convert)
    assert isinstance(edge, ir.Insert)
    assert (edge.vars, edge.source) == (("p",), ir.Prop("p", "id", STRING))
    assert isinstance(company, ir.Insert)
    assert (company.vars, company.new) == ((), True)
    assert [variable.name for variable in query.variables] == ["p", "w", "f"]
    assert isinstance(query.match, ir.Expand)


def test_rows_of_a_parameter_and_defaults() -> None:
    query = compiled("query q($rows: [Person], $n: I64 = 3, $d: Date? = null) { insert new Person from $rows }")
    assert isinstance(query, ir.MutationQuery)
    assert query.statements == (ir.InsertRows("node:Person", "rows", True),)
    assert [str(parameter.type) for parameter in query.parameters] == ["[Person]", "I64", "Date"]
    bound = bind_parameters(query.parameters, {"rows": [{"name": "a"}]})
    assert bound == {"rows": ({"name": "a"},), "n": 3, "d": None}


def test_completion_offers_every_keyword_and_function() -> None:
    found = {each.text: each for each in completions()}
    assert found["optional"].kind == "keyword"
    assert found["substring"].detail == "substring(String, Int, Int?) -> String"
    assert all(each.doc for each in found.values() if each.kind == "function")
