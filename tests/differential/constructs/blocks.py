"""Blocks inside a block: `not`, `exists`, `optional` and `either`."""

from __future__ import annotations

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.printing import block as braces
from tests.differential.printing import written
from tests.differential.sql import Bound, Context, Parts, condition, exposed, joins, select


@written.register
def _(node: tree.Either) -> str:
    return "either " + " or ".join(braces(arm) for arm in node.arms)


# --- what they mean


@joins.register
def _(clause: tree.Block, parts: Parts) -> None:
    """`optional`: joined when the block is done, each one after those before it."""
    if clause.kind != "optional":
        return

    def join(ctx: Context) -> tuple[str, list[str]]:
        inner = ctx.inner()
        text = select(clause.clauses, inner)
        new = {name: bound for name, bound in inner.variables.items() if name not in ctx.variables}
        ctx.variables.update({name: Bound(bound.ref, bound.kind, nullable=True) for name, bound in new.items()})
        return text, [bound.ref for bound in new.values()]

    parts.later.append(join)


@joins.register
def _(clause: tree.Either, parts: Parts) -> None:
    """The union of what the arms say of the variables that all of them bind; without any, one arm has to match."""
    scopes = [parts.ctx.inner() for _ in clause.arms]
    texts = [select(arm, scope) for arm, scope in zip(clause.arms, scopes, strict=True)]
    every = [[name for name in scope.variables if name not in parts.ctx.variables] for scope in scopes]
    shared = [name for name in every[0] if name[0] != "_" and all(name in names for names in every)]
    if not shared:
        tests = [f"EXISTS ({text})" for text in texts]
        parts.conditions.append(f"({' OR '.join(tests)})")
        return
    refs = {name: parts.ctx.fresh(name) for name in shared}
    arms = []
    for text, scope in zip(texts, scopes, strict=True):
        listed = ", ".join(f"{scope.variables[name].ref} AS {refs[name]}" for name in shared)
        arms.append(f"SELECT {listed} FROM ({text}) AS {parts.ctx.fresh('arm')}")
    parts.beside.append(f"LATERAL ({' UNION '.join(arms)}) AS {parts.ctx.fresh('either')}")
    for name in shared:
        parts.ctx.variables[name] = Bound(refs[name], scopes[0].variables[name].kind)
        parts.more.append(refs[name])


@condition.register
def _(clause: tree.Either, parts: Parts) -> None:
    """Said already, as a join."""


# --- how they are made


@makes("test block", 2)
@makes("block", 2)
def not_block(q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    return block("not", q, scope, depth)


@makes("test block", 1)
@makes("block", 1)
def exists_block(q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    return block("exists", q, scope, depth)


@makes("last block")
def optional_block(q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    inner = scope.inner()
    clauses = q.clauses(inner, 0 if q.chance(0.7) else depth)
    if not clauses or not (tree.mentioned(clauses) & set(scope.variables)):
        return None
    if scope.inside & set(inner.own):
        return None
    scope.inside |= inner.inside
    for name, kind in inner.own.items():
        scope.bind(name, kind)
    return tree.Block("optional", clauses)


@makes("block", 1.5)
def either_block(q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    scopes = [scope.inner() for _ in range(2 if q.chance(0.85) else 3)]
    common = reached_both_ways(q, scope, scopes) if q.chance(0.6) else [() for _ in scopes]
    arms = tuple((*hop, *own_clauses(q, scope, each, depth, hop)) for hop, each in zip(common, scopes, strict=True))
    arms = tuple(arm for arm in arms if sound(arm, scope))
    if len(arms) < len(scopes):
        return None
    if not all(arm and tree.mentioned(arm) & set(scope.variables) for arm in arms):
        return None
    bound = [exposed(arm) for arm in arms]
    shared = {name: kind for name, kind in scopes[0].own.items() if name[0] != "_" and name in bound[0]}
    for each, names in zip(scopes[1:], bound[1:], strict=True):
        if any(name in each.own and each.own[name] != kind for name, kind in shared.items()):
            return None
        shared = {name: kind for name, kind in shared.items() if name in each.own and name in names}
    if scope.inside & set(shared):
        return None
    for each in scopes:
        scope.inside |= set(each.own) | each.inside
    for name, kind in shared.items():
        scope.bind(name, kind)
        q.used["either binds a variable"] += 1
    return tree.Either(arms)


def own_clauses(
    q: QueryMaker, scope: Scope, inner: Scope, depth: int, hop: tuple[tree.Clause, ...]
) -> tuple[tree.Clause, ...]:
    """What an arm says by itself. Behind a hop often just one clause, unless others lean on what is cut off: a path, or
    a variable that is of fewer types inside."""
    made = q.clauses(inner, 0 if q.chance(0.8) else depth)
    narrowed = any(inner.variables[name] != kind for name, kind in scope.variables.items())
    return made[:1] if hop and q.chance(0.6) and not narrowed and not inner.paths else made


def reached_both_ways(q: QueryMaker, scope: Scope, scopes: list[Scope]) -> list[tuple[tree.Clause, ...]]:
    """For each arm its own way to a new variable of one name and type: by an edge forth or back, or by its type."""
    known = [name for name in scope.named() if scope.variables[name].startswith("node:")]
    ways = [(start, edge, True) for start in known for edge in q.schema.edges if _is(scope, start, edge.source)]
    ways += [(start, edge, False) for start in known for edge in q.schema.edges if _is(scope, start, edge.target)]
    name = q.fresh(scope)
    if not ways or name.startswith("_"):
        return [() for _ in scopes]
    kinds = [edge.target if forth else edge.source for _, edge, forth in ways]
    kind = q.rng.choice(kinds)
    fitting = [way for way, reached in zip(ways, kinds, strict=True) if reached == kind]
    made: list[tuple[tree.Clause, ...]] = []
    for inner in scopes:
        start, edge, forth = q.rng.choice(fitting)
        inner.bind(name, f"node:{kind}")
        ends = (start, name) if forth else (name, start)
        loose = _tied_by_values(q, inner, name, start) if q.chance(0.2) else None
        if loose is not None:
            made.append(loose)
            q.used["arm that binds by a type"] += 1
        elif edge.source == edge.target and q.chance(0.3):
            low = q.rng.choice((1, 1, 2))
            made.append((tree.Hop(ends[0], edge.name, ends[1], low, low + 1, q.chance(0.3), bounded=True),))
        else:
            var = inner.bind(q.fresh(inner), f"edge:{edge.name}") if q.chance(0.25) else None
            made.append((tree.Hop(*ends[:1], edge.name, ends[1], edge_var=var),))
    return made


def _is(scope: Scope, name: str, type_: str) -> bool:
    return scope.variables[name] == f"node:{type_}"


def _tied_by_values(q: QueryMaker, inner: Scope, name: str, start: str) -> tuple[tree.Clause, ...] | None:
    """A variable by its type, and a condition that ties it to one from outside."""
    pair = Scope({each: inner.variables[each] for each in (name, start)}, {name: inner.variables[name]})
    test = q.make("condition", pair)
    if test is None or tree.mentioned(test) != {name, start}:
        return None
    return (tree.Bind(name, inner.variables[name]), tree.Where(test))


def sound(arm: tuple[tree.Clause, ...], scope: Scope) -> bool:
    """Whether everything that the clauses look at is bound by them or around them."""
    return looked_at(arm) <= set(scope.variables)


def looked_at(clauses: tuple[tree.Clause, ...]) -> set[str]:
    """The variables that conditions of a block, and of the blocks inside it, name and that the block does not bind."""
    named: set[str] = set()
    for each in clauses:
        if isinstance(each, tree.Where):
            named |= tree.mentioned(each)
        elif isinstance(each, tree.Block):
            named |= looked_at(each.clauses)
        elif isinstance(each, tree.Either):
            named |= {name for arm in each.arms for name in looked_at(arm)}
    return named - exposed(clauses)


def block(kind: str, q: QueryMaker, scope: Scope, depth: int) -> tree.Clause | None:
    """A block that uses a variable from outside, or None."""
    inner = scope.inner()
    clauses = q.clauses(inner, depth)
    if not clauses or not (tree.mentioned(clauses) & set(scope.variables)):
        return None
    scope.inside |= set(inner.own) | inner.inside
    if len(clauses) > 1:
        q.used[f"{kind} with several clauses"] += 1
    return tree.Block(kind, clauses)
