"""Filters: comparisons, null tests, text and list predicates, membership, and `and`, `or`, `not`."""

from __future__ import annotations

from dataclasses import dataclass

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, comparable, makes
from tests.differential.printing import written
from tests.differential.sql import Context, compared, expression, meaning, member
from tests.differential.types import NUMBERS, item_of
from tests.differential.world import values_of

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Compare(tree.Expr):
    """`left operator right`."""

    operator: str
    left: tree.Expr
    right: tree.Expr
    type: str = "Bool"


@dataclass(frozen=True)
class IsNull(tree.Expr):
    """A test for null, written `= null`, `!= null`, `is null` or `is not null`."""

    item: tree.Expr
    negated: bool
    words: bool = False
    type: str = "Bool"


@dataclass(frozen=True)
class TextTest(tree.Expr):
    """`contains`, `starts_with` or `ends_with` on text."""

    operator: str
    text: tree.Expr
    part: tree.Expr
    type: str = "Bool"


@dataclass(frozen=True)
class Member(tree.Expr):
    """`list contains item`, or `item in list` the other way round."""

    items: tree.Expr
    item: tree.Expr
    turned: bool
    type: str = "Bool"


@dataclass(frozen=True)
class InList(tree.Expr):
    """`item in [a, b]`."""

    item: tree.Expr
    items: tuple[tree.Expr, ...]
    type: str = "Bool"


@dataclass(frozen=True)
class Joined(tree.Expr):
    """Conditions joined by `and` or `or`."""

    word: str
    items: tuple[tree.Expr, ...]
    type: str = "Bool"


@dataclass(frozen=True)
class Not(tree.Expr):
    """A negation."""

    item: tree.Expr
    type: str = "Bool"


# --- how they are written


@written.register
def _(node: Compare) -> str:
    return f"{operand(node.left)} {node.operator} {operand(node.right)}"


@written.register
def _(node: IsNull) -> str:
    if node.words:
        return f"{operand(node.item)} is {'not ' if node.negated else ''}null"
    return f"{operand(node.item)} {'!=' if node.negated else '='} null"


@written.register
def _(node: TextTest) -> str:
    return f"{operand(node.text)} {node.operator} {operand(node.part)}"


@written.register
def _(node: Member) -> str:
    items, item = operand(node.items), operand(node.item)
    return f"{item} in {items}" if node.turned else f"{items} contains {item}"


@written.register
def _(node: InList) -> str:
    return f"{operand(node.item)} in [{', '.join(written(each) for each in node.items)}]"


@written.register
def _(node: Joined) -> str:
    return f" {node.word} ".join(operand(each) for each in node.items)


@written.register
def _(node: Not) -> str:
    return f"not {operand(node.item)}"


def operand(node: tree.Expr) -> str:
    """A part of a larger expression: in parentheses unless it is a plain one."""
    plain = isinstance(node, tree.Literal | tree.Param | tree.Prop | tree.Entity | tree.Alias)
    return written(node) if plain else f"({written(node)})"


# --- what they mean


@meaning.register
def _(node: Compare, ctx: Context) -> str:
    left, right = expression(node.left, ctx), expression(node.right, ctx)
    if ":" in node.left.type:
        names = ("@id", "@type") if len(ctx.schema.members(node.left.type)) > 1 else ("@id",)
        same = " AND ".join(f'{left}."{name}" = {right}."{name}"' for name in names)
        return f"({same})" if node.operator == "=" else f"(NOT ({same}))"
    return compared(node.operator, left, node.left.type, right, node.right.type)


@meaning.register
def _(node: IsNull, ctx: Context) -> str:
    return f"({expression(node.item, ctx)} IS {'NOT ' if node.negated else ''}NULL)"


@meaning.register
def _(node: TextTest, ctx: Context) -> str:
    function = {"contains": "contains", "starts_with": "starts_with", "ends_with": "suffix"}[node.operator]
    return f"{function}({expression(node.text, ctx)}, {expression(node.part, ctx)})"


@meaning.register
def _(node: Member, ctx: Context) -> str:
    return member(expression(node.item, ctx), node.item.type, expression(node.items, ctx), item_of(node.items.type))


@meaning.register
def _(node: InList, ctx: Context) -> str:
    item = expression(node.item, ctx)
    tests = [compared("=", item, node.item.type, expression(each, ctx), each.type) for each in node.items]
    return f"({' OR '.join(tests)})"


@meaning.register
def _(node: Joined, ctx: Context) -> str:
    return f"({f' {node.word.upper()} '.join(expression(each, ctx) for each in node.items)})"


@meaning.register
def _(node: Not, ctx: Context) -> str:
    return f"(NOT {expression(node.item, ctx)})"


# --- how they are made


@makes("condition", 4)
def compare_with_constant(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.single(scope)
    if prop is None:
        return None
    operator = q.rng.choice(OPERATORS if prop.type not in ("enum", "Bool") else OPERATORS[:2])
    sides = (prop, q.like(prop, scope))
    left, right = sides if q.chance(0.85) else sides[::-1]
    return Compare(operator, left, right)


@makes("condition", 4)
def compare_properties(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    left = q.single(scope)
    if left is None:
        return None
    others = [each for each in q.properties(scope, of=lambda p: comparable(p, left)) if each != left]
    elsewhere = [each for each in others if each.var != left.var]
    if not others:
        return None
    right = q.rng.choice(elsewhere if elsewhere and q.chance(0.9) else others)
    if left.var != right.var:
        q.used["filter across variables"] += 1
    text = left.type in ("enum", "Bool") or right.type in ("enum", "Bool")
    return Compare(q.rng.choice(OPERATORS[:2] if text else OPERATORS), left, right)


@makes("condition", 1)
def compare_entities(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    names = scope.named()
    pairs = [(a, b) for a in names for b in names if a != b and scope.variables[a] == scope.variables[b]]
    if not pairs:
        return None
    left, right = q.rng.choice(pairs)
    kind = scope.variables[left]
    return Compare(q.rng.choice(("=", "!=", "!=")), tree.Entity(left, kind), tree.Entity(right, kind))


@makes("condition", 1.5)
def null_test(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.nullable)
    return None if prop is None else IsNull(prop, q.chance(0.6))


@makes("condition", 1)
def bare_boolean(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    if q.chance(0.1):
        return q.parameter(True, "Bool")
    return q.prop(scope, of=lambda each: each.type == "Bool")


@makes("condition", 1.5)
def text_test(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.prop(scope, of=lambda each: each.type in ("String", "enum"))
    if prop is None:
        return None
    value = q.rng.choice(q.there(prop, scope) or ["a"])
    start, end = sorted((q.rng.randint(0, len(value)), q.rng.randint(0, len(value))))
    operators = [each for each in ("contains", "starts_with", "ends_with") if each not in q.without]
    operator = q.rng.choice(operators)
    part = {"contains": value[start:end], "starts_with": value[:end], "ends_with": value[start:]}[operator]
    return TextTest(operator, prop, q.constant(part, "String"))


@makes("condition", 1.5)
def list_member(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    items = q.prop(scope, of=lambda each: item_of(each.type) is not None)
    if items is None:
        return None
    item = item_of(items.type)
    there = [each for values in q.there(items, scope) for each in values]
    value = q.rng.choice(there) if there and q.chance(0.8) else q.rng.choice(values_of(item))
    singles = q.properties(scope, of=lambda each: each.type == item)
    sought = q.rng.choice(singles) if singles and q.chance(0.3) else q.constant(value, item)
    return Member(items, sought, q.chance(0.5))


@makes("condition", 1.5)
def in_list(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    prop = q.single(scope)
    if prop is None or prop.type == "F32":
        return None
    pool = q.there(prop, scope) or list(values_of(prop.type))
    chosen = [q.rng.choice(pool) for _ in range(q.rng.randint(1, 3))]
    if prop.type not in ("enum", "Bool") and q.chance(0.3):
        return Member(q.parameter(tuple(chosen), f"[{prop.type}]"), prop, True)
    return InList(prop, tuple(q.constant(value, prop.type) for value in chosen))


@makes("condition", 0.5)
def unlike_numbers(q: QueryMaker, scope: Scope) -> tree.Expr | None:
    """A number against a parameter of another kind of number."""
    prop = q.prop(scope, of=lambda each: each.type in NUMBERS)
    if prop is None:
        return None
    other = q.rng.choice([each for each in NUMBERS if each not in (prop.type, "F32")])
    return Compare(q.rng.choice(OPERATORS), prop, q.parameter(q.rng.choice(values_of(other)), other))


@makes("joined condition", 2)
def and_or(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    items = [q.condition(scope, depth, inside=True) for _ in range(2 if q.chance(0.8) else 3)]
    found = tuple(each for each in items if each is not None)
    return Joined("or" if q.chance(0.65) else "and", found) if len(found) > 1 else None


@makes("joined condition", 1)
def negation(q: QueryMaker, scope: Scope, depth: int) -> tree.Expr | None:
    item = q.condition(scope, depth, inside=True)
    return None if item is None else Not(item)
