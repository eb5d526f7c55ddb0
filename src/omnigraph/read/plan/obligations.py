"""What a block owes: every condition, every edge and every inner block has to be taken care of exactly once.

A planner moves conditions about, and one that gets lost gives wrong rows without a sound. So a block hands out its
conditions as obligations, and a plan is only made when all of them have been struck off, each once, by a step at which
the variables that it reads are bound. Anything else is a fault of the planner and stops the query before it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from omnigraph.errors import InternalError
from omnigraph.query import ir
from omnigraph.query.typing import variables_of
from omnigraph.read.plan.block import Block, EdgeAtom, InnerBlock


class Account:
    """The obligations of one block, and which of them are still open."""

    def __init__(self, block: Block) -> None:
        self._owed: Counter[object] = Counter([*block.filters, *block.edges, *block.inner, *block.either])
        self._owed.update([block.optional] if block.optional is not None else [])
        self._unbound = {*block.tables, *block.paths} - set(block.outer)
        self._tail: list[object] = list(block.tail)

    def bind(self, names: Iterable[str], bound: set[str]) -> None:
        """A step binds variables."""
        for name in names:
            if name not in self._unbound:
                raise _fault(f"`${name}` is bound twice, or is not a variable of its block")
            self._unbound.discard(name)
            bound.add(name)

    def reach(self, atom: EdgeAtom, from_var: str, bound: set[str]) -> None:
        """A step follows an edge from a variable that is bound; the edge and the path are bound by it."""
        if from_var not in bound:
            raise _fault(f"`${from_var}` is followed before it is bound")
        self._take(atom, f"the edge from `${atom.left}` to `${atom.right}`")
        self.bind(atom.binds, bound)

    def strike(self, conditions: Iterable[ir.Expr], bound: set[str]) -> None:
        """A step applies conditions."""
        for condition in conditions:
            if not variables_of(condition) <= bound:
                raise _fault("a condition is applied before its variables are bound")
            self._take(condition, "a condition")

    def strike_block(self, block: InnerBlock | ir.Either | ir.Optional, bound: set[str]) -> None:
        """A step applies an inner block."""
        if not set(block.vars) <= bound:
            raise _fault("an inner block is applied before its variables are bound")
        self._take(block, "an inner block")

    def close(self) -> None:
        """Nothing may be left."""
        left = self._owed.total() + len(self._unbound) + len(self._tail)
        if left:
            raise _fault(f"{left} of the conditions, edges and variables of a block are left out")

    def _take(self, one: object, what: str) -> None:
        if self._tail and one == self._tail[0] and not self._owed.total():
            # What can fail is done when all else is done, in the order of the text.
            self._tail.pop(0)
            return
        if self._owed[one] < 1:
            raise _fault(f"{what} is applied twice or too early, or is none of its block")
        self._owed[one] -= 1


def _fault(what: str) -> InternalError:
    return InternalError(f"the plan of this query is not right: {what}. Nothing was run; please report the query")
