"""Handlers that set the values of sample sites: condition, substitute, replay, do.

A body gets the values of the sample sites inside it, by name; an iteration, a lane or an element of a plate gets its
slice. A site that has a value already keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..effects.base.errors import BadArgument, CannotCross, ShapeMismatch
from ..effects.base.tracebacks import unnamed_boundary
from ..effects.base.wrapping import wraps
from ..effects.core.arrays import as_array, perform
from ..effects.operations.elementwise.comparison import select
from ..effects.operations.foundations.shapes import move_axis
from ..effects.programs.higher_order import HigherOrder
from ..effects.trees import pytrees
from ..interpreters.core.state_flow import StateFlow
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import Handler, handler
from ..interpreters.handlers.log_axes import performed_inside, place
from ..interpreters.handlers.state_movements import Movement, When, leaves_of
from ..interpreters.library.effectful.random_streams import FreshKey
from .sites import DRAWN, GIVEN, OBSERVED, Sample, fit_value, need_open_sites, perform_site

__all__ = ["condition", "do", "replay", "substitute"]


@dataclass(frozen=True)
class GivenValues:
    """The state of ``condition``, ``substitute``, ``replay`` and ``do``: values by site name, and the names used."""

    values: Mapping[str, Any]
    used: frozenset[str] = frozenset()


class NamedValues(Movement):
    """How values cross bodies: each body gets those of its sample sites, each iteration and lane a slice."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return HandedValues(run, op)


class HandedValues(StateFlow):
    """The flow of ``NamedValues``: values enter a body; nothing leaves, since its effects tell which names it uses."""

    def __init__(self, run: Any, op: HigherOrder):
        self.before: GivenValues = run.current
        sites = {e.label for e in op.effects if isinstance(e, Sample)}
        self.names = sorted(sites & self.before.values.keys())
        if op.runs == "until" and self.names:
            raise CannotCross(
                f"{op.name}: the sites {', '.join(map(repr, self.names))} are in a loop of unknown length: their "
                "number must be known when it is traced.",
                hint="use scan, or fori_loop with constant bounds.",
            )
        values = {name: self.before.values[name] for name in self.names}
        self.stacked = op.stacks
        if op.stacks:
            axes = {site.op.label: place(site.axes, op) for site in performed_inside(op, lambda e: type(e) is Sample)}
            values = {name: self.rows(op, name, value, axes.get(name, 0)) for name, value in values.items()}
        self.operands, self.structure = leaves_of(values)

    def rows(self, op: HigherOrder, name: str, value: Any, axis: int) -> Any:
        """The stacked values of a sample site with the axis of this operation's iterations or lanes first.

        Raises: ShapeMismatch: its size is not their number.
        """

        def rows_first(x: Any) -> Any:
            shape = as_array(x).type.shape
            if shape[axis : axis + 1] != (op.length,):
                raise ShapeMismatch(
                    f"{op.name}: the value of the site {name!r} must have one row for each of the {op.length} "
                    f"iterations or lanes, along axis {axis}, got {as_array(x).type}.",
                    hint="stack them as a trace does, the axis of the outermost loop or vmap first.",
                )
            return move_axis(as_array(x), axis, 0)

        return pytrees.map(rows_first, value)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = GivenValues(pytrees.unflatten(self.structure, values))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = GivenValues(self.before.values, self.before.used | set(self.names))


def _answering(who: str, kind: str | None) -> Handler:
    """The handler that sets the values of sample sites by name, and performs them again as sites of this kind.

    With None they are not performed, so that outer handlers do not see them.
    """

    def clause(s: GivenValues, op: Any, *leaves: Any) -> tuple[GivenValues, Any]:
        if op.label not in s.values:
            return s, perform(op, *leaves)
        if op.kind != DRAWN:
            raise BadArgument(
                f"{who}: the site {op.label!r} has a value already, it is {op.kind}.", hint="leave out its name."
            )
        parts = op.parts(leaves)
        value = fit_value(who, op.label, parts.dist, op.shape, s.values[op.label])
        if kind is not None:
            value = perform_site(op.label, kind, op.shape, replace(parts, value=value))
        return _with_used(s, op), value

    return handler({Sample: clause}, moves=NamedValues())


def _with_used(s: GivenValues, op: Any) -> GivenValues:
    """The state with the name of this sample site among those that have been used."""
    return GivenValues(s.values, s.used | {op.label})


CONDITION, SUBSTITUTE, DO = _answering("condition", OBSERVED), _answering("substitute", GIVEN), _answering("do", None)


def _replay(s: GivenValues, op: Any, *leaves: Any) -> tuple[GivenValues, Any]:
    """The clause of ``replay``: a recorded value, or a fresh draw where its branch was not taken."""
    if op.label not in s.values or op.kind != DRAWN:
        return s, perform(op, *leaves)
    parts, recorded = op.parts(leaves), s.values[op.label]
    taken, value = (recorded.taken, recorded.value) if isinstance(recorded, When) else (None, recorded)
    value = fit_value("replay", op.label, parts.dist, op.shape, value)
    if taken is not None:  # if its branch was not taken in the trace, the site has no value there: draw one
        value = select(as_array(taken), value, parts.dist.sample(perform(FreshKey(op.path)), op.shape))
    return _with_used(s, op), perform_site(op.label, GIVEN, op.shape, replace(parts, value=value))


REPLAY = handler({Sample: _replay}, moves=NamedValues())


def _with_values(who: str, h: Handler, f: Callable[..., Any], values: Mapping[str, Any], all_used: bool) -> Any:
    """``f`` under the handler ``h`` with ``values`` as its state.

    With ``all_used`` calling it raises BadArgument: there is no sample site for a value.
    """
    need_open_sites(who, f)
    if not isinstance(values, Mapping):
        raise BadArgument(f"{who}: values must be a mapping from names of sites, got {type(values).__name__}.")
    arrays = {name: pytrees.map(as_array, value) for name, value in values.items()}

    @wraps(f)
    @unnamed_boundary
    def answered(*args: Any, **kwargs: Any) -> Any:
        end, y = handle(h, GivenValues(arrays))(f)(*args, **kwargs)
        missing = arrays.keys() - end.used
        if missing and all_used:
            raise BadArgument(
                f"{who}: no site is called {', '.join(map(repr, sorted(missing)))}.",
                hint="trace(f) lists the names; a site that has a value inside, or is hidden there, is not seen here.",
            )
        return y

    return answered


def condition(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with these sample sites observed.

    The values of a site in a loop, in lanes or in a plate are stacked, as results are.
    Raises: BadArgument: no site has a name, or it has a value already. ShapeMismatch: a value has another shape.
    CannotCross: the site is in a ``while_loop``.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(hp.condition(lambda: hp.sample("x", hp.Normal()), {"x": 0.0}))()[0])
    -0.9189385175704956
    """
    return _with_values("condition", CONDITION, f, values, True)


def substitute(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with these values for its sample sites, which remain latent: in a trace they are not observed.

    Values and errors are those of ``condition``.
    """
    return _with_values("substitute", SUBSTITUTE, f, values, True)


def replay(f: Callable[..., Any], sites: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with the values of a trace; sample sites that the trace lacks are drawn.

        seed(trace(replay(f, sites)), key)(*args)  has the values of  sites

    A site ``When(taken, ...)`` that was not taken is drawn too.
    """
    latent = {name: _values(site) for name, site in sites.items() if not _inner(site).observed}
    return _with_values("replay", REPLAY, f, latent, False)


def _inner(site: Any) -> Any:
    return site.value if isinstance(site, When) else site


def _values(site: Any) -> Any:
    return When(site.taken, site.value.value) if isinstance(site, When) else site.value


def do(f: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """``f`` with an intervention: these sample sites have fixed values, and contribute no log-probability.

    Values and errors are those of ``condition``.
    Source: Pearl, Causality (2000), section 3.2.
    """
    return _with_values("do", DO, f, values, True)
