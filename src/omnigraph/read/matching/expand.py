"""Following edges from bindings to more bindings, or checking that two bound ends are connected."""

from __future__ import annotations

import numpy as np

from omnigraph.read.codes.arrays import Codes, distinct_codes, ranges
from omnigraph.read.matching.reach import Csr, Indexed, Reached, form_of
from omnigraph.read.matching.scan import entity_mask
from omnigraph.read.plan.block import REVERSED
from omnigraph.read.plan.steps import CheckStep, ExistsStep, ExpandStep
from omnigraph.read.state.frame import Frame
from omnigraph.read.state.run_state import Run


def expand(run: Run, frame: Frame, step: ExpandStep) -> Frame:
    """One row for each (row, reached entity) pair, or with an edge variable for each edge."""
    rows, reached = _reach_rows(run, frame, step)
    kept = entity_mask(run, step.to_var, reached.targets, step.to_filters)
    rows, reached = _keep(rows, reached, kept)
    run.memory.expect("bindings", 8 * len(rows) * (len(frame.bindings) + 1))
    result = frame.take(rows).bind(step.to_var, reached.targets)
    if step.edge_var is not None and reached.edges is not None:
        result = result.bind(step.edge_var, reached.edges)
    return result


def check(run: Run, frame: Frame, step: CheckStep) -> Frame:
    """The rows whose two ends are connected; with an edge variable, one for each edge between them."""
    if step.edge_var is not None:
        rows, reached = _reach_rows(run, frame, step)
        rows, reached = _keep(rows, reached, reached.targets == frame.bindings[step.to_var][rows])
        edges = reached.edges
        assert edges is not None
        return frame.take(rows).bind(step.edge_var, edges)
    sources, targets = frame.bindings[step.from_var], frame.bindings[step.to_var]
    form = form_of(run, step)
    if step.max_hops == 1:
        return frame.keep(form.joined(sources, targets))
    from_distinct, from_inverse = distinct_codes(sources)
    to_distinct, to_inverse = distinct_codes(targets)
    if len(to_distinct) < len(from_distinct):
        # Distance is the same walked backwards: start from the side with fewer nodes.
        direction = REVERSED[step.direction]
        form = Csr(run, step.edge, direction) if isinstance(form, Csr) else Indexed(run, step.edge, direction)
        from_distinct, from_inverse, targets = to_distinct, to_inverse, sources
    reached = form.reach(from_distinct, step.min_hops, step.max_hops, by_edge=False)
    width = 1 + max(int(targets.max(initial=0)), int(reached.targets.max(initial=0)))
    return frame.keep(np.isin(from_inverse * width + targets, reached.sources * width + reached.targets))


def exists(run: Run, frame: Frame, step: ExistsStep) -> Frame:
    """The rows whose variable has an edge."""
    return frame.keep(form_of(run, step).has_any(frame.bindings[step.from_var]))


def _reach_rows(run: Run, frame: Frame, step: ExpandStep | CheckStep) -> tuple[Codes, Reached]:
    """For each pair found, the row of the frame it belongs to. Filters of the edge have been applied."""
    form = form_of(run, step)
    sources = frame.bindings[step.from_var]
    by_edge = step.edge_var is not None
    if step.max_hops == 1 and isinstance(form, Csr):
        reached = form.reach(sources, 1, 1, by_edge=by_edge)
        return _edge_filtered(run, step, reached.sources, reached)
    distinct, inverse = distinct_codes(sources)
    reached = form.reach(distinct, step.min_hops, step.max_hops, by_edge=by_edge)
    _, reached = _edge_filtered(run, step, reached.sources, reached)
    if len(distinct) == len(sources):
        # Rows and distinct sources correspond one to one, in whatever order.
        row_of = np.empty(len(distinct), dtype=np.int64)
        row_of[inverse] = np.arange(len(sources))
        return row_of[reached.sources], reached
    order = np.argsort(reached.sources, kind="stable")
    counts = np.bincount(reached.sources, minlength=len(distinct))
    starts = np.cumsum(counts) - counts
    run.memory.expect("reached nodes", 24 * int(counts[inverse].sum()))
    rows = np.repeat(np.arange(len(sources), dtype=np.int64), counts[inverse])
    places = order[ranges(starts[inverse], counts[inverse])]
    edges = None if reached.edges is None else reached.edges[places]
    return rows, Reached(reached.sources[places], reached.targets[places], edges)


def _edge_filtered(run: Run, step: ExpandStep | CheckStep, rows: Codes, reached: Reached) -> tuple[Codes, Reached]:
    if not step.edge_filters or step.edge_var is None or reached.edges is None:
        return rows, reached
    return _keep(rows, reached, entity_mask(run, step.edge_var, reached.edges, step.edge_filters))


def _keep(rows: Codes, reached: Reached, mask: np.ndarray) -> tuple[Codes, Reached]:
    if bool(mask.all()):
        return rows, reached
    edges = None if reached.edges is None else reached.edges[mask]
    return rows[mask], Reached(reached.sources[mask], reached.targets[mask], edges)
