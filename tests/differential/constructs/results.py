"""`return` and `order`: plain columns, or groups with aggregates."""

from __future__ import annotations

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.types import SINGLE

Result = tuple[tuple[tree.Column, ...], tuple[tree.OrderKey, ...], bool]
DIRECTIONS = ("", "asc", "desc", "desc")


@makes("result", 2)
def plain_result(q: QueryMaker, scope: Scope) -> Result | None:
    own = Scope(scope.own, scope.own, paths=scope.paths, values=scope.values)
    if not own.named():
        return None
    columns = [column(q, own, f"c{number}") for number in range(q.rng.randint(1, 4))]
    if q.chance(0.15) and (flag := q.condition(own, 1, inside=True)) is not None:
        columns.append(tree.Column(flag, "flag"))
        q.used["comparison as a column"] += 1
    keys: list[tree.Expr] = []
    for _ in range(q.rng.choice((0, 0, 1, 1, 2))):
        named = [tree.Alias(each.alias, each.expr.type) for each in columns if each.alias and sortable(each.expr)]
        if named and q.chance(0.4):
            keys.append(q.rng.choice(named))
        elif q.chance(0.12):
            keys.append(entity(q, own))
        elif q.chance(0.2) and (made := q.make("column", own)) is not None and made.type in SINGLE:
            keys.append(made)
            q.used["order by a computed value"] += 1
        elif (prop := q.single(own)) is not None:
            keys.append(prop)
    return tuple(unlike(columns)), order(q, keys), False


@makes("result", 1)
def groups(q: QueryMaker, scope: Scope) -> Result | None:
    return grouped(q, scope, (0, 1, 1, 1, 2), (1, 3))


@makes("result", 1)
def wide_groups(q: QueryMaker, scope: Scope) -> Result | None:
    """Many aggregates at once, over everything or by several keys."""
    return grouped(q, scope, (0, 0, 1, 2, 3), (4, 8))


def grouped(q: QueryMaker, scope: Scope, key_counts: tuple[int, ...], between: tuple[int, int]) -> Result | None:
    """So many keys, and between so many aggregates."""
    own = Scope(scope.own, scope.own, paths=scope.paths, values=scope.values)
    if not own.named():
        return None
    columns = [column(q, own, f"k{number}") for number in range(q.rng.choice(key_counts))]
    columns = [each for each in columns if sortable(each.expr)]
    made = [q.make("aggregate", own) for _ in range(q.rng.randint(*between))]
    columns += [tree.Column(each, f"a{number}") for number, each in enumerate(made)]
    if q.chance(0.2):
        q.rng.shuffle(columns)
    columns = unlike(columns)
    keys: list[tree.Expr] = []
    for _ in range(q.rng.choice((0, 0, 1, 1, 2))):
        named = [tree.Alias(each.alias, each.expr.type) for each in columns if each.alias and sortable(each.expr)]
        if q.chance(0.25):
            key = q.make("aggregate", own)
            if sortable(key):
                keys.append(key)
                q.used["order by an aggregate that is not returned"] += 1
        elif named:
            keys.append(q.rng.choice(named))
    return tuple(columns), order(q, keys), True


def order(q: QueryMaker, keys: list[tree.Expr]) -> tuple[tree.OrderKey, ...]:
    """Keys with directions."""
    if keys:
        q.used["order"] += 1
    return tuple(tree.OrderKey(key, q.rng.choice(DIRECTIONS)) for key in keys)


def column(q: QueryMaker, scope: Scope, name: str) -> tree.Column:
    """A property or an entity, with or without an alias."""
    computed = q.make("column", scope) if q.chance(0.3) else None
    if computed is not None:
        return tree.Column(computed, name)
    prop = q.prop(scope, of=lambda each: each.type != "Vector")
    alias = name if q.chance(0.6) else None
    return tree.Column(entity(q, scope) if prop is None or q.chance(0.2) else prop, alias)


def entity(q: QueryMaker, scope: Scope) -> tree.Entity:
    """A whole row."""
    var = q.rng.choice(scope.named())
    return tree.Entity(var, scope.variables[var])


def sortable(expr: tree.Expr) -> bool:
    """Whether rows can be sorted, and grouped, by it."""
    return expr.type in SINGLE or ":" in expr.type


def unlike(columns: list[tree.Column]) -> list[tree.Column]:
    """Columns without two of one name."""
    seen: set[str] = set()
    kept = []
    for each in columns:
        expr = each.expr
        own = f"{expr.var}.{expr.name}" if isinstance(expr, tree.Prop) else getattr(expr, "var", "")
        name = each.alias or own
        if name not in seen:
            kept.append(each)
        seen.add(name)
    return kept
