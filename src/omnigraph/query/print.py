"""The parts of a query as text on one line. Parsing the text gives the same tree."""

from __future__ import annotations

from types import UnionType

from omnigraph.query import syntax


def header_text(query: syntax.Query) -> str:
    """`query name($a: T, $b: T?)`."""
    if not query.parameters:
        return f"query {query.name.text}"
    return f"query {query.name.text}({', '.join(parameter_text(each) for each in query.parameters)})"


def parameter_text(parameter: syntax.Parameter) -> str:
    """`$a: T?`."""
    return f"${parameter.variable.name}: {type_text(parameter.type)}{'?' if parameter.optional else ''}"


def type_text(type_: syntax.TypeName) -> str:
    """`T`, `[T]` or `T(n)`."""
    if type_.is_list:
        return f"[{type_.name.text}]"
    return type_.name.text if type_.size is None else f"{type_.name.text}({type_.size})"


def annotation_text(annotation: syntax.Annotation) -> str:
    """`@name("…")`."""
    return f"@{annotation.name.text}({annotation.value.text})"


def bind_head(bind: syntax.Bind) -> str:
    """`$x: Type`, without the inline properties."""
    return f"${bind.variable.name}: {bind.type.text}"


def value_text(item: syntax.PropertyValue) -> str:
    """`p: v`."""
    return f"{item.name.text}: {expression_text(item.value)}"


def traversal_text(traversal: syntax.Traversal) -> str:
    """`$a $w:<edge>{1,2} $b`, with the parts that are there."""
    edge = f"<{traversal.edge.text}>" if traversal.undirected else traversal.edge.text
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable.name}:{edge}"
    if traversal.bounds is not None:
        edge += _bounds_text(traversal.bounds)
    return f"${traversal.source.name} {edge} ${traversal.target.name}"


def _bounds_text(bounds: syntax.Bounds) -> str:
    low = "" if bounds.low is None else str(bounds.low)
    high = "" if bounds.high is None else str(bounds.high)
    return f"{{{low},{high}}}" if low or high else "{}"


def projection_text(projection: syntax.Projection) -> str:
    """`expression as alias`."""
    text = expression_text(projection.expression)
    return text if projection.alias is None else f"{text} as {projection.alias.text}"


def order_text(key: syntax.OrderKey) -> str:
    """`expression desc`."""
    text = expression_text(key.expression)
    return text if key.descending is None else f"{text} {'desc' if key.descending else 'asc'}"


def expression_text(expression: syntax.Expression) -> str:
    """An expression, with the parentheses that it needs and no others."""
    match expression:
        case syntax.Literal():
            return expression.text
        case syntax.ListLiteral(items):
            return f"[{', '.join(expression_text(item) for item in items)}]"
        case syntax.Variable(name):
            return f"${name}"
        case syntax.Property(variable, name):
            return f"${variable.name}.{name.text}"
        case syntax.Reference(name):
            return name
        case syntax.Call(function, args):
            return f"{function.text}({', '.join(expression_text(arg) for arg in args)})"
        case syntax.Comparison(operator, left, right):
            return f"{_operand(left)} {operator.value} {_operand(right)}"
        case syntax.And(items):
            return " and ".join(_inside(item, syntax.And | syntax.Or) for item in items)
        case syntax.Or(items):
            return " or ".join(_inside(item, syntax.Or) for item in items)
        case syntax.Not(item):
            return f"not {_inside(item, syntax.And | syntax.Or)}"


def _operand(expression: syntax.Expression) -> str:
    return _inside(expression, syntax.Comparison | syntax.And | syntax.Or | syntax.Not)


def _inside(expression: syntax.Expression, kinds: type | UnionType) -> str:
    """The text of a part, in parentheses when it binds more loosely than what is around it."""
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, kinds) else text
