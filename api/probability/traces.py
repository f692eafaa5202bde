"""Traces: what was sampled and observed, with its log-probability; and the log-density of a program.

    trace(f)(*args) == (sites, y)                       seed(trace(f), key) draws what has no value
    log_density(f, values)(*args) == (log p, sites)

A site in a loop, in lanes or in a plate is one site, its values stacked along a first axis. A site in some branches of
a ``cond`` is ``When(taken, site)``; in all of them, a plain one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import numpy as hnp
from ..effects import trees
from ..effects.arrays import lift, perform
from ..effects.bitwise import bitwise_or
from ..effects.comparison import select
from ..effects.control import HigherOrder
from ..effects.errors import BadArgument, CannotCross, StateTypeError
from ..effects.shapes import broadcast_in_dim
from ..effects.treenodes import register_dataclass, static
from ..effects.wrapping import wraps
from ..interpreters.cross import Flow
from ..interpreters.handle import handle
from ..interpreters.handler import handler
from ..interpreters.movements import Appended, Movement, When
from .sites import DRAWN, OBSERVED, Sample, unanswered
from .values import substitute


@register_dataclass
@dataclass(frozen=True, eq=False)
class Site:
    """One site of a trace: its value, and how probable that is, as it counts; whether it was observed."""

    value: Any
    log_prob: Any
    observed: bool = static(default=False)


@register_dataclass
@dataclass(frozen=True, eq=False)
class Entry:
    """A site in the log; ``taken`` where it stands in a branch; ``sure`` where its branch always comes to it."""

    site: Site
    taken: Any
    name: str = static()
    sure: bool = static()


class Sites(Movement):
    """The state is a log of sites. Loops and lanes stack them, branches say which were taken."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        if op.runs != "until":
            return Logged(op)
        names = ", ".join(sorted({repr(e.label) for e in op.effects if isinstance(e, Sample)}))
        raise CannotCross(
            f"{op.name}: the sites {names} stand in a loop of unknown length: nothing says how many there will be.",
            hint="use scan, or fori_loop with constant bounds.",
        )


class Logged(Appended):
    """The sites of the bodies come out."""

    def in_branch(self, entry: Any) -> Entry:
        return _in_branch(entry)

    def take(self, run: Any, bodies: Sequence[Sequence[Entry]]) -> None:
        for entry in _of_branches(bodies) if self.branches else bodies[0]:
            run.current = _added(run.current, entry)


def _in_branch(entry: Entry) -> Entry:
    sure = entry.taken is None
    return Entry(entry.site, lift(True) if sure else entry.taken, entry.name, sure)


def _of_branches(bodies: Sequence[Sequence[Entry]]) -> list[Entry]:
    """The sites of all branches: of one name, one site. It is there in any case if every branch comes to it."""
    found = []
    for name in dict.fromkeys([entry.name for body in bodies for entry in body]):
        entries = [entry for body in bodies for entry in body if entry.name == name]
        merged = functools.reduce(_either, entries)
        always = len(entries) == len(bodies) and all(entry.sure for entry in entries)
        found.append(Entry(merged.site, None if always else merged.taken, name, always))
    return found


def _either(a: Entry, b: Entry) -> Entry:
    """One site of two branches, of which at most one was taken."""
    leaves, structure = trees.flatten(a.site)
    others, other_structure = trees.flatten(b.site)
    types, other_types = ([lift(x).type.strong() for x in xs] for xs in (leaves, others))
    if structure != other_structure or types != other_types:
        raise StateTypeError(
            f"trace: the site {a.name!r} must be of one type in all branches, got {', '.join(map(str, types))} and "
            f"{', '.join(map(str, other_types))} (value and log-probability).",
            hint="give them different names.",
        )
    taken = b.taken
    chosen = [select(over(taken, t.shape), y, x) for x, y, t in zip(leaves, others, types)]
    return Entry(trees.unflatten(structure, chosen), bitwise_or(a.taken, taken), a.name, a.sure)


def over(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask of the loops around a site, for each of its numbers."""
    return broadcast_in_dim(mask, shape, range(len(mask.type.shape))) if mask.type.shape != shape else mask


def _added(log: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    if any(entry.name == other.name for other in log):
        raise BadArgument(
            f"trace: two sites are called {entry.name!r}.",
            hint="give each a name of its own; in Python loops f'x{i}'; many that are alike go into a plate or a scan.",
        )
    return (*log, entry)


def _write(log: tuple[Entry, ...], op: Any, *leaves: Any) -> tuple[tuple[Entry, ...], Any]:
    parts = op.parts(leaves)
    value = perform(op, *leaves) if op.kind == DRAWN else parts.value
    return _added(log, Entry(Site(value, parts.log_prob(value), op.kind == OBSERVED), None, op.label, True)), value


WRITER = handler({Sample: _write}, moves=Sites())


def _traced(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[tuple[Entry, ...], Any]:
    return handle(WRITER, ())(f)(*args, **kwargs)


def _sites(log: Sequence[Entry]) -> dict[str, Any]:
    return {e.name: e.site if e.taken is None else When(e.taken, e.site) for e in log}


def trace(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` that also tells its sites by name, each with its value and log-probability.

        seed(trace(f), key)(*args) == (sites, y)

    It sees what lies inside, such as ``condition`` or ``scale``; what has no value is asked of those outside, ``seed``.

    Raises: BadArgument: two sites have one name, or ``f`` answers its sites itself. CannotCross: a site stands in a
        ``while_loop``. StateTypeError: branches have sites of one name and different types.

    >>> from handlax import probability as hp, random
    >>> sites, y = hp.seed(hp.trace(lambda: 2 * hp.sample("x", hp.Normal())), random.key(0))()
    >>> float(y) == 2 * float(sites["x"].value)
    True
    """
    unanswered("trace", f)

    @wraps(f)
    def traced(*args: Any, **kwargs: Any) -> Any:
        log, y = _traced(f, args, kwargs)
        return _sites(log), y

    return traced


def log_density(f: Callable[..., Any], values: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The logarithm of the density of a program at these values of its sites.

        log_density(f, values)(*args) == (log p, sites)

    Everything counts: values, observations and factors, as often as loops, lanes and plates come to them, with their
    masks and scales. It is differentiable in the values and in ``args``.

    Raises: UnhandledEffect: a site has no value. BadArgument: there is no site of a name.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(lambda: hp.sample("x", hp.Normal(0.0, 1.0)), {"x": 0.0})()[0])  # -log(2 pi) / 2
    -0.9189385175704956
    """
    model = substitute(f, values or {})

    @wraps(f)
    def density(*args: Any, **kwargs: Any) -> Any:
        log, _ = _traced(model, args, kwargs)
        return sum([_counted(entry) for entry in log], start=hnp.asarray(0.0)), _sites(log)

    return density


def _counted(entry: Entry) -> Any:
    found = hnp.asarray(entry.site.log_prob)
    return (found if entry.taken is None else hnp.where(over(entry.taken, found.shape), found, 0.0)).sum()
