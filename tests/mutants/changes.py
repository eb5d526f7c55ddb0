"""Small changes of a source text: another operator, a condition less, branches swapped, a statement left out.

Each is a replacement of one stretch of the text, so that the rest of the file stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
UNSEEN = ("_logger.", "log.", "warnings.", "failpoint(", "declare(")
"""Statements that no test needs to see the loss of."""


@dataclass(frozen=True)
class Change:
    """Put `new` in place of the text from `start` to `end` (byte offsets)."""

    kind: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()

    def __str__(self) -> str:
        return f"line {self.line}, {self.kind}: `{self.old}` → `{self.new}`"


def changes_of(source: str) -> list[Change]:
    """Every change that can be made to a module, in the order of the text."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, kind, new in _changes(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = source.encode()[start:end].decode()
        made = Change(kind, node.lineno, start, end, old, new)
        try:
            ast.parse(made.apply(source))
        except SyntaxError:
            continue
        found.append(made)
    return sorted(found, key=lambda change: (change.start, change.kind))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    for node in _running(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in COMPARED:
                yield node, "operator", _wrapped(ast.Compare(node.left, [COMPARED[type(op)]()], node.comparators))
            case ast.BoolOp(op=op, values=values):
                other = ast.Or() if isinstance(op, ast.And) else ast.And()
                yield node, "operator", _wrapped(ast.BoolOp(other, values))
                for left_out in range(len(values)):
                    rest = [value for at, value in enumerate(values) if at != left_out]
                    yield node, "condition dropped", _wrapped(rest[0] if len(rest) == 1 else ast.BoolOp(op, rest))
            case ast.BinOp(op=op) if type(op) in COMPUTED:
                yield node, "operator", _wrapped(ast.BinOp(node.left, COMPUTED[type(op)](), node.right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node, "condition dropped", _wrapped(operand)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.UnaryOp | ast.Compare):
                    yield test, "branches swapped", f"(not ({ast.unparse(test)}))"
            case ast.comprehension(ifs=[only]):
                yield only, "condition dropped", "True"
            case ast.Expr(value=ast.Call()) if not ast.unparse(node).startswith(UNSEEN):
                yield node, "statement dropped", "pass"
            case ast.Constant(value=bool() as value):
                yield node, "constant", str(not value)
            case _:
                pass


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, no decorators, nothing for types, nothing inside messages.

    The defaults of a function run when it is made, before a change can be switched on. And `strict=True` is no part of
    an answer: it makes a fault that is there already loud.
    """
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):
        children = iter(tree.body)
    else:
        children = ast.iter_child_nodes(tree)
    for node in children:
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise | ast.arg):
            continue
        if isinstance(node, ast.AnnAssign):
            yield from _running(ast.Expr(node.value)) if node.value is not None else ()
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        yield node
        yield from _running(node)


def _wrapped(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
