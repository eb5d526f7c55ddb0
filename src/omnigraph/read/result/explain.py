"""A plan as a person reads it, and as JSON: order of steps, choices with their costs, estimates, and what a run
really did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.query import ir
from omnigraph.read.plan.block import EdgeAtom
from omnigraph.read.plan.choice import Choices, EdgeChoice
from omnigraph.read.plan.show import show
from omnigraph.read.plan.steps import (
    CheckStep,
    CombineStep,
    EitherStep,
    ExistsStep,
    ExpandStep,
    FilterStep,
    InnerStep,
    OptionalStep,
    Plan,
    ScanStep,
    Step,
    inner_steps,
)
from omnigraph.read.state.profile import Profile


@dataclass(frozen=True, slots=True)
class Line:
    """One step of the plan."""

    name: str
    what: str
    depth: int
    estimate: float | None
    choice: str | None
    rows: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan of a query; with the figures of a run when it has been run."""

    query: str
    lines: tuple[Line, ...]
    profile: Profile | None

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """One line for each step, first to last."""
        out = [f"query {self.query}"]
        for line in self.lines:
            text = f"{'  ' * line.depth}{line.name} {line.what}".rstrip()
            facts = []
            if line.estimate is not None:
                facts.append(f"about {_count(line.estimate)} rows")
            if line.choice:
                facts.append(line.choice)
            if line.rows is not None:
                facts.append(f"{line.rows} rows")
            if line.seconds is not None:
                facts.append(f"{line.seconds * 1000:.2f} ms")
            out.append(f"  {text}" + (f"  [{', '.join(facts)}]" if facts else ""))
        if self.profile is not None and self.profile.result_rows is not None:
            profile = self.profile
            out.append(
                f"  total: {profile.result_rows} rows, {profile.total_seconds * 1000:.2f} ms, "
                f"{profile.peak_bytes / (1 << 20):.1f} MB at most"
            )
        return "\n".join(out)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        steps = [
            {
                "step": line.name,
                "what": line.what,
                "depth": line.depth,
                "estimated_rows": None if line.estimate is None else round(line.estimate, 3),
                "choice": line.choice,
                "rows": line.rows,
                "seconds": line.seconds,
            }
            for line in self.lines
        ]
        run = None
        if self.profile is not None and self.profile.result_rows is not None:
            run = {
                "rows": self.profile.result_rows,
                "seconds": self.profile.total_seconds,
                "planning_seconds": self.profile.planning_seconds,
                "peak_bytes": self.profile.peak_bytes,
            }
        return {"query": self.query, "steps": steps, "run": run}


def explain(plan: Plan, choices: Choices, profile: Profile | None) -> Explanation:
    """The explanation of a plan, with the figures of a run when there was one."""
    lines: list[Line] = []
    for stage in plan.stages:
        _steps(stage.block.steps, 0, choices, profile, lines)
        for operator in stage.upper:
            record = profile.records.get(id(operator)) if profile is not None else None
            name, what = _upper(operator, plan)
            rows, seconds = (record.rows, record.seconds) if record else (None, None)
            lines.append(Line(name, what, 0, None, None, rows, seconds))
    return Explanation(plan.query.name, tuple(lines), profile)


def _steps(steps: tuple[Step, ...], depth: int, choices: Choices, profile: Profile | None, lines: list[Line]) -> None:
    for step in steps:
        inside = inner_steps(step)
        if isinstance(step, OptionalStep):
            _steps(step.below.steps, depth, choices, profile, lines)
            inside = (step.inner.steps,)
        record = profile.records.get(id(step)) if profile is not None else None
        name, what = _describe(step)
        choice = None
        if isinstance(step, ExpandStep | CheckStep | ExistsStep):
            choice = "; ".join(_choice(choices.edges[edge]) for edge in step.atom.edges)
        if record is not None and record.note:
            choice = record.note
        rows, seconds = (record.rows, record.seconds) if record else (None, None)
        lines.append(Line(name, what, depth, step.rows, choice, rows, seconds))
        for number, arm in enumerate(inside):
            if isinstance(step, EitherStep):
                lines.append(Line("arm", str(number + 1), depth + 1, None, None, None, None))
            _steps(arm, depth + (2 if isinstance(step, EitherStep) else 1), choices, profile, lines)


def _choice(made: EdgeChoice) -> str:
    forced = " (forced)" if made.forced else ""
    costs = f"indexed {_milliseconds(made.indexed_cost)}, csr {_milliseconds(made.csr_cost)}"
    return f"{made.mode.value}{forced}: {costs}"


def _describe(step: Step) -> tuple[str, str]:
    match step:
        case ScanStep():
            return "scan", f"${step.var}: {_tables(step.tables)}{_where(step.filters)}"
        case ExpandStep():
            end = f"${step.to_var}: {_tables(step.to_tables)}"
            return "expand", f"{_arrow(step)} {end}{_path(step.atom)}{_where(step.edge_filters + step.to_filters)}"
        case CheckStep():
            return "check", f"{_arrow(step)} ${step.to_var}{_path(step.atom)}{_where(step.edge_filters)}"
        case ExistsStep():
            return "exists", _arrow(step)
        case FilterStep():
            return "filter", show(step.predicate)
        case InnerStep(operator=operator):
            name = "anti-join" if isinstance(operator, ir.AntiJoin) else "semi-join"
            return name, _on(operator) + ("" if step.seeded else ", all matches first")
        case EitherStep(operator=operator):
            return "either", _on(operator) + _binding(operator.binds)
        case OptionalStep(operator=operator):
            return "optional", _on(operator) + _binding(operator.binds)
        case CombineStep():
            if not step.on:
                return "product", ""
            return "join", "on " + " and ".join(f"{show(each.left)} = {show(each.right)}" for each in step.on)


def _on(operator: ir.AntiJoin | ir.SemiJoin | ir.Either | ir.Optional) -> str:
    names = [*("$" + var for var in operator.vars), *operator.columns]
    return f"on {', '.join(names)}" if names else "on nothing"


def _binding(variables: tuple[ir.Variable, ...]) -> str:
    return " binding " + ", ".join("$" + variable.name for variable in variables) if variables else ""


def _tables(tables: tuple[str, ...]) -> str:
    return tables[0] + "".join("|" + key.split(":", 1)[1] for key in tables[1:])


def _arrow(step: ExpandStep | CheckStep | ExistsStep) -> str:
    atom = step.atom
    hops = "" if atom.max_hops == 1 else f"{{{atom.min_hops},{atom.max_hops}}}"
    where = "" if atom.where is None else f"[{show(atom.where).replace(f'${ir.EDGE}.', '')}]"
    edge = f" as ${atom.edge_var}" if atom.edge_var is not None else ""
    names = "|".join(each.removeprefix("edge:") for each in atom.edges)
    return f"${step.from_var} {_edge(names, step.direction)}{hops}{where}{edge}"


def _path(atom: EdgeAtom) -> str:
    return "" if atom.path_var is None else f" as ${atom.path_var}"


def _edge(name: str, direction: ir.Direction) -> str:
    if direction is ir.Direction.OUT:
        return f"-{name}->"
    return f"<-{name}-" if direction is ir.Direction.IN else f"<-{name}->"


def _where(filters: tuple[ir.Expr, ...]) -> str:
    return " where " + " and ".join(show(item) for item in filters) if filters else ""


def _upper(operator: ir.Operator, plan: Plan) -> tuple[str, str]:
    match operator:
        case ir.Rank(ranking=ranking):
            return "rank", show(ranking)
        case ir.Fuse(ranking=ranking):
            return "fuse", show(ranking)
        case ir.GroupBy(keys=keys, aggregates=aggregates):
            by = ", ".join(show(key.expr) for key in keys) or "everything"
            if not aggregates:
                return "distinct", by
            return "aggregate", f"{', '.join(show(column.expr) for column in aggregates)} by {by}"
        case ir.Sort(keys=keys, tie_break=tie_break):
            shown = [show(key.expr) + _direction(key) for key in keys]
            return "sort", "by " + ", ".join(
                [*shown, *(f"id of ${name}" if name in plan.variables else name for name in tie_break)]
            )
        case ir.Limit(count=count, offset=offset):
            skipped = "" if offset is None else f" from row {show(offset)} on"
            return "limit", ("all" if count is None else show(count)) + skipped
        case ir.Stage(variables=variables, columns=columns):
            return "stage", ", ".join([*("$" + name for name in variables), *(column.name for column in columns)])
        case ir.Project(columns=columns):
            return "project", ", ".join(column.name for column in columns)
        case ir.Filter(predicate=predicate):
            return "filter", show(predicate)
        case _:
            return type(operator).__name__.lower(), ""


def _direction(key: ir.SortKey) -> str:
    nulls = "" if key.nulls_first is None else f" nulls {'first' if key.nulls_first else 'last'}"
    return (" desc" if key.descending else "") + nulls


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f} ms"
