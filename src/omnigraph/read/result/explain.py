"""A plan as a person reads it, and as JSON: order of steps, choices with their costs, estimates, and what a run
really did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.query import ir
from omnigraph.read.plan.choice import Choices
from omnigraph.read.plan.show import show
from omnigraph.read.plan.steps import (
    AntiStep,
    CheckStep,
    CombineStep,
    ExistsStep,
    ExpandStep,
    FilterStep,
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
    _steps(plan.steps, 0, choices, profile, lines)
    for operator in plan.upper:
        record = profile.records.get(id(operator)) if profile is not None else None
        name, what = _upper(operator)
        lines.append(
            Line(name, what, 0, None, None, record.rows if record else None, record.seconds if record else None)
        )
    return Explanation(plan.query.name, tuple(lines), profile)


def _steps(steps: tuple[Step, ...], depth: int, choices: Choices, profile: Profile | None, lines: list[Line]) -> None:
    for step in steps:
        record = profile.records.get(id(step)) if profile is not None else None
        name, what = _describe(step)
        choice = None
        if isinstance(step, ExpandStep | CheckStep | ExistsStep):
            made = choices.edges[step.edge]
            choice = f"{made.mode.value}{' (forced)' if made.forced else ''}: "
            choice += f"indexed {_milliseconds(made.indexed_cost)}, csr {_milliseconds(made.csr_cost)}"
        rows, seconds = (record.rows, record.seconds) if record else (None, None)
        lines.append(Line(name, what, depth, step.rows, choice, rows, seconds))
        _steps(inner_steps(step), depth + 1, choices, profile, lines)


def _describe(step: Step) -> tuple[str, str]:
    match step:
        case ScanStep():
            return "scan", f"${step.var}: {step.table_key}{_where(step.filters)}"
        case ExpandStep():
            return "expand", f"{_arrow(step)}{_where(step.edge_filters + step.to_filters)}"
        case CheckStep():
            return "check", f"{_arrow(step)}{_where(step.edge_filters)}"
        case ExistsStep():
            return "exists", f"${step.from_var} {_edge(step.edge, step.direction)}"
        case FilterStep():
            return "filter", show(step.predicate)
        case AntiStep():
            names = ", ".join("$" + var for var in step.anti.vars)
            return "anti-join", f"on {names}" if step.seeded else f"on {names}, all matches first"
        case CombineStep():
            if not step.on:
                return "product", ""
            return "join", "on " + " and ".join(f"{show(each.left)} = {show(each.right)}" for each in step.on)


def _arrow(step: ExpandStep | CheckStep) -> str:
    hops = "" if step.max_hops == 1 else f"{{{step.min_hops},{step.max_hops}}}"
    edge = f" as ${step.edge_var}" if step.edge_var is not None else ""
    return f"${step.from_var} {_edge(step.edge, step.direction)}{hops}{edge} ${step.to_var}: {step.to_table}"


def _edge(edge: str, direction: ir.Direction) -> str:
    name = edge.removeprefix("edge:")
    if direction is ir.Direction.OUT:
        return f"-{name}->"
    return f"<-{name}-" if direction is ir.Direction.IN else f"<-{name}->"


def _where(filters: tuple[ir.Expr, ...]) -> str:
    return " where " + " and ".join(show(item) for item in filters) if filters else ""


def _upper(operator: ir.Operator) -> tuple[str, str]:
    match operator:
        case ir.Rank(ranking=ranking):
            return "rank", show(ranking)
        case ir.Fuse(ranking=ranking):
            return "fuse", show(ranking)
        case ir.GroupBy(keys=keys, aggregates=aggregates):
            by = ", ".join(show(key.expr) for key in keys) or "everything"
            return "aggregate", f"{', '.join(show(column.expr) for column in aggregates)} by {by}"
        case ir.Sort(keys=keys, tie_break=tie_break):
            shown = [show(key.expr) + (" desc" if key.descending else "") for key in keys]
            return "sort", "by " + ", ".join([*shown, *(f"id of ${name}" for name in tie_break)])
        case ir.Limit(count=count):
            return "limit", show(count)
        case ir.Project(columns=columns):
            return "project", ", ".join(column.name for column in columns)
        case ir.Filter(predicate=predicate):
            return "filter", show(predicate)
        case _:
            return type(operator).__name__.lower(), ""


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f} ms"
