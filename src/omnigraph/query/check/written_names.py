"""Which names a block binds, by its text alone: a variable belongs to the block that binds it."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.query.text import syntax


def own_variables(clause: syntax.Clause) -> tuple[syntax.Variable, ...]:
    """The variables that a clause itself binds, in the order of the text; paths are not among them."""
    match clause:
        case syntax.Bind(variable):
            return (variable,)
        case syntax.Traversal(source, _, target, _, _, edge_variable):
            return tuple(each for each in (source, edge_variable, target) if each is not None)
        case _:
            return ()


def bound_names(clauses: Sequence[syntax.Clause]) -> list[str]:
    """The names that a block binds for itself and for what comes after, without the anonymous ones.

    What `not` and `exists` bind stays inside of them; of an `either` only what all arms bind comes out.
    """
    names: dict[str, None] = {}
    for clause in clauses:
        names.update(dict.fromkeys(variable.name for variable in own_variables(clause)))
        if isinstance(clause, syntax.OptionalBlock):
            names.update(dict.fromkeys(bound_names(clause.clauses)))
        elif isinstance(clause, syntax.EitherBlock):
            names.update(dict.fromkeys(common_names(clause)))
    names.pop("_", None)
    return list(names)


def common_names(either: syntax.EitherBlock) -> list[str]:
    """The names that every arm of an `either` binds."""
    first, *others = (bound_names(arm.clauses) for arm in either.arms)
    return [name for name in first if all(name in other for other in others)]
