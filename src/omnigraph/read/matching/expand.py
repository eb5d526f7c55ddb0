"""Following edges from bindings to more bindings, or checking that two bound ends are connected.

One edge type without a condition goes to its physical form at once; everything else is put together by `Links`.
"""

from __future__ import annotations

import numpy as np

from omnigraph.read.codes.arrays import Codes, distinct_codes, inserted, ranges
from omnigraph.read.matching.links import Links, pair_numbers, recoded
from omnigraph.read.matching.paths import shortest_paths
from omnigraph.read.matching.reach import Csr, Reached, form_of
from omnigraph.read.matching.scan import entity_mask
from omnigraph.read.plan.block import REVERSED
from omnigraph.read.plan.steps import CheckStep, ExistsStep, ExpandStep
from omnigraph.read.state.frame import NULL, Frame
from omnigraph.read.state.run_state import Run
from omnigraph.read.tables.topology import Window


def expand(run: Run, frame: Frame, step: ExpandStep, window: Window | None = None) -> Frame:
    """One row for each (row, reached entity) pair, or with an edge variable for each edge.

    `window`: only some of the entries of each source, where `degrees_of` says that they can be counted.
    """
    frame = _present(frame, step.from_var)
    return _with_path(run, _bound(run, frame, step, *_filtered_rows(run, frame, step, window)), step)


def expand_or_nothing(run: Run, frame: Frame, step: ExpandStep) -> Frame:
    """As `expand`, and a row from which nothing is reached stays once, with nothing bound.

    This is what an `optional` of one edge asks for, at the price of the join. It binds no path.
    """
    whole_hop = _whole_hop(run, frame, step)
    if whole_hop is not None:
        return _bound(run, frame, step, whole_hop.sources, whole_hop)
    there = np.flatnonzero(frame.bindings[step.from_var] >= 0)
    whole = len(there) == frame.length
    rows, reached = _filtered_rows(run, frame if whole else frame.take(there), step)
    rows = rows if whole else there[rows]
    alone, places = _left_alone(frame, rows)
    if len(alone):
        nothing = np.full(len(alone), NULL, dtype=np.int64)
        edges = None if reached.edges is None else inserted(reached.edges, places, nothing)
        rows = inserted(rows, places, alone)
        reached = Reached(rows, inserted(reached.targets, places, nothing), edges)
    return _bound(run, frame, step, rows, reached)


def _whole_hop(run: Run, frame: Frame, step: ExpandStep) -> Reached | None:
    """Every entry of every row, and nothing for a row without one; None where entries may have to be left out."""
    codes = frame.bindings[step.from_var]
    tables = run.variables[step.to_var]
    if step.to_filters or step.edge_filters or step.atom.max_hops > 1 or not set(tables) <= set(step.to_tables):
        return None
    if not _is_plain(run, step) or (len(codes) and int(codes.min()) < 0):
        return None
    form = form_of(run, step.atom.edges[0], step.direction)
    return form.reach_or_nothing(codes, by_edge=step.atom.edge_var is not None) if isinstance(form, Csr) else None


def _left_alone(frame: Frame, rows: Codes) -> tuple[Codes, Codes]:
    """The rows of the frame from which nothing was reached, and where each goes among the rows that were found.

    Rows that are in order stay so: sorting them again would cost more than everything else here.
    """
    matched = np.zeros(frame.length, dtype=bool)
    matched[rows] = True
    alone = np.flatnonzero(~matched)
    in_order = bool(np.all(rows[1:] >= rows[:-1]))
    return alone, np.searchsorted(rows, alone) if in_order else np.full(len(alone), len(rows))


def _filtered_rows(run: Run, frame: Frame, step: ExpandStep, window: Window | None = None) -> tuple[Codes, Reached]:
    """For each pair that passes all conditions of the step, the row of the frame it belongs to."""
    rows, reached = _reach_rows(run, frame, step, window)
    tables = run.variables[step.to_var]
    if not set(tables) <= set(step.to_tables):
        allowed, _ = recoded(run, reached.targets, tables, tables, step.to_tables)
        rows, reached = rows[allowed], _at(reached, allowed)
    return _keep(rows, reached, entity_mask(run, step.to_var, reached.targets, step.to_filters))


def _bound(run: Run, frame: Frame, step: ExpandStep, rows: Codes, reached: Reached) -> Frame:
    """These rows with what was reached from each."""
    run.memory.expect("bindings", 8 * len(rows) * (len(frame.bindings) + 1))
    result = frame.take(rows).bind(step.to_var, reached.targets)
    if step.atom.edge_var is not None and reached.edges is not None:
        result = result.bind(step.atom.edge_var, reached.edges)
    return result


def check(run: Run, frame: Frame, step: CheckStep) -> Frame:
    """The rows whose two ends are connected; with an edge variable, one for each edge between them."""
    frame = _present(_present(frame, step.from_var), step.to_var)
    atom = step.atom
    if atom.edge_var is not None:
        rows, reached = _reach_rows(run, frame, step)
        rows, reached = _keep(rows, reached, reached.targets == frame.bindings[step.to_var][rows])
        assert reached.edges is not None
        return frame.take(rows).bind(atom.edge_var, reached.edges)
    if _is_plain(run, step):
        return _check_plain(run, frame, step)
    sources, inverse = distinct_codes(frame.bindings[step.from_var])
    reached = _reach(run, step, sources)
    wanted, there = pair_numbers((inverse, frame.bindings[step.to_var]), (reached.sources, reached.targets))
    return _with_path(run, frame.keep(np.isin(wanted, there)), step)


def _check_plain(run: Run, frame: Frame, step: CheckStep) -> Frame:
    sources, targets = frame.bindings[step.from_var], frame.bindings[step.to_var]
    atom = step.atom
    form = form_of(run, atom.edges[0], step.direction)
    if atom.max_hops == 1:
        return frame.keep(form.joined(sources, targets))
    from_distinct, from_inverse = distinct_codes(sources)
    to_distinct, to_inverse = distinct_codes(targets)
    if len(to_distinct) < len(from_distinct):
        # Distance is the same walked backwards: start from the side with fewer nodes.
        form = form_of(run, atom.edges[0], REVERSED[step.direction])
        from_distinct, from_inverse, targets = to_distinct, to_inverse, sources
    reached = form.reach(from_distinct, atom.min_hops, atom.max_hops, by_edge=False)
    width = 1 + max(int(targets.max(initial=0)), int(reached.targets.max(initial=0)))
    return frame.keep(np.isin(from_inverse * width + targets, reached.sources * width + reached.targets))


def exists(run: Run, frame: Frame, step: ExistsStep) -> Frame:
    """The rows whose variable has an edge."""
    frame = _present(frame, step.from_var)
    if _is_plain(run, step):
        form = form_of(run, step.atom.edges[0], step.direction)
        return frame.keep(form.has_any(frame.bindings[step.from_var]))
    sources, inverse = distinct_codes(frame.bindings[step.from_var])
    connected = np.zeros(len(sources), dtype=bool)
    connected[_reach(run, step, sources).sources] = True
    return frame.keep(connected[inverse])


def _present(frame: Frame, var: str) -> Frame:
    """The rows in which the variable stands for something: a traversal from or to nothing is no match."""
    codes = frame.bindings[var]
    return frame if len(codes) == 0 or int(codes.min()) >= 0 else frame.keep(codes >= 0)


def _is_plain(run: Run, step: ExpandStep | CheckStep | ExistsStep) -> bool:
    """Whether one physical form answers the step: one edge type between single tables, no condition, no path."""
    atom = step.atom
    single = all(len(run.variables[var]) == 1 for var in (atom.left, atom.right))
    edge = atom.edge_var is None or len(run.variables[atom.edge_var]) == 1
    return single and edge and len(atom.edges) == 1 and atom.where is None and atom.path_var is None


def _reach(run: Run, step: ExpandStep | CheckStep | ExistsStep, sources: Codes) -> Reached:
    """All pairs of a traversal that is not plain: place of the source, and the reached entity of the other variable."""
    atom = step.atom
    from_var, (direction, to_var) = step.from_var, atom.seen_from(step.from_var)
    links = Links(run, atom, direction)
    at, nodes = recoded(run, sources, run.variables[from_var], links.nodes, links.nodes)
    if atom.max_hops == 1:
        reached = links.neighbours(nodes, by_edge=atom.edge_var is not None)
    else:
        reached = links.within(nodes, atom.min_hops, atom.max_hops)
    kept, targets = recoded(run, reached.targets, links.nodes, run.variables[to_var], run.variables[to_var])
    edges = None if reached.edges is None else reached.edges[kept]
    return Reached(at[reached.sources[kept]], targets, edges)


def degrees_of(run: Run, frame: Frame, step: ExpandStep) -> Codes | None:
    """How many entries an expansion looks at for each row; None where it has to take them all at once."""
    if step.atom.max_hops > 1 or not _is_plain(run, step):
        return None
    form = form_of(run, step.atom.edges[0], step.direction)
    codes = frame.bindings[step.from_var]
    if not isinstance(form, Csr) or (len(codes) and int(codes.min()) < 0):
        return None
    return form.degrees(codes, by_edge=step.atom.edge_var is not None)


def _reach_rows(
    run: Run, frame: Frame, step: ExpandStep | CheckStep, window: Window | None = None
) -> tuple[Codes, Reached]:
    """For each pair found, the row of the frame it belongs to. Filters of the edge have been applied."""
    atom = step.atom
    sources = frame.bindings[step.from_var]
    plain = _is_plain(run, step)
    form = form_of(run, atom.edges[0], step.direction) if plain else None
    if atom.max_hops == 1 and isinstance(form, Csr):
        reached = form.reach(sources, 1, 1, by_edge=atom.edge_var is not None, window=window)
        return _edge_filtered(run, step, reached.sources, reached)
    distinct, inverse = distinct_codes(sources)
    if form is not None:
        reached = form.reach(distinct, atom.min_hops, atom.max_hops, by_edge=atom.edge_var is not None)
    else:
        reached = _reach(run, step, distinct)
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
    return rows, _at(reached, order[ranges(starts[inverse], counts[inverse])])


def _with_path(run: Run, frame: Frame, step: ExpandStep | CheckStep) -> Frame:
    """The rows with the path that the step binds, if it binds one."""
    atom = step.atom
    if atom.path_var is None:
        return frame
    start = atom.path_start if atom.path_start is not None else atom.left
    direction, end = atom.seen_from(start)
    links = Links(run, atom, direction)
    _, starts = recoded(run, frame.bindings[start], run.variables[start], links.nodes, links.nodes)
    _, ends = recoded(run, frame.bindings[end], run.variables[end], links.nodes, links.nodes)
    return frame.compute(atom.path_var, shortest_paths(links, starts, ends, atom.max_hops))


def _edge_filtered(run: Run, step: ExpandStep | CheckStep, rows: Codes, reached: Reached) -> tuple[Codes, Reached]:
    edge_var = step.atom.edge_var
    if not step.edge_filters or edge_var is None or reached.edges is None:
        return rows, reached
    return _keep(rows, reached, entity_mask(run, edge_var, reached.edges, step.edge_filters))


def _keep(rows: Codes, reached: Reached, mask: np.ndarray) -> tuple[Codes, Reached]:
    if bool(mask.all()):
        return rows, reached
    at = np.flatnonzero(mask)
    kept = _at(reached, at)
    return kept.sources if rows is reached.sources else rows[at], kept


def _at(reached: Reached, places: Codes) -> Reached:
    edges = None if reached.edges is None else reached.edges[places]
    return Reached(reached.sources[places], reached.targets[places], edges)
