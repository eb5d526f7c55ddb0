"""Blocks inside a block: `not`, `exists`, `optional` and `either`.

Their steps start from the different outer bindings, each once; `ROW` says which one a match belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.query import ir
from omnigraph.read.codes.arrays import Codes, Mask, factorize, ranges
from omnigraph.read.codes.order import order_codes
from omnigraph.read.matching.expand import degrees_of, expand, expand_or_nothing
from omnigraph.read.matching.paths import PATH
from omnigraph.read.plan.block import EdgeAtom
from omnigraph.read.plan.steps import EitherStep, ExpandStep, InnerStep, OptionalStep, PlannedBlock, Step
from omnigraph.read.state.frame import NULL, UNIT, EntityCodes, Frame
from omnigraph.read.state.run_state import Run

RunSteps = Callable[[tuple[Step, ...], Frame], Frame]

MANY_EDGES = 10_000
"""From so many edges on, `not` and `exists` look at a few of each binding first …"""
FIRST_EDGES = 8
"""… at so many, then at four times as many each time."""

ROW = "@row"
"""The outer binding that a match belongs to."""


@dataclass(frozen=True, slots=True)
class Seed:
    """The different outer bindings, and for each row of the frame which one it has."""

    frame: Frame
    numbers: Codes


def seed_of(frame: Frame, names: Sequence[str], columns: Sequence[str]) -> Seed:
    """The bindings of some variables (and computed columns) that a frame has, each once."""
    outer = frame.only(names, columns)
    if outer.columns.keys() & set(names):
        # A path is not compared: every row is asked for itself.
        first = numbers = np.arange(frame.length, dtype=np.int64)
    else:
        keys = [outer.bindings[name] for name in names]
        keys += [_codes(outer.columns[name]) for name in columns]
        numbers, first = factorize(keys, frame.length)
    rows = np.arange(len(first), dtype=np.int64)
    return Seed(outer.take(first).bind(ROW, rows), numbers)


def _codes(column: object) -> Codes:
    return column.codes if isinstance(column, EntityCodes) else order_codes(column)


def _matches(block: PlannedBlock, seed: Seed, run_steps: RunSteps) -> Frame:
    """The matches of a block for each outer binding; one that does not look at those has the same for all."""
    if block.block.starts_from_rows:
        return run_steps(block.steps, seed.frame)
    found = run_steps(block.steps, UNIT)
    rows = np.repeat(np.arange(seed.frame.length, dtype=np.int64), found.length)
    return found.take(np.tile(np.arange(found.length, dtype=np.int64), seed.frame.length)).bind(ROW, rows)


def inner(run: Run, frame: Frame, step: InnerStep, run_steps: RunSteps) -> Frame:
    """`not { }`: the rows whose outer variables have no match inside; `exists { }`: those that have one."""
    if frame.length == 0:
        return frame
    operator = step.operator
    wanted = isinstance(operator, ir.SemiJoin)
    if not step.seeded:
        outer = [frame.bindings[var] for var in operator.vars]
        found = run_steps(step.inner.steps, UNIT)
        both = [np.concatenate([found.bindings[var], codes]) for var, codes in zip(operator.vars, outer, strict=True)]
        numbers, _ = factorize(both, found.length + frame.length)
        taken = np.zeros(int(numbers.max()) + 1, dtype=bool)
        taken[numbers[: found.length]] = True
        return frame.keep(taken[numbers[found.length :]] == wanted)
    seed = seed_of(frame, operator.vars, operator.columns)
    matched = _have_match(run, step, seed, run_steps)
    return frame.keep(matched[seed.numbers] == wanted)


def _have_match(run: Run, step: InnerStep, seed: Seed, run_steps: RunSteps) -> Mask:
    """Which outer bindings have a match.

    Where the block starts with many edges, a few of each binding are tried first, then more of those that are still
    without a match: a binding with a match among its first edges costs no more than those. Over several hops the
    near nodes are tried first, and only bindings without a match walk on.
    """
    matched = np.zeros(seed.frame.length, dtype=bool)
    first = step.inner.steps[0] if step.inner.steps else None
    if isinstance(first, ExpandStep) and first.atom.max_hops > 1 and first.atom.path_var is None:
        for nearer in _hop_by_hop(first):
            waiting = np.flatnonzero(~matched)
            if not len(waiting):
                break
            run.stop.check()
            with run.profile.step(first) as record:
                reached = expand(run, seed.frame.take(waiting), nearer)
                record.rows += reached.length
            matched[run_steps(step.inner.steps[1:], reached).bindings[ROW]] = True
        return matched
    degrees = degrees_of(run, seed.frame, first) if isinstance(first, ExpandStep) else None
    if not isinstance(first, ExpandStep) or degrees is None or int(degrees.sum()) < MANY_EDGES:
        matched[_matches(step.inner, seed, run_steps).bindings[ROW]] = True
        return matched
    start, most = 0, FIRST_EDGES
    waiting = np.flatnonzero(degrees > 0)
    while len(waiting):
        run.stop.check()
        with run.profile.step(first) as record:
            reached = expand(run, seed.frame.take(waiting), first, (start, most))
            record.rows += reached.length
        matched[run_steps(step.inner.steps[1:], reached).bindings[ROW]] = True
        start, most = start + most, most * 4
        waiting = waiting[~matched[waiting] & (degrees[waiting] > start)]
    return matched


def _hop_by_hop(step: ExpandStep) -> Iterator[ExpandStep]:
    """The step for each distance on its own, the nearest first."""
    for hops in range(step.atom.min_hops, step.atom.max_hops + 1):
        yield replace(step, atom=replace(step.atom, min_hops=hops, max_hops=hops))


def optional(run: Run, frame: Frame, step: OptionalStep, run_steps: RunSteps) -> Frame:
    """Each row with every match, or once with nothing for what the block binds."""
    operator = step.operator
    match step.inner.steps:
        case (ExpandStep(atom=EdgeAtom(path_var=None)) as only,) if step.inner.block.starts_from_rows:
            with run.profile.step(only) as record:
                found = expand_or_nothing(run, frame, only)
                record.rows += found.length
            return found
    seed = seed_of(frame, operator.vars, operator.columns)
    names = [variable.name for variable in operator.binds]
    if step.inner.block.starts_from_rows and seed.frame.length == frame.length:
        return _extended(run, frame, step, names, run_steps)
    found = _matches(step.inner, seed, run_steps)
    rows, places = _matched_rows(frame, seed, found.bindings[ROW])
    alone = _unmatched(frame, rows)
    run.memory.expect("bindings", 8 * (len(rows) + len(alone)) * (len(frame.bindings) + len(names)))
    bindings = {name: found.bindings[name] if places is None else found.bindings[name][places] for name in names}
    columns: dict[str, Any] = {name: found.columns[name] for name in operator.paths}
    if places is not None:
        columns = {name: paths.take(pa.array(places)) for name, paths in columns.items()}
    if len(alone):
        # Rows have no order here, so those without a match may come last.
        rows = np.concatenate([rows, alone])
        nothing = np.full(len(alone), NULL, dtype=np.int64)
        bindings = {name: np.concatenate([codes, nothing]) for name, codes in bindings.items()}
        empty = pa.nulls(len(alone), PATH)
        columns = {name: pa.concat_arrays([paths, empty]) for name, paths in columns.items()}
    return frame.take(rows).joined(Frame(len(rows), bindings, columns))


def _extended(run: Run, frame: Frame, step: OptionalStep, names: Sequence[str], run_steps: RunSteps) -> Frame:
    """No two rows ask for the same: the rows themselves go through the block, as in a join."""
    asked = frame.bind(ROW, np.arange(frame.length, dtype=np.int64))
    found = run_steps(step.inner.steps, asked)
    owners = found.bindings[ROW]
    alone = _unmatched(frame, owners)
    kept = found.only([*frame.bindings, *names, *step.operator.paths], frame.columns)
    if ROW in frame.bindings:
        # Inside another block its own rows are numbered too.
        kept = kept.bind(ROW, frame.bindings[ROW][owners])
    if not len(alone):
        return kept
    run.memory.expect("bindings", kept.nbytes)
    nothing = np.full(len(alone), NULL, dtype=np.int64)
    paths = {name: pa.nulls(len(alone), PATH) for name in step.operator.paths}
    return kept.append(frame.take(alone).joined(Frame(len(alone), dict.fromkeys(names, nothing), paths)))


def _unmatched(frame: Frame, rows: Codes) -> Codes:
    """The rows of a frame that are not among these."""
    matched = np.zeros(frame.length, dtype=bool)
    matched[rows] = True
    return np.flatnonzero(~matched)


def _matched_rows(frame: Frame, seed: Seed, owners: Codes) -> tuple[Codes, Codes | None]:
    """For every match of every row: the row, and the place of the match (None: all of them as they are)."""
    if seed.frame.length == frame.length:
        row_of = np.empty(frame.length, dtype=np.int64)
        row_of[seed.numbers] = np.arange(frame.length)
        return row_of[owners], None
    counts = np.bincount(owners, minlength=seed.frame.length)
    order = np.argsort(owners, kind="stable")
    starts = np.cumsum(counts) - counts
    own = counts[seed.numbers]
    rows = np.repeat(np.arange(frame.length, dtype=np.int64), own)
    return rows, order[ranges(starts[seed.numbers], own)]


def either(run: Run, frame: Frame, step: EitherStep, run_steps: RunSteps) -> Frame:
    """Each row with every different binding that some arm matches."""
    operator = step.operator
    names = [variable.name for variable in operator.binds]
    seed = seed_of(frame, operator.vars, operator.columns)
    arms = [_matches(arm, seed, run_steps).only([ROW, *names]) for arm in step.arms]
    found = arms[0]
    for arm in arms[1:]:
        found = found.append(arm)
    if not names:
        matched = np.zeros(seed.frame.length, dtype=bool)
        matched[found.bindings[ROW]] = True
        return frame.keep(matched[seed.numbers])
    _, first = factorize([found.bindings[name] for name in (ROW, *names)], found.length)
    found = found.take(first)
    counts = np.bincount(found.bindings[ROW], minlength=seed.frame.length)
    starts = np.cumsum(counts) - counts
    own = counts[seed.numbers]
    run.memory.expect("bindings", 8 * int(own.sum()) * (len(frame.bindings) + len(names)))
    rows = np.repeat(np.arange(frame.length, dtype=np.int64), own)
    return frame.take(rows).joined(found.only(names).take(ranges(starts[seed.numbers], own)))
