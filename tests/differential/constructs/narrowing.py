"""A variable of an interface that is one of its node types inside a block, with the properties of that type."""

from __future__ import annotations

from tests.differential import tree
from tests.differential.making import QueryMaker, Scope, makes
from tests.differential.sql import Bound, Parts, quoted


def narrows(clause: tree.Bind, parts: Parts) -> bool:
    """Whether a clause says the type of a variable that stands for several."""
    bound = parts.ctx.variables.get(clause.var)
    return bound is not None and bound.kind.startswith("interface:") and clause.kind.startswith("node:")


def narrow(clause: tree.Bind, parts: Parts) -> None:
    """The row of that type that is the same node: all that the block says of the variable, it says of this one."""
    before = parts.ctx.variables[clause.var]
    ref = parts.ctx.fresh(clause.var)
    parts.ctx.variables[clause.var] = Bound(ref, clause.kind, before.nullable)
    parts.beside.append(f"{quoted(clause.kind)} AS {ref}")
    parts.more.append(ref)
    same = (f'{ref}."{name}" = {before.ref}."{name}"' for name in ("@id", "@type"))
    parts.conditions.append(f"({' AND '.join(same)})")


@makes("narrowing")
def one_type_of_an_interface(q: QueryMaker, scope: Scope) -> tree.Bind | None:
    outer = [name for name, kind in scope.variables.items() if kind.startswith("interface:") and name not in scope.own]
    outer = [name for name in outer if not name.startswith("_")]
    if not outer:
        return None
    var = q.rng.choice(outer)
    kind = scope.only.get(var) or q.rng.choice(q.schema.members(scope.variables[var]))
    scope.variables[var] = kind
    return tree.Bind(var, kind, q.inline(var, scope) if q.chance(0.2) else ())
