"""The parts of a query as text on one line. Parsing the text gives the same tree."""

from __future__ import annotations

from omnigraph.query.text import syntax


def header_text(query: syntax.Query) -> str:
    """`query name($a: T, $b: T?)`."""
    if not query.parameters:
        return f"query {query.name.text}"
    return f"query {query.name.text}({', '.join(parameter_text(each) for each in query.parameters)})"


def parameter_text(parameter: syntax.Parameter) -> str:
    """`$a: T?`, `$a: T = 3`."""
    default = "" if parameter.default is None else f" = {expression_text(parameter.default)}"
    return f"${parameter.variable.name}: {type_text(parameter.type)}{'?' if parameter.optional else ''}{default}"


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
    """`$a $w:<edge|other>{1,2}[condition] $b as $path`, with the parts that are there."""
    edge = "|".join(name.text for name in (traversal.edge, *traversal.alternatives))
    if traversal.undirected:
        edge = f"<{edge}>"
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable.name}:{edge}"
    if traversal.bounds is not None:
        edge += _bounds_text(traversal.bounds)
    if traversal.where is not None:
        edge += f"[{expression_text(traversal.where)}]"
    path = "" if traversal.path is None else f" as ${traversal.path.name}"
    return f"${traversal.source.name} {edge} ${traversal.target.name}{path}"


def _bounds_text(bounds: syntax.Bounds) -> str:
    low = "" if bounds.low is None else str(bounds.low)
    high = "" if bounds.high is None else str(bounds.high)
    return f"{{{low},{high}}}" if low or high else "{}"


def projection_text(projection: syntax.Projection) -> str:
    """`expression as alias`."""
    text = expression_text(projection.expression)
    return text if projection.alias is None else f"{text} as {projection.alias.text}"


def order_text(key: syntax.OrderKey) -> str:
    """`expression desc nulls last`."""
    text = expression_text(key.expression)
    if key.descending is not None:
        text += " desc" if key.descending else " asc"
    if key.nulls_first is not None:
        text += " nulls first" if key.nulls_first else " nulls last"
    return text


def target_text(target: syntax.Name | syntax.Variable) -> str:
    """What an update or a delete is about: a type or a variable."""
    return target.text if isinstance(target, syntax.Name) else f"${target.name}"


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
        case syntax.Call():
            return _call_text(expression)
        case syntax.Comparison(operator, left, right):
            return f"{_within(left, _SUM)} {operator.value} {_within(right, _SUM)}"
        case syntax.NullTest(item, negated):
            return f"{_within(item, _SUM)} is {'not ' if negated else ''}null"
        case syntax.Arithmetic(operator, left, right):
            level = _level(expression)
            return f"{_within(left, level)} {operator.value} {_within(right, level + 1)}"
        case syntax.Negative(item):
            return f"-{_within(item, _UNARY)}"
        case syntax.Index(item, index):
            return f"{_within(item, _POSTFIX)}[{expression_text(index)}]"
        case syntax.Case(branches, otherwise):
            shown = " ".join(f"when {expression_text(test)} then {expression_text(value)}" for test, value in branches)
            return f"case {{ {shown} else {expression_text(otherwise)} }}"
        case syntax.And(items):
            return " and ".join(_within(item, _NOT) for item in items)
        case syntax.Or(items):
            return " or ".join(_within(item, _AND) for item in items)
        case syntax.Not(item):
            return f"not {_within(item, _NOT)}"


def _call_text(call: syntax.Call) -> str:
    args = [expression_text(arg) for arg in call.args]
    args += [f"{option.label.text}: {expression_text(option.value)}" for option in call.options]
    return f"{call.function.text}({'distinct ' if call.distinct else ''}{', '.join(args)})"


_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _POSTFIX = range(8)
"""How tightly expressions bind, the loosest first."""


def _level(expression: syntax.Expression) -> int:
    match expression:
        case syntax.Or():
            return _OR
        case syntax.And():
            return _AND
        case syntax.Not():
            return _NOT
        case syntax.Comparison() | syntax.NullTest():
            return _COMPARISON
        case syntax.Arithmetic(syntax.ArithmeticOperator.ADD | syntax.ArithmeticOperator.SUBTRACT):
            return _SUM
        case syntax.Arithmetic():
            return _PRODUCT
        case syntax.Negative():
            return _UNARY
        case syntax.Literal(text=text) if text.startswith("-"):
            return _UNARY
        case _:
            return _POSTFIX


def _within(expression: syntax.Expression, level: int) -> str:
    """The text of a part, in parentheses when it binds more loosely than what is around it."""
    text = expression_text(expression)
    return f"({text})" if _level(expression) < level else text
