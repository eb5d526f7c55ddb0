"""A tree as `.gq` text. Constructs register how they are written."""

from __future__ import annotations

import datetime
import json
from functools import singledispatch
from typing import Any

from tests.differential import tree


@singledispatch
def written(node: Any) -> str:
    """An expression or a clause as text."""
    raise TypeError(f"nobody says how {type(node).__name__} is written")


def variable(name: str) -> str:
    """`$x`, or `$_` for an anonymous one."""
    return "$_" if name.startswith("_") else f"${name}"


def block(clauses: tuple[tree.Clause, ...]) -> str:
    """Clauses between braces; a comma before one that starts with a sign, which would go on with the one before."""
    text = ""
    for each in clauses:
        one = written(each)
        text += ("," if text and one[0] in "-[(" else "") + ("\n  " if text else "") + one
    return "{ " + text + " }"


def literal(value: Any) -> str:
    """A constant as it is written in a query."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        return f'datetime("{moment(value)}")'
    if isinstance(value, datetime.date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(literal(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def moment(value: datetime.datetime) -> str:
    """A moment as ISO text in UTC."""
    return value.isoformat().replace("+00:00", "Z")


@written.register
def _(node: tree.Literal) -> str:
    return literal(node.value)


@written.register
def _(node: tree.Param) -> str:
    return f"${node.name}"


@written.register
def _(node: tree.Prop) -> str:
    return f"${node.var}.{node.name}"


@written.register
def _(node: tree.Entity) -> str:
    return f"${node.var}"


@written.register
def _(node: tree.Alias) -> str:
    return node.name


@written.register
def _(node: tree.Bind) -> str:
    inline = " { " + ", ".join(f"{prop.name}: {written(value)}" for prop, value in node.inline) + " }"
    return f"{variable(node.var)}: {node.kind.split(':')[1]}" + (inline if node.inline else "")


@written.register
def _(node: tree.Bare) -> str:
    return node.name


@written.register
def _(node: tree.PathPart) -> str:
    return f"{node.part}(${node.path})"


@written.register
def _(node: tree.Hop) -> str:
    name = "*" if node.any_edge else "|".join(each[0].lower() + each[1:] for each in (node.edge, *node.others))
    if node.target in ("b", "x"):  # edge types are found without regard to case
        name = name.upper()
    bounds = f"{{{node.low},{node.high}}}" if node.bounded or node.low > 1 or node.high > 1 else ""
    bounds += f"[{written(node.walk)}]" if node.walk is not None else ""
    binding = f"{variable(node.edge_var)}:" if node.edge_var else ""
    middle = f"<{name}>{bounds}" if node.undirected else f"{name}{bounds}"
    path = f" as ${node.path}" if node.path else ""
    return f"{variable(node.source)} {binding}{middle} {variable(node.target)}{path}"


@written.register
def _(node: tree.Where) -> str:
    return written(node.condition)


@written.register
def _(node: tree.Block) -> str:
    return f"{node.kind} {block(node.clauses)}"


def _columns(columns: tuple[tree.Column, ...]) -> str:
    texts = [written(each.expr) + (f" as {each.alias}" if each.alias else "") for each in columns]
    can_go_on = any(text[0] in "-[(" for text in texts)
    return (", " if can_go_on or len(texts) % 2 == 0 else " ").join(texts)  # commas are optional


def _order(keys: tuple[tree.OrderKey, ...]) -> str:
    def one(key: tree.OrderKey) -> str:
        nulls = f" nulls {key.nulls}" if key.nulls else ""
        return written(key.expr) + (f" {key.direction}" if key.direction else "") + nulls

    return f" order {{ {', '.join(map(one, keys))} }}" if keys else ""


def declared(parameter: tree.Parameter) -> str:
    """A parameter as the head of a query has it."""
    default = f" = {literal(parameter.default[0])}" if parameter.default else ""
    type_ = "Vector(2)" if parameter.type == "Vector" else parameter.type
    return f"${parameter.name}: {type_}{'?' if parameter.optional else ''}{default}"


def query(read: tree.Query, name: str = "q") -> str:
    """A whole read."""
    header = ", ".join(map(declared, read.parameters))
    text = f"query {name}({header}) {{\nmatch {block(read.clauses)}\n"
    for stage in read.stages:
        text += f"with {'distinct ' if stage.distinct else ''}{{ {_columns(stage.columns)} }}"
        text += f" where {written(stage.where)}" if stage.where is not None else ""
        text += _order(stage.order)
        text += f" limit {written(stage.limit)}" if stage.limit is not None else ""
        text += f" offset {written(stage.offset)}" if stage.offset is not None else ""
        text += f"\nmatch {block(stage.clauses)}\n"
    text += f"return {'distinct ' if read.distinct else ''}{{ {_columns(read.columns)} }}"
    text += f"\nhaving {{ {written(read.having)} }}" if read.having is not None else ""
    text += "\n" + _order(read.order).strip() if read.order else ""
    text += f"\noffset {written(read.offset)}" if read.offset is not None else ""
    text += f"\nlimit {written(read.limit)}" if read.limit is not None else ""
    return text + "\n}"


def deletion(kind: str, id_: str) -> str:
    """A mutation that deletes one row by its own id, whatever its properties are called."""
    return f"query d() {{ delete {kind.split(':')[1]} where @id = {literal(id_)} }}"


def json_value(value: Any) -> Any:
    """A value as the load and the parameters take it."""
    if isinstance(value, datetime.datetime):
        return moment(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return value


def arguments(read: tree.Query) -> dict[str, Any]:
    """The values of the parameters as they are passed; 64-bit integers of every other one as text."""
    given = [each for each in read.parameters if each.given]
    return {each.name: _argument(each, at % 2 == 1) for at, each in enumerate(given)}


def _argument(parameter: tree.Parameter, as_text: bool) -> Any:
    wide = as_text and parameter.type in ("I64", "U64") and parameter.value is not None
    return str(parameter.value) if wide else json_value(parameter.value)
