"""Expressions as text, close to how a query writes them. For people; nothing reads it back."""

from __future__ import annotations

from omnigraph.query import ir


def show(expr: ir.Expr) -> str:
    """One expression as text."""
    match expr:
        case ir.Literal(value=value):
            return _literal(value)
        case ir.Param(name=name):
            return f"${name}"
        case ir.Now():
            return "now()"
        case ir.Prop(var=var, name=name):
            return f"${var}.{name}"
        case ir.Entity(var=var):
            return f"${var}"
        case ir.Compare(op=op, left=left, right=right):
            return f"{show(left)} {op.value} {show(right)}"
        case ir.IsNull(item=item, negated=negated):
            return f"{show(item)} {'!=' if negated else '='} null"
        case ir.Contains(haystack=haystack, needle=needle):
            return f"{show(haystack)} contains {show(needle)}"
        case ir.StartsWith(text=text, prefix=prefix):
            return f"{show(text)} starts_with {show(prefix)}"
        case ir.In(item=item, items=items):
            return f"{show(item)} in {show(items)}"
        case ir.And(items=items):
            return "(" + " and ".join(show(item) for item in items) + ")"
        case ir.Or(items=items):
            return "(" + " or ".join(show(item) for item in items) + ")"
        case ir.Not(item=item):
            return f"not {show(item)}"
        case ir.TextMatch():
            more = f", {show(expr.edits)}" if expr.edits is not None else ""
            return f"{expr.predicate.value}(${expr.var}.{expr.property}, {show(expr.query)}{more})"
        case ir.Nearest() | ir.Bm25():
            name = "nearest" if isinstance(expr, ir.Nearest) else "bm25"
            return f"{name}(${expr.var}.{expr.property}, {show(expr.query)})"
        case ir.Rrf(first=first, second=second, k=k):
            return f"rrf({show(first)}, {show(second)}{f', {show(k)}' if k is not None else ''})"
        case ir.Aggregate(function=function, arg=arg, distinct=distinct):
            return f"{function.value}({'distinct ' if distinct else ''}{show(arg)})"
        case ir.ColumnRef(name=name):
            return name
        case _:
            return _computed(expr)


def _computed(expr: ir.Expr) -> str:
    match expr:
        case ir.EndsWith(text=text, suffix=suffix):
            return f"{show(text)} ends_with {show(suffix)}"
        case ir.Matches(text=text, pattern=pattern):
            return f"{show(text)} matches {show(pattern)}"
        case ir.Arithmetic(op=op, left=left, right=right):
            return f"({show(left)} {op.value} {show(right)})"
        case ir.Negate(item=item):
            return f"-{show(item)}"
        case ir.Shift(moment=moment, amount=amount, unit=unit, backwards=backwards):
            return f"({show(moment)} {'-' if backwards else '+'} {unit.value}({show(amount)}))"
        case ir.Case(branches=branches, otherwise=otherwise):
            shown = " ".join(f"when {show(condition)} then {show(value)}" for condition, value in branches)
            return f"case {{ {shown} else {show(otherwise)} }}"
        case ir.ListOf(items=items):
            return f"[{', '.join(show(item) for item in items)}]"
        case ir.Index(items=values, index=index):
            return f"{show(values)}[{show(index)}]"
        case ir.Call(function=function, args=args):
            return f"{function}({', '.join(show(arg) for arg in args)})"
        case ir.TypeOf(var=var):
            return f"${var}.@type"
        case ir.PathValue(var=var, part=part):
            return f"{part.value}(${var})"
        case _:
            return type(expr).__name__


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple | list):
        shown = ", ".join(_literal(item) for item in value[:8])
        return f"[{shown}{', …' if len(value) > 8 else ''}]"
    return str(value)
