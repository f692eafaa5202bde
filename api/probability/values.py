"""Values for sites: condition, substitute, replay, do.

The values move by name: a body is given those of the sites that stand in it, a loop, lanes or a plate the slice of each
run. A site that has its value already keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..effects import trees
from ..effects.arrays import lift, perform
from ..effects.comparison import select
from ..effects.control import HigherOrder
from ..effects.errors import BadArgument, CannotCross, ShapeMismatch
from ..effects.types import ArrayType
from ..effects.wrapping import wraps
from ..interpreters.cross import Flow, Joined, Lifted
from ..interpreters.handle import handle
from ..interpreters.handler import Handler, handler
from ..interpreters.library.streams import FreshKey
from ..interpreters.movements import Movement, When, leaves_of
from .sites import DRAWN, GIVEN, OBSERVED, Sample, fitting, perform_site, unanswered


@dataclass(frozen=True)
class Given:
    """Values by name, and which of them sites have met."""

    values: Mapping[str, Any]
    met: frozenset[str] = frozenset()


class Named(Movement):
    """Bodies get the values of the sites that stand in them, the runs of a loop and lanes a slice each."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Handed(run, op)


class Handed(Flow):
    """Values go in; that they were met is known from the names alone."""

    def __init__(self, run: Any, op: HigherOrder):
        self.before: Given = run.current
        sites = {e.label for e in op.effects if isinstance(e, Sample)}
        self.names = sorted(sites & self.before.values.keys())
        if op.runs == "until" and self.names:
            raise CannotCross(
                f"{op.name}: the sites {', '.join(map(repr, self.names))} stand in a loop of unknown length: nothing "
                "says which value belongs to which run.",
                hint="use scan, or fori_loop with constant bounds.",
            )
        self.operands, self.structure = leaves_of({name: self.before.values[name] for name in self.names})
        self.stacked = op.stacks
        if op.stacks:
            self.check(op)

    def check(self, op: HigherOrder) -> None:
        for name in self.names:
            for x in trees.leaves(self.before.values[name]):
                shape = lift(x).type.shape
                if shape[:1] != (op.length,):
                    raise ShapeMismatch(
                        f"{op.name}: the value of the site {name!r} must have one row for each of the {op.length} "
                        f"runs, got {lift(x).type}.",
                        hint="stack them along a first axis, outer loops first.",
                    )

    def inner_types(self) -> list[ArrayType]:
        types = [x.type for x in self.operands]
        return [t.update(shape=t.shape[1:]) for t in types] if self.stacked else types

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = Given(trees.unflatten(self.structure, values))

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined((), None, (0,) * len(lifted))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = Given(self.before.values, self.before.met | set(self.names))


def _answering(who: str, kind: str) -> Handler:
    """The handler by which a site gets its value, and is then of this kind."""

    def clause(s: Given, op: Any, *leaves: Any) -> tuple[Given, Any]:
        if op.label not in s.values:
            return s, perform(op, *leaves)
        if op.kind != DRAWN:
            raise BadArgument(
                f"{who}: the site {op.label!r} has a value already, it is {op.kind}.", hint="leave its name away."
            )
        parts = op.parts(leaves)
        value = fitting(who, op.label, parts.dist, op.shape, s.values[op.label])
        return _met(s, op), perform_site(op.label, kind, op.shape, replace(parts, value=value))

    return handler({Sample: clause}, moves=Named())


def _met(s: Given, op: Any) -> Given:
    return Given(s.values, s.met | {op.label})


CONDITION = _answering("condition", OBSERVED)
SUBSTITUTE = _answering("substitute", GIVEN)


def _replay(s: Given, op: Any, *leaves: Any) -> tuple[Given, Any]:
    if op.label not in s.values or op.kind != DRAWN:
        return s, perform(op, *leaves)
    parts, given = op.parts(leaves), s.values[op.label]
    taken, value = (given.taken, given.value) if isinstance(given, When) else (None, given)
    value = fitting("replay", op.label, parts.dist, op.shape, value)
    if taken is not None:  # its branch was not taken then: a value as in a first run
        anew = parts.dist.sample(perform(FreshKey(op.path)), op.shape)
        value = select(lift(taken), value, anew)
    return _met(s, op), perform_site(op.label, GIVEN, op.shape, replace(parts, value=value))


def _do(s: Given, op: Any, *leaves: Any) -> tuple[Given, Any]:
    if op.label not in s.values:
        return s, perform(op, *leaves)
    if op.kind != DRAWN:
        raise BadArgument(f"do: the site {op.label!r} has a value already, it is {op.kind}.", hint="leave it away.")
    return _met(s, op), fitting("do", op.label, op.parts(leaves).dist, op.shape, s.values[op.label])


REPLAY = handler({Sample: _replay}, moves=Named())
DO = handler({Sample: _do}, moves=Named())


def _with(who: str, h: Handler, f: Callable[..., Any], values: Mapping[str, Any], all_of_them: bool) -> Any:
    unanswered(who, f)
    if not isinstance(values, Mapping):
        raise BadArgument(f"{who}: values are given by the names of their sites, got {type(values).__name__}.")
    given = {name: trees.map(lift, value) for name, value in values.items()}

    @wraps(f)
    def answered(*args: Any, **kwargs: Any) -> Any:
        end, y = handle(h, Given(given))(f)(*args, **kwargs)
        missing = given.keys() - end.met
        if missing and all_of_them:
            raise BadArgument(
                f"{who}: no site is called {', '.join(map(repr, sorted(missing)))}.",
                hint="trace(f) tells the names; a site that has a value inside, or is hidden there, is none here.",
            )
        return y

    return answered


def condition(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with these sites observed.

    A site in a loop, in lanes or in a plate takes one value for each run, along a first axis.
    Raises: BadArgument: there is no site of a name, or it has its value already. ShapeMismatch: a value does not fit.
    CannotCross: the site stands in a ``while_loop``.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(hp.condition(lambda: hp.sample("x", hp.Normal()), {"x": 0.0}))()[0])
    -0.9189385175704956
    """
    return _with("condition", CONDITION, f, values, True)


def substitute(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with these values for its sites, which stay latent: a trace says that they were not observed.

    Values and errors are those of ``condition``.
    """
    return _with("substitute", SUBSTITUTE, f, values, True)


def replay(f: Callable[..., Any], sites: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` once more with the values of a trace; sites that the trace does not have are drawn anew.

        seed(trace(replay(f, sites)), key)(*args)  has the values of  sites

    A site ``When(taken, ...)`` that was not taken is drawn anew too.
    """
    latent = {name: _values(site) for name, site in sites.items() if not _inner(site).observed}
    return _with("replay", REPLAY, f, latent, False)


def _inner(site: Any) -> Any:
    return site.value if isinstance(site, When) else site


def _values(site: Any) -> Any:
    return When(site.taken, site.value.value) if isinstance(site, When) else site.value


def do(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with these sites set from outside: they are random no more, and what made them so does not count.

    Values and errors are those of ``condition``.
    Source: Pearl, Causality (2000), section 3.2.
    """
    return _with("do", DO, f, values, True)
