"""Lowering: the exact shape that the executors rely on, as lower.py describes it."""

from __future__ import annotations

import datetime

import pytest

from omnigraph.errors import BadRequest, NotFound, QueryTypeError
from omnigraph.query import ir
from omnigraph.query.lower.compile import compile_file, compile_query
from omnigraph.query.text.parse import parse_queries
from omnigraph.query.typing import BOOL, DATE, F64, I64, STRING
from omnigraph.schema.types import EntityType, ListType, Scalar, ScalarType, VectorType
from tests.query.sample import CATALOG, compiled, filtered, mutation, read

I32 = ScalarType(Scalar.I32)
EQ, GT = ir.CompareOp.EQ, ir.CompareOp.GT
NAME = ir.Prop("p", "name", STRING)
AGE = ir.Prop("p", "age", I32, True)


def sort_of(query: ir.ReadQuery) -> ir.Sort:
    below = query.root.input
    below = below.input if isinstance(below, ir.Limit) else below
    assert isinstance(below, ir.Sort)
    return below


def block_of(body: str, parameters: str = "") -> ir.Operator:
    """What the match block becomes."""
    return sort_of(read(f"match {{ {body} }} return {{ 1 as one }}", parameters)).input


def person(name: str) -> ir.Scan:
    return ir.Scan(name, "node:Person")


def knows(tree: ir.Operator, start: str, end: str, direction: str = "out", **options: object) -> ir.Expand:
    return ir.Expand(tree, start, "Knows", ir.Direction(direction), end, "node:Person", **options)  # type: ignore[arg-type]


# --- blocks


def test_a_declared_variable_is_a_scan() -> None:
    assert block_of("$p: Person") == person("p")


def test_inline_properties_are_one_filter() -> None:
    condition = ir.And((ir.Compare(EQ, NAME, ir.Literal("a", STRING)), ir.Compare(EQ, AGE, ir.Literal(3, I32))))
    assert block_of('$p: Person { name: "a", age: 3 }') == ir.Filter(person("p"), condition)


def test_an_inline_value_on_a_list_is_membership_and_null_a_null_test() -> None:
    tags = ir.Prop("p", "tags", ListType(Scalar.STRING), True)
    assert block_of('$p: Person { tags: "x" }') == ir.Filter(person("p"), ir.Contains(tags, ir.Literal("x", STRING)))
    assert block_of("$p: Person { age: null }") == ir.Filter(person("p"), ir.IsNull(AGE))


def test_a_traversal_starts_from_the_declared_end() -> None:
    assert block_of("$p: Person $p knows $f") == knows(person("p"), "p", "f")
    assert block_of("$f: Person $p knows $f") == knows(person("f"), "f", "p", "in")


def test_a_traversal_from_the_other_side_types_the_first() -> None:
    expand = ir.Expand(ir.Scan("c", "node:Company"), "c", "WorksAt", ir.Direction.IN, "p", "node:Person")
    assert block_of("$c: Company $p worksAt $c") == expand


def test_without_a_declaration_the_first_variable_is_scanned() -> None:
    assert block_of("$a knows $b") == knows(person("a"), "a", "b")


def test_a_declaration_may_come_after_the_use_and_needs_no_scan_of_its_own() -> None:
    tree = ir.Filter(person("p"), ir.Compare(GT, AGE, ir.Literal(3, I32)))
    assert block_of("$p.age > 3 $p knows $f $p: Person $f: Person") == knows(tree, "p", "f")


def test_edges_are_looked_up_without_regard_to_case() -> None:
    assert block_of("$a KNOWS $b") == block_of("$a knows $b") == block_of("$a Knows $b")


def test_bounds_direction_and_edge_variable_reach_the_expand() -> None:
    assert block_of("$p: Person $p knows{2,4} $f") == knows(person("p"), "p", "f", min_hops=2, max_hops=4)
    assert block_of("$p: Person $p <knows> $f") == knows(person("p"), "p", "f", "both")
    assert block_of("$p: Person $p $w:knows $f") == knows(person("p"), "p", "f", edge_var="w")
    assert block_of("$p: Person $f $w:<knows> $p") == knows(person("p"), "p", "f", "both", edge_var="w")


def test_both_ends_bound() -> None:
    first = knows(person("a"), "a", "b")
    assert block_of("$a knows $b $b knows $a") == knows(first, "b", "a", to_bound=True)
    assert block_of("$p: Person $p knows $p") == knows(person("p"), "p", "p", to_bound=True)


def test_unrelated_variables_are_joined_in_the_order_of_their_first_use() -> None:
    company = ir.Scan("c", "node:Company")
    assert block_of("$p: Person $c: Company") == ir.Join(person("p"), company)
    tree = ir.Join(ir.Join(knows(person("a"), "a", "b"), company), person("p"))
    assert block_of("$a knows $b $c: Company $p: Person") == tree


def test_filters_stand_above_the_operator_that_binds_their_last_variable() -> None:
    size = ir.Prop("c", "size", I64)
    join = ir.Join(person("p"), ir.Filter(ir.Scan("c", "node:Company"), ir.Compare(GT, size, ir.Literal(1, I64))))
    assert block_of("$p.age > $c.size $c.size > 1 $p: Person $c: Company") == ir.Filter(join, ir.Compare(GT, AGE, size))


def test_a_condition_without_variables_is_a_filter_too() -> None:
    flag = ir.Param("flag", BOOL)
    assert block_of("$p: Person $flag", "($flag: Bool)") == ir.Filter(person("p"), flag)


def test_a_block_that_binds_nothing_is_one_row() -> None:
    assert block_of("") == ir.Unit()
    assert block_of("$flag", "($flag: Bool)") == ir.Filter(ir.Unit(), ir.Param("flag", BOOL))


def test_anonymous_variables_are_numbered_and_each_its_own() -> None:
    query = read("match { $p: Person $p knows $_ $_ knows $p } return { $p }")
    assert [variable.name for variable in query.variables] == ["p", "$_1", "$_2"]
    assert sort_of(query).input == knows(knows(person("p"), "p", "$_1"), "p", "$_2", "in")


def test_a_search_is_always_a_filter_of_its_own() -> None:
    search = ir.TextMatch(ir.TextPredicate.SEARCH, "p", "node:Person", "bio", ir.Literal("x", STRING))
    fuzzy = ir.TextMatch(ir.TextPredicate.FUZZY, "p", "node:Person", "bio", ir.Param("q", STRING), ir.Literal(1, I64))
    age = ir.Compare(GT, AGE, ir.Literal(3, I32))
    body = '$p: Person search($p.bio, "x") and $p.age > 3 and fuzzy($p.bio, $q, 1)'
    assert block_of(body, "($q: String)") == ir.Filter(ir.Filter(ir.Filter(person("p"), age), search), fuzzy)


# --- not blocks


def test_a_not_block_is_an_anti_join_that_starts_from_the_outer_variables() -> None:
    inner = ir.Expand(ir.Outer(("p", "f")), "p", "BlockedBy", ir.Direction.OUT, "f", "node:Person", to_bound=True)
    tree = ir.AntiJoin(knows(person("p"), "p", "f"), inner, ("p", "f"))
    assert block_of("$p knows $f not { $p blockedBy $f }") == tree


def test_a_not_block_may_come_first_and_bind_variables_of_its_own() -> None:
    inner = ir.Filter(
        knows(ir.Outer(("p",)), "p", "x"), ir.Compare(GT, ir.Prop("x", "age", I32, True), ir.Literal(3, I32))
    )
    assert block_of("not { $x.age > 3 $p knows $x } $p: Person") == ir.AntiJoin(person("p"), inner, ("p",))


def test_a_variable_bound_again_inside_is_the_same_with_the_inner_conditions() -> None:
    inner = ir.Filter(ir.Outer(("p",)), ir.Compare(EQ, NAME, ir.Literal("a", STRING)))
    assert block_of('$p: Person not { $p: Person { name: "a" } }') == ir.AntiJoin(person("p"), inner, ("p",))


def test_unconnected_variables_inside_are_joined_to_the_outer_ones() -> None:
    name = ir.Prop("c", "name", STRING)
    inner = ir.Filter(ir.Join(ir.Outer(("p",)), ir.Scan("c", "node:Company")), ir.Compare(EQ, NAME, name))
    assert block_of("$p: Person not { $c: Company $p.name = $c.name }") == ir.AntiJoin(person("p"), inner, ("p",))


def test_nested_blocks_reach_all_variables_around_them() -> None:
    innermost = ir.Filter(ir.Outer(("p", "f")), ir.Compare(GT, AGE, ir.Prop("f", "age", I32, True)))
    inner = ir.AntiJoin(knows(ir.Outer(("p",)), "p", "f"), innermost, ("p", "f"))
    tree = block_of("$p: Person not { $p knows $f not { $p.age > $f.age } }")
    assert tree == ir.AntiJoin(person("p"), inner, ("p",))


def test_an_outer_variable_used_only_by_a_nested_block_counts_for_both() -> None:
    tree = block_of("$p: Person $q: Person not { $p knows $f not { $q knows $f } }")
    assert isinstance(tree, ir.AntiJoin)
    assert tree.vars == ("p", "q")


# --- expressions


def test_null_tests() -> None:
    assert filtered("$p.age = null") == ir.IsNull(AGE)
    assert filtered("null != $p.age") == ir.IsNull(AGE, negated=True)
    assert filtered("$p.photo = null") == ir.IsNull(ir.Prop("p", "photo", ScalarType(Scalar.BLOB), True))
    assert filtered("$x = null", "($x: I32?)") == ir.IsNull(ir.Param("x", I32, True))


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("$p.age = 3", ir.Literal(3, I32)),
        ("$p.age = 3.0", ir.Literal(3, I32)),
        ("$p.visits = 18446744073709551615", ir.Literal(2**64 - 1, ScalarType(Scalar.U64))),
        ("$p.score = 3", ir.Literal(3.0, F64)),
        ("$p.height = 0.5", ir.Literal(0.5, ScalarType(Scalar.F32))),
        ("$p.height = 0.1", ir.Literal(0.10000000149011612, ScalarType(Scalar.F32))),
        ('$p.born = date("2026-01-02")', ir.Literal(datetime.date(2026, 1, 2), DATE)),
        (
            '$p.seen = datetime("2026-01-02T03:04:05.5+01:00")',
            ir.Literal(
                datetime.datetime(2026, 1, 2, 2, 4, 5, 500000, tzinfo=datetime.UTC), ScalarType(Scalar.DATETIME)
            ),
        ),
    ],
)
def test_literals_take_the_type_of_what_they_are_compared_with(text: str, literal: ir.Literal) -> None:
    predicate = filtered(text)
    assert isinstance(predicate, ir.Compare)
    assert predicate.right == literal
    assert type(predicate.right.value) is type(literal.value)


def test_different_number_types_can_be_compared() -> None:
    predicate = filtered("$p.age < $p.score")
    assert predicate == ir.Compare(ir.CompareOp.LT, AGE, ir.Prop("p", "score", F64, True))
    filtered("$p.visits >= $n", "($n: I32)")


def test_enums_compare_with_text() -> None:
    status = CATALOG.node("Person").by_name["status"].type  # type: ignore[union-attr]
    prop = ir.Prop("p", "status", status, True)
    assert filtered('$p.status = "active"') == ir.Compare(EQ, prop, ir.Literal("active", status))
    assert filtered("$p.status = $s", "($s: String)") == ir.Compare(EQ, prop, ir.Param("s", STRING))
    assert filtered("$p.status = $p.name") == ir.Compare(EQ, prop, NAME)


def test_membership() -> None:
    numbers = ir.Prop("p", "numbers", ListType(Scalar.I64), True)
    assert filtered("$p.age in [1, 2]") == ir.In(AGE, ir.Literal((1, 2), ListType(Scalar.I32)))
    assert filtered("$p.age in []") == ir.In(AGE, ir.Literal((), ListType(Scalar.I32)))
    assert filtered("$p.age in $l", "($l: [I64])") == ir.In(AGE, ir.Param("l", ListType(Scalar.I64)))
    assert filtered("3 in $p.numbers") == ir.In(ir.Literal(3, I64), numbers)
    assert filtered("$p.numbers contains 3") == ir.Contains(numbers, ir.Literal(3, I64))
    assert filtered("[1, 2] contains $p.age") == ir.In(AGE, ir.Literal((1, 2), ListType(Scalar.I32)))


def test_a_list_with_parameters_is_a_disjunction() -> None:
    assert filtered("$p.age in [1, $a]", "($a: I32)") == ir.Or(
        (ir.Compare(EQ, AGE, ir.Literal(1, I32)), ir.Compare(EQ, AGE, ir.Param("a", I32)))
    )


def test_text_predicates() -> None:
    assert filtered('$p.name contains "a%"') == ir.Contains(NAME, ir.Literal("a%", STRING))
    assert filtered("$p.name starts_with $s", "($s: String)") == ir.StartsWith(NAME, ir.Param("s", STRING))


def test_entities_compare_by_id() -> None:
    tree = block_of("$a knows $b $a != $b")
    assert isinstance(tree, ir.Filter)
    assert tree.predicate == ir.Compare(ir.CompareOp.NE, ir.Prop("a", "id", STRING), ir.Prop("b", "id", STRING))


def test_conjunctions_are_flat() -> None:
    predicate = filtered("$p.active and ($p.active and ($p.active and true))")
    assert isinstance(predicate, ir.And)
    assert len(predicate.items) == 4


def test_the_ends_of_an_edge_and_ids_are_properties() -> None:
    query = read("match { $p $w:knows $f } return { $w.from, $w.to as t, $w.src, $w.id, $f.id }")
    assert [column.expr for column in query.root.columns] == [
        ir.Prop("w", "src", STRING),
        ir.Prop("w", "dst", STRING),
        ir.Prop("w", "src", STRING),
        ir.Prop("w", "id", STRING),
        ir.Prop("f", "id", STRING),
    ]
    assert [column.name for column in query.columns] == ["w.from", "t", "w.src", "w.id", "f.id"]


# --- results


def test_columns_have_names_types_and_nullability() -> None:
    query = read(
        'match { $p: Person } return { $p, $p.name, $p.age as y, $x, now(), 1 as one, $p.age > 3 as old, "a" as b }',
        "($x: Date?)",
    )
    assert [(column.name, str(column.type), column.nullable) for column in query.columns] == [
        ("p", "Person", False),
        ("p.name", "String", False),
        ("y", "I32", True),
        ("x", "Date", True),
        ("now", "DateTime", False),
        ("one", "I64", False),
        ("old", "Bool", True),
        ("b", "String", False),
    ]
    assert query.columns[0].type == EntityType("node:Person")


def test_aggregates_have_types_of_their_own() -> None:
    query = read(
        "match { $p: Person } return { count($p), count($p.age) as c, sum($p.age) as s, avg($p.age) as a, "
        "min($p.born) as lo, max($p.status) as hi, max($p.active) as any }"
    )
    assert [(column.name, str(column.type), column.nullable) for column in query.columns] == [
        ("count(p)", "I64", False),
        ("c", "I64", False),
        ("s", "I64", True),
        ("a", "F64", True),
        ("lo", "Date", True),
        ("hi", "enum(active, retired)", True),
        ("any", "Bool", True),
    ]


def test_a_sort_is_always_there_with_the_variables_as_tie_break() -> None:
    query = read("match { $a $w:knows $b $b knows $_ } return { $b.name }")
    sort = sort_of(query)
    assert (sort.keys, sort.tie_break) == ((), ("a", "w", "b", "$_1"))
    assert [variable.table_key for variable in query.variables] == [
        "node:Person",
        "edge:Knows",
        "node:Person",
        "node:Person",
    ]


def test_order_takes_expressions_aliases_and_entities() -> None:
    query = read("match { $p: Person } return { $p.age as a } order { a desc, $p.name, $p, $p.age > 3 asc }")
    assert sort_of(query).keys == (
        ir.SortKey(AGE, descending=True),
        ir.SortKey(NAME),
        ir.SortKey(ir.Prop("p", "id", STRING)),
        ir.SortKey(ir.Compare(GT, AGE, ir.Literal(3, I32))),
    )


def test_limit_stands_between_sort_and_project() -> None:
    query = read("match { $p: Person } return { $p } limit $n", "($n: U32)")
    assert isinstance(query.root.input, ir.Limit)
    assert query.root.input.count == ir.Param("n", ScalarType(Scalar.U32))
    assert isinstance(query.root.input.input, ir.Sort)


def test_aliases_are_replaced_by_what_they_stand_for() -> None:
    query = read("match { $p: Person } return { $p.age as a, a > 3 as old, old = true as same }")
    old = ir.Compare(GT, AGE, ir.Literal(3, I32))
    assert [column.expr for column in query.root.columns] == [AGE, old, ir.Compare(EQ, old, ir.Literal(True, BOOL))]


def test_grouping() -> None:
    query = read(
        "match { $p knows $f } return { $f.name, count($f) as n, n > 1 as many } order { n desc, max($f.age), $f.name }"
    )
    sort = sort_of(query)
    name = ir.Prop("f", "name", STRING)
    count = ir.Aggregate(ir.AggregateFunction.COUNT, ir.Entity("f", EntityType("node:Person")))
    largest = ir.Aggregate(ir.AggregateFunction.MAX, ir.Prop("f", "age", I32, True))
    assert sort.input == ir.GroupBy(
        knows(person("p"), "p", "f"),
        (ir.Column("f.name", name, STRING),),
        (ir.Column("n", count, I64), ir.Column("$aggregate1", largest, I32, True)),
    )
    n = ir.ColumnRef("n", I64)
    assert sort.keys == (
        ir.SortKey(n, descending=True),
        ir.SortKey(ir.ColumnRef("$aggregate1", I32, True)),
        ir.SortKey(ir.ColumnRef("f.name", STRING)),
    )
    assert sort.tie_break == ("f.name",)
    assert [column.expr for column in query.root.columns] == [
        ir.ColumnRef("f.name", STRING),
        n,
        ir.Compare(GT, n, ir.Literal(1, I64)),
    ]


def test_only_aggregates_group_everything() -> None:
    sort = sort_of(read("match { $p: Person } return { count($p) as n }"))
    assert isinstance(sort.input, ir.GroupBy)
    assert (sort.input.keys, sort.tie_break) == ((), ())


def test_rankings_become_columns() -> None:
    query = read(
        'match { $p: Person } return { $p, bm25($p.bio, "x") as score } '
        "order { nearest($p.embedding, $v), score desc } limit 3",
        "($v: Vector(3))",
    )
    sort = sort_of(query)
    bm25 = ir.Bm25("p", "node:Person", "bio", ir.Literal("x", STRING))
    nearest = ir.Nearest("p", "node:Person", "embedding", 3, ir.Param("v", VectorType(3)))
    scored = ir.IsNull(ir.ColumnRef("$rank2", F64, True), negated=True)
    assert sort.input == ir.Filter(ir.Rank(ir.Rank(person("p"), bm25, "$rank1"), nearest, "$rank2"), scored)
    distance = ir.ColumnRef("$rank2", F64, True)
    assert sort.keys == (
        ir.SortKey(ir.IsNull(distance)),
        ir.SortKey(distance),
        ir.SortKey(ir.ColumnRef("$rank1", F64, True), descending=True),
    )
    assert query.root.columns[1].expr == ir.ColumnRef("$rank1", F64, True)


def test_a_bare_rrf_sorts_best_first_and_an_explicit_direction_is_followed() -> None:
    fused = 'rrf(bm25($p.bio, "x"), nearest($p.embedding, "text"), 10)'
    for direction, descending in (("", True), (" asc", False), (" desc", True)):
        sort = sort_of(read(f"match {{ $p: Person }} return {{ $p }} order {{ {fused}{direction} }} limit 3"))
        fuse = sort.input.input if isinstance(sort.input, ir.Filter) else sort.input
        assert isinstance(sort.input, ir.Filter) == (direction == "")
        assert isinstance(fuse, ir.Fuse)
        assert fuse.ranking.k == ir.Literal(10, I64)
        assert sort.keys == (ir.SortKey(ir.ColumnRef("$rank1", F64, True), descending),)
    sort = sort_of(
        read(
            "match { $p: Person } return { $p } order { nearest($p.embedding, [1, 2, 3]) desc } limit 3",
        )
    )
    assert [key.descending for key in sort.keys] == [True]


# --- what is read and written


def test_reads_name_every_table_of_the_match_block() -> None:
    query = read("match { $p: Person not { $p worksAt $c } } return { $p }")
    assert query.reads == ("edge:WorksAt", "node:Company", "node:Person")


def test_mutations_name_what_they_read_and_write() -> None:
    insert = mutation('insert Person { name: "a" } insert WorksAt { from: "a", to: "b", role: "c" }')
    assert insert.reads == ("node:Company", "node:Person")
    assert insert.writes == ("edge:WorksAt", "node:Person")
    update = mutation('update Company set { size: 3 } where name = "a"')
    assert update.reads == update.writes == ("node:Company",)
    delete = mutation("delete Company where true")
    assert delete.writes == ("edge:WorksAt", "node:Company")


# --- mutations


def test_insert() -> None:
    query = mutation(
        'insert Person { name: $n, age: 3, tags: ["x"], embedding: [1, 2, 3.5], '
        'seen: now(), photo: "aGk=", bio: null }',
        "($n: String)",
    )
    [statement] = query.statements
    assert statement == ir.Insert(
        "node:Person",
        (
            ir.Assignment("name", ir.Param("n", STRING)),
            ir.Assignment("age", ir.Literal(3, I32)),
            ir.Assignment("tags", ir.Literal(("x",), ListType(Scalar.STRING))),
            ir.Assignment("embedding", ir.Literal((1.0, 2.0, 3.5), VectorType(3))),
            ir.Assignment("seen", ir.Now()),
            ir.Assignment("photo", ir.Literal(b"hi", ScalarType(Scalar.BLOB))),
            ir.Assignment("bio", ir.Literal(None, STRING)),
        ),
    )


def test_insert_of_edges_and_of_rows_with_an_id() -> None:
    [edge] = mutation('insert worksAt { from: $a, to: "b", role: "c" }', "($a: String)").statements
    assert edge == ir.Insert(
        "edge:WorksAt",
        (ir.Assignment("role", ir.Literal("c", STRING)),),
        ir.Param("a", STRING),
        ir.Literal("b", STRING),
    )
    [note] = mutation('insert Note { id: "n1", text: "x" }').statements
    assert isinstance(note, ir.Insert)
    assert note.id == ir.Literal("n1", STRING)


def test_defaults_and_embedded_vectors_need_not_be_given() -> None:
    [statement] = mutation('insert Company { name: "x", size: 3 }').statements
    assert isinstance(statement, ir.Insert)


def test_numbers_widen_when_they_are_assigned() -> None:
    mutation('update Company set { size: $n } where name = "x"', "($n: I32)")
    mutation('update Person set { score: $n } where name = "x"', "($n: F32)")


def test_predicates_look_at_the_row() -> None:
    [statement] = mutation('delete Knows where (from = "a" or to = "b") and since = null and id != "c"').statements
    src, dst = ir.Prop(ir.THIS, "src", STRING), ir.Prop(ir.THIS, "dst", STRING)
    assert statement == ir.Delete(
        "edge:Knows",
        ir.And(
            (
                ir.Or(
                    (
                        ir.Compare(EQ, src, ir.Literal("a", STRING)),
                        ir.Compare(EQ, dst, ir.Literal("b", STRING)),
                    )
                ),
                ir.IsNull(ir.Prop(ir.THIS, "since", DATE, True)),
                ir.Compare(ir.CompareOp.NE, ir.Prop(ir.THIS, "id", STRING), ir.Literal("c", STRING)),
            )
        ),
    )


def test_edges_can_be_updated() -> None:
    [statement] = mutation('update Knows set { weight: 1 } where from = "a"').statements
    assert isinstance(statement, ir.Update)
    assert statement.assignments == (ir.Assignment("weight", ir.Literal(1.0, F64)),)


def test_properties_called_like_keywords() -> None:
    [statement] = mutation(
        "delete Note where order = 1 and limit > 2 and in in [3] and not = true and match != null"
    ).statements
    assert isinstance(statement, ir.Delete)
    query = read(
        "match { $n: Note { order: 1, in: 2 } $n in $m $m contains $n $n not $m $n order $m } "
        "return { $n.limit as limit, $n.type } order { limit desc }"
    )
    assert query.reads == ("edge:Contains", "edge:In", "edge:Not", "edge:Order", "node:Note")


# --- choosing a query

TWO = "query a { match { $p: Person } return { $p } } query b { match { $c: Company } return { $c } }"


def test_a_query_is_chosen_by_name() -> None:
    assert compiled(TWO, "b").name == "b"
    with pytest.raises(BadRequest, match="the text holds 2 queries; name one of them: a, b"):
        compiled(TWO)
    with pytest.raises(NotFound, match="there is no query `bb` in the text; did you mean `b`"):
        compiled(TWO, "bb")


def test_a_file_is_compiled_as_a_whole() -> None:
    assert [query.name for query in compile_file(TWO, CATALOG)] == ["a", "b"]
    broken = TWO.replace("Person", "Persn").replace("Company", "Compny")
    with pytest.raises(QueryTypeError) as raised:
        compile_file(broken, CATALOG)
    assert raised.value.codes == ("T1", "T1")


def test_only_the_chosen_query_is_checked() -> None:
    source = TWO.replace("Person", "Persn")
    assert compiled(source, "b").name == "b"
    with pytest.raises(QueryTypeError):
        compiled(source, "a")


def test_a_parsed_file_can_be_compiled() -> None:
    file = parse_queries(TWO, "two.gq")
    assert compile_query(file, CATALOG, "a") == compiled(TWO, "a")


def test_descriptions_are_kept() -> None:
    query = compiled('query q @instruction("how") @description("what") { match { $p: Person } return { $p } }')
    assert (query.description, query.instruction) == ("what", "how")
