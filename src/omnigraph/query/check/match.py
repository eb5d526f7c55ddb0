"""Match blocks: which variables there are, what they are, and whether every clause holds together.

Types do not depend on the order of the clauses: an edge type fixes the types of its ends, wherever it is written. So
all bindings of a block are collected first, then the traversals, then what nested blocks bind, and only then are
expressions looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.query import codes, ir
from omnigraph.query.check import blocks
from omnigraph.query.check.block_names import VariableNames
from omnigraph.query.check.block_walks import BlockWalks
from omnigraph.query.check.hops import narrow
from omnigraph.query.check.scope import Bound, Scope, shown
from omnigraph.query.check.values.expressions import ExpressionChecker
from omnigraph.query.check.values.places import Place
from omnigraph.query.check.written_names import common_names, own_variables
from omnigraph.query.ir.expression_parts import columns_of, variables_of
from omnigraph.query.text import syntax


@dataclass(slots=True)
class MatchChecker(VariableNames):
    """Checks the blocks of one query."""

    def block(self, clauses: Sequence[syntax.Clause], scope: Scope) -> blocks.Block:
        """Check one block. Adds what it binds to the variables of `scope`."""
        return _BlockChecker(self, scope, set(scope.variables)).check(clauses)


@dataclass(slots=True)
class _BlockChecker(BlockWalks):
    """Checks one block, and the blocks inside it."""

    def check(self, clauses: Sequence[syntax.Clause]) -> blocks.Block:
        around = {name: bound.tables for name, bound in self.scope.variables.items()}
        own = [variable for clause in clauses for variable in own_variables(clause)]
        for variable in own:
            self._name(variable)
        for clause in clauses:
            if isinstance(clause, syntax.Bind):
                self._declare(clause)
        walks = {id(clause): self._walk(clause) for clause in clauses if isinstance(clause, syntax.Traversal)}
        narrow(self.scope, list(walks.values()))
        for walk in walks.values():
            self._narrowed(walk)
        nested = self._nested_bindings(clauses)
        checked: list[blocks.Clause] = self._type_tests(around)
        for at, clause in enumerate(clauses):
            later = [name for each in clauses[at:] for name in self.of_optionals.get(id(each), ())]
            match clause:
                case syntax.Bind():
                    checked.extend(self._bind(clause))
                case syntax.Traversal():
                    hop = self._hop(walks[id(clause)])
                    checked.extend([hop] if hop is not None else [])
                case syntax.FilterClause(expression):
                    self._filter(ExpressionChecker(self.scope, Place.MATCH).condition(expression), checked)
                case syntax.NotBlock(inner):
                    checked.append(blocks.Without(*self._within(inner, clause, later, related="not")))
                case syntax.ExistsBlock(inner):
                    checked.append(blocks.Exists(*self._within(inner, clause, later, related="exists")))
                case syntax.OptionalBlock() | syntax.EitherBlock():
                    checked.append(nested[id(clause)])
        return self._finished(clauses, checked, own)

    def _finished(
        self, clauses: Sequence[syntax.Clause], checked: Sequence[blocks.Clause], own: Sequence[syntax.Variable]
    ) -> blocks.Block:
        edges = {clause.edge_variable for clause in checked if isinstance(clause, blocks.Hop)}
        bounds = [self.bounds[id(variable)] for variable in own if variable.name not in self.outer]
        mine = {bound.name: found for bound in bounds if (found := bound.variable()) is not None}
        order: dict[str, ir.Variable] = {}
        eithers = iter([clause for clause in clauses if isinstance(clause, syntax.EitherBlock)])
        for clause in checked:
            match clause:
                case blocks.Binding(name):
                    order |= {each: mine[each] for each in (name,) if each in mine}
                case blocks.Hop():
                    ends = [each for each in (clause.source, clause.edge_variable, clause.target) if each is not None]
                    order |= {
                        each: mine[each] for each in ends if each is not None and each in mine and each not in order
                    }
                case blocks.Maybe(block):
                    order |= {each.name: _nullable(each) for each in block.variables if each.name not in order}
                case blocks.OneOf():
                    # All arms bind these, those included that a clause of the block binds again behind it.
                    new = {each.name: each for each in clause.binds}
                    names = [self.scope.variables[name].name for name in common_names(next(eithers))]
                    order |= {name: (mine | new)[name] for name in names if name in mine or name in new}
        order |= {name: variable for name, variable in mine.items() if name not in order}
        nodes = tuple(variable for name, variable in order.items() if name in mine and name not in edges)
        return blocks.Block(tuple(checked), tuple(order.values()), nodes, tuple(self.paths))

    def _filter(self, predicate: ir.Expr | None, checked: list[blocks.Clause]) -> None:
        if predicate is not None:
            self._note(predicate)
            checked.append(blocks.Condition(predicate))

    def _note(self, predicate: ir.Expr) -> None:
        self.used |= variables_of(predicate)
        self.columns |= columns_of(predicate)

    # --- blocks inside

    def _within(
        self, clauses: Sequence[syntax.Clause], clause: syntax.Clause, later: Sequence[str], related: str
    ) -> tuple[blocks.Block, tuple[str, ...], tuple[str, ...]]:
        """A block inside this one, with the variables and the columns from outside that it uses.

        What an `optional` binds `later` in the text is another block's: here such a name is free.
        """
        before = len(self.scope.problems.found)
        scope = self.scope.inner()
        for name in later:
            del scope.variables[name]
        block, inner, columns = self._inside(clauses, scope)
        self.scope.inside |= scope.variables.keys() - self.scope.variables.keys()
        if not inner and len(self.scope.problems.found) == before:
            article = "an" if related == "exists" else "a"
            message = f"{article} `{related}` block must use at least one variable that is bound outside of it"
            self.scope.problems.add(codes.UNRELATED_NOT_BLOCK, message, clause.span)
        return block, self._in_order(inner), tuple(sorted(columns))

    def _inside(
        self, clauses: Sequence[syntax.Clause], scope: Scope, given: dict[str, str] | None = None
    ) -> tuple[blocks.Block, set[str], set[str]]:
        """A block inside this one; the variables of this one that it uses, and the columns that it reads."""
        names = {bound.name for bound in self.scope.variables.values()}
        inner = _BlockChecker(self.match, scope, set(scope.variables), given=given or {})
        block = inner.check(clauses)
        self.columns |= inner.columns
        used = inner.used & names
        self.used |= used
        return block, used, inner.columns

    def _in_order(self, names: set[str]) -> tuple[str, ...]:
        return tuple(bound.name for bound in self.scope.variables.values() if bound.name in names)

    def _nested_bindings(self, clauses: Sequence[syntax.Clause]) -> dict[int, blocks.Clause]:
        """Check the blocks that bind variables for this one: every `either` first, then every `optional`, in order."""
        nested: dict[int, blocks.Clause] = {}
        for clause in clauses:
            if isinstance(clause, syntax.EitherBlock):
                nested[id(clause)] = self._either(clause)
        for clause in clauses:
            if isinstance(clause, syntax.OptionalBlock):
                nested[id(clause)] = self._optional(clause)
        return nested

    def _optional(self, clause: syntax.OptionalBlock) -> blocks.Maybe:
        scope = self.scope.inner()
        block, used, columns = self._inside(clause.clauses, scope, self.given)
        maybe = blocks.Maybe(block, self._in_order(used), tuple(sorted(columns)))
        mine = [name for name in scope.variables if name not in self.scope.variables]
        for name in mine:
            scope.variables[name].nullable = True
            self.scope.variables[name] = scope.variables[name]
        self.of_optionals[id(clause)] = mine
        self.paths.extend(block.paths)
        return maybe

    def _either(self, clause: syntax.EitherBlock) -> blocks.OneOf:
        shared = [name for name in common_names(clause) if name not in self.scope.variables]
        bounds = {name: self._new(name) for name in shared}
        names = {name: bound.name for name, bound in bounds.items()}
        arms: list[blocks.Block] = []
        used: set[str] = set()
        columns: set[str] = set()
        for arm in clause.arms:
            scope = self.scope.inner()
            block, seen, read = self._inside(arm.clauses, scope, names)
            used |= seen
            columns |= read
            arms.append(block)
            self.scope.inside |= scope.variables.keys() - self.scope.variables.keys() - bounds.keys()
            for name in shared:
                self._join_types(bounds[name], scope.variables[name], clause)
        for name in shared:
            self.scope.variables[name] = bounds[name]
        binds = tuple(found for name in shared if (found := bounds[name].variable()) is not None)
        return blocks.OneOf(tuple(arms), self._in_order(used), tuple(sorted(columns)), binds)

    def _join_types(self, bound: Bound, arm: Bound, clause: syntax.EitherBlock) -> None:
        """A variable that all arms bind has the types of all of them."""
        if arm.tables is None:
            return
        if bound.tables is None:
            bound.tables, bound.interface = arm.tables, arm.interface
        else:
            if bound.tables[0].split(":")[0] != arm.tables[0].split(":")[0]:
                message = f"`${shown(bound.name)}` is a node in one arm and an edge in another"
                self.scope.problems.add(codes.EDGE_BINDING, message, clause.span)
                return
            bound.interface = bound.interface if bound.interface == arm.interface else None
            bound.tables = tuple(sorted({*bound.tables, *arm.tables}))
        bound.nullable |= arm.nullable


def _nullable(variable: ir.Variable) -> ir.Variable:
    return ir.Variable(variable.name, variable.table_key, variable.tables, True, variable.written)
