"""Model traces: the sample sites of a program with values and log-probabilities; and its log-density.

    trace(f)(*args) == (sites, y)                       seed(trace(f), key) draws the sites without value
    log_density(f, values)(*args) == (log p, sites)

A sample site in a loop, in lanes or in a plate is one site, with its values stacked as results are. A site in only some
branches of a ``cond`` is ``When(taken, site)``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, CannotCross, StateTypeError
from ..effects.base.tracebacks import unnamed_boundary
from ..effects.base.wrapping import wraps
from ..effects.core.arrays import as_array, perform
from ..effects.operations.elementwise.comparison import select
from ..effects.programs.higher_order import HigherOrder
from ..effects.trees import pytrees
from ..effects.trees.registration import frozen_node, static
from ..interpreters.core.state_flow import StateFlow
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import handler
from ..interpreters.handlers.log_axes import LogAxes, LogAxis, taken_mask
from ..interpreters.handlers.state_movements import AppendedState, Movement, When, broadcast_mask, either_mask
from .sites import DRAWN, OBSERVED, Sample, need_open_sites
from .values import substitute

__all__ = ["SampleSite", "log_density", "trace"]


@frozen_node
class SampleSite:
    """One sample site of a trace: its value, its log-probability (masked and scaled), and whether it is observed. A
    pytree.
    """

    value: Any
    log_prob: Any
    observed: bool = static(default=False)


@frozen_node
class SiteEntry:
    """A sample site in the log: ``taken`` is the mask of the branches around it, or None.

    ``sure``: it is unconditional within the innermost branch. ``axes``: the leading axes that loops and lanes added.
    """

    site: SampleSite
    taken: Any
    name: str = static()
    sure: bool = static()
    axes: tuple[LogAxis, ...] = static(default=())


class SiteLog(Movement):
    """How a log of sample sites crosses bodies: stacked over loops and lanes; over branches, one masked entry per name.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        if op.runs != "until":
            return LoggedSites(op)
        names = ", ".join(sorted({repr(e.label) for e in op.effects if isinstance(e, Sample)}))
        raise CannotCross(
            f"{op.name}: the sites {names} are in a loop of unknown length: their number must be known when "
            "it is traced.",
            hint="use scan, or fori_loop with constant bounds.",
        )


class LoggedSites(AppendedState):
    """The sample sites of all bodies leave as results; those of one name in several branches become one entry.

    Within a body only its own log is visible.
    """

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = ()

    def axes(self, run: Any) -> Sequence[LogAxes]:
        return [entry.axes for entry in run.current]

    def in_branch(self, entry: Any, axes: LogAxes) -> SiteEntry:
        sure = entry.taken is None
        return SiteEntry(entry.site, taken_mask(axes) if sure else entry.taken, entry.name, sure, axes)

    def extend(
        self, run: Any, bodies: Sequence[Sequence[SiteEntry]], axes: Sequence[Sequence[LogAxes]]
    ) -> None:
        entries = [[replace(entry, axes=own) for entry, own in zip(*body)] for body in zip(bodies, axes)]
        for entry in _of_branches(entries) if self.branches else entries[0]:
            run.current = _added(run.current, entry)


def _of_branches(bodies: Sequence[Sequence[SiteEntry]]) -> list[SiteEntry]:
    """The sample sites of all branches, one entry per name; unmasked if every branch always has it."""
    merged_entries = []
    for name in dict.fromkeys([entry.name for body in bodies for entry in body]):
        entries = [entry for body in bodies for entry in body if entry.name == name]
        merged = functools.reduce(_merge, entries)
        always = len(entries) == len(bodies) and all(entry.sure for entry in entries)
        merged_entries.append(SiteEntry(merged.site, None if always else merged.taken, name, always, merged.axes))
    return merged_entries


def _merge(a: SiteEntry, b: SiteEntry) -> SiteEntry:
    """The entries of one sample site in two branches as one, with the values of the branch that was taken."""
    leaves, structure = pytrees.flatten(a.site)
    others, other_structure = pytrees.flatten(b.site)
    types, other_types = ([as_array(x).type.strong() for x in xs] for xs in (leaves, others))
    if structure != other_structure or types != other_types:
        raise StateTypeError(
            f"trace: the site {a.name!r} must be of one type in all branches, got {', '.join(map(str, types))} and "
            f"{', '.join(map(str, other_types))} (value and log-probability).",
            hint="give them different names.",
        )
    taken = b.taken
    selected = [select(broadcast_mask(taken, t.shape), y, x) for x, y, t in zip(leaves, others, types)]
    return SiteEntry(pytrees.unflatten(structure, selected), either_mask(a.taken, taken), a.name, a.sure, a.axes)


def _added(log: tuple[SiteEntry, ...], entry: SiteEntry) -> tuple[SiteEntry, ...]:
    """The log with one more entry. Raises BadArgument: it has an entry of the same name."""
    if any(entry.name == other.name for other in log):
        raise BadArgument(
            f"trace: the names of sites must be unique, two are called {entry.name!r}.",
            hint="name them differently, in Python loops f'x{i}'; or use a plate or a scan for equal ones.",
        )
    return (*log, entry)


def _write(log: tuple[SiteEntry, ...], op: Any, *leaves: Any) -> tuple[tuple[SiteEntry, ...], Any]:
    """The clause of ``trace``: the value of a sample site, recorded in the log with its log-probability."""
    parts = op.parts(leaves)
    value = perform(op, *leaves) if op.kind == DRAWN else parts.value
    return _added(
        log, SiteEntry(SampleSite(value, parts.log_prob(value), op.kind == OBSERVED), None, op.label, True)
    ), value


WRITER = handler({Sample: _write}, moves=SiteLog())


def _traced(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[tuple[SiteEntry, ...], Any]:
    return handle(WRITER, ())(f)(*args, **kwargs)


def _sites(log: Sequence[SiteEntry]) -> dict[str, Any]:
    return {e.name: e.site if e.taken is None else When(e.taken, e.site) for e in log}


def trace(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` that also returns its sample sites by name, each with its value and log-probability.

        seed(trace(f), key)(*args) == (sites, y)

    Handlers inside it, such as ``condition`` and ``scale``, are seen in the trace; sites without value are answered by
    handlers outside, such as ``seed``.

    Raises: BadArgument: two sites have one name, or ``f`` answers its sites itself. CannotCross: a site is in a
        ``while_loop``. StateTypeError: branches have sites of one name and different types.

    >>> from handlax import probability as hp, random
    >>> sites, y = hp.seed(hp.trace(lambda: 2 * hp.sample("x", hp.Normal())), random.key(0))()
    >>> float(y) == 2 * float(sites["x"].value)
    True
    """
    need_open_sites("trace", f)

    @wraps(f)
    @unnamed_boundary
    def traced(*args: Any, **kwargs: Any) -> Any:
        log, y = _traced(f, args, kwargs)
        return _sites(log), y

    return traced


def log_density(f: Callable[..., Any], values: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The log-density of a program at these values of its sample sites.

        log_density(f, values)(*args) == (log p, sites)

    It is the sum over all values, observations and factors, in every iteration, lane and element of a plate, with masks
    and scales applied. It is differentiable in the values and in ``args``.

    Raises: UnhandledEffect: a site has no value. BadArgument: there is no site of a name.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(lambda: hp.sample("x", hp.Normal(0.0, 1.0)), {"x": 0.0})()[0])  # -log(2 pi) / 2
    -0.9189385175704956
    """
    model = substitute(f, values or {})

    @wraps(f)
    @unnamed_boundary
    def density(*args: Any, **kwargs: Any) -> Any:
        log, _ = _traced(model, args, kwargs)
        return sum([_total(entry) for entry in log], start=hnp.asarray(0.0)), _sites(log)

    return density


def _total(entry: SiteEntry) -> Any:
    """The summed log-probability of a sample site, 0 where its branch was not taken."""
    log_prob = hnp.asarray(entry.site.log_prob)
    if entry.taken is not None:
        log_prob = hnp.where(broadcast_mask(entry.taken, log_prob.shape), log_prob, 0.0)
    return log_prob.sum()
