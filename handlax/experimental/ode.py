"""``handlax.experimental.ode``: ordinary differential equations, by the method of Dormand and Prince.

    ys = odeint(f, y0, t):  ys[0] == y0,  dy/dt == f(y, t)

The derivative is that of the adjoint equation, solved backwards: no step of the solver is saved.
Sources: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I, II.4 to II.6; Chen et al. 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, ShapeMismatch
from ..effects.control.loops import scan, while_loop
from ..effects.operations.indexing.dynamic_slicing import dynamic_update_index_in_dim
from ..effects.operations.manipulation.raveled_trees import ravel_pytree
from ..effects.operations.reductions.cumulative import cummax
from ..effects.trees import pytrees
from ..effects.trees.pytrees import tree_map
from ..effects.types.dtypes import is_inexact
from ..interpreters.custom.custom_vjp import custom_vjp
from ..interpreters.transformations.derivatives import vjp
from ..interpreters.transformations.make_program import closure_converted
from ..interpreters.transformations.vmap import vmap
from ..numpy.arrays.index_arrays import known
from ..numpy.arrays.solver_arguments import need_at_least, result_like
from ..numpy.dtype_routines import finfo

__all__ = ["odeint"]

# Where the slopes k_2, ... are taken, and with which weights of those before; the last are the step of order 5.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0, 0.0),
    (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0, 0.0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0, 0.0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0, 0.0),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
)
# The difference of the steps of order 5 and 4, and the last coefficients of the polynomial between the ends.
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
DENSE = (
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0


class _Settings(NamedTuple):
    """The arguments of ``odeint``: tolerances, the largest number of steps between two times, and the longest step.

    ``slopes`` takes the slopes of a step: ``_unrolled_slopes`` or ``_looped_slopes``.
    """

    rtol: Any
    atol: Any
    mxstep: Any
    hmax: Any
    slopes: Any


class _StepState(NamedTuple):
    """The state of the solver between steps.

    ``y`` and ``slope`` are the solution and its derivative at time ``t``, ``before`` has these three before the last
    step, ``dense`` is the last coefficient of the polynomial between them, ``step`` the length of the next step.
    """

    y: Any
    slope: Any
    t: Any
    step: Any
    before: Any
    dense: Any


def _sum(weights: Any, slopes: Any) -> Any:
    """The sum of some slopes, a list or the rows of an array, with these weights."""
    if isinstance(slopes, list):
        return sum([w * k for w, k in zip(weights, slopes) if w])
    return hnp.dot(hnp.asarray(weights, slopes.dtype), slopes, precision="highest")


def _unrolled_slopes(f: Any, s: _StepState) -> Any:
    """The slopes of a step by as many copies of ``f``: the fastest program where ``f`` is small."""
    slopes = [s.slope]
    for node, weights in zip(NODES, STAGES):
        slopes.append(f(s.y + s.step.astype(s.y.dtype) * _sum(weights, slopes), s.t + node * s.step))
    return slopes


def _looped_slopes(f: Any, s: _StepState) -> Any:
    """The slopes of a step as rows of an array, by a loop, for which ``f`` is compiled once."""

    def stage(slopes: Any, row: Any) -> Any:
        number, node, weights = row
        slope = f(s.y + s.step.astype(s.y.dtype) * _sum(weights, slopes), s.t + node * s.step)
        return dynamic_update_index_in_dim(slopes, slope, number, 0), None

    rows = hnp.arange(1, len(STAGES) + 1), hnp.asarray(NODES, s.t.dtype), hnp.asarray(STAGES, s.y.dtype)
    return scan(stage, hnp.zeros((len(DENSE), *s.y.shape), s.y.dtype).at[0].set(s.slope), rows)[0]


def _norm(x: Any) -> Any:
    """The square root of the mean of the squares of the elements of ``x``."""
    return hnp.sqrt(hnp.mean(hnp.square(hnp.abs(x))))


def _first_step(f: Any, y: Any, t: Any, slope: Any, settings: _Settings) -> Any:
    """A first step length, from estimates of the first and second derivative. Source: Hairer II.4."""
    scale = settings.atol + hnp.abs(y) * settings.rtol
    size, speed = _norm(y / scale), _norm(slope / scale)
    guess = hnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / hnp.where(speed == 0, 1, speed))
    bend = _norm((f(y + guess * slope, t + guess) - slope) / scale) / guess
    most = hnp.maximum(speed, bend)
    step = hnp.where(most <= 1e-15, hnp.maximum(1e-6, guess * 1e-3), (0.01 / hnp.where(most == 0, 1, most)) ** 0.2)
    step = hnp.maximum(hnp.minimum(100 * guess, step), 4 * float(finfo(t.dtype).eps) * hnp.abs(t))
    return hnp.minimum(step, settings.hmax).astype(t.dtype)


def _step(f: Any, settings: _Settings, s: _StepState, end: Any) -> _StepState:
    """The state after a step, at most to the time ``end``, as ``f`` may have no value beyond; if the error of the step
    is too large, the state ``s`` with a shorter next step.
    """
    tried = hnp.minimum(s.step, end - s.t)
    time = s.t + tried
    s = s._replace(step=time - s.t)  # as the time is rounded
    scaled = s.step.astype(s.y.dtype)
    slopes = settings.slopes(f, s)
    y = s.y + scaled * _sum(STAGES[-1], slopes)
    scale = settings.atol + settings.rtol * hnp.maximum(hnp.abs(s.y), hnp.abs(y))
    error = _norm(scaled * _sum(ERROR, slopes) / scale).astype(s.t.dtype)
    good = error <= 1
    factor = hnp.where(error == 0, GROW, SAFETY * hnp.where(error == 0, 1, error) ** -0.2)
    factor = hnp.clip(hnp.where(hnp.isnan(factor), SHRINK, factor), hnp.where(good, 1.0, SHRINK), GROW)
    after = hnp.clip(tried * factor, 0, settings.hmax).astype(s.t.dtype)
    before = (s.y, s.slope, s.t)
    accepted = _StepState(y, slopes[-1], time, after, before, scaled * _sum(DENSE, slopes))
    return tree_map(lambda new, old: hnp.where(good, new, old), accepted, s._replace(step=after))


def _between(s: _StepState, t: Any) -> Any:
    """The solution at a time ``t`` within the last step of the solver, interpolated by the polynomial of that step."""
    y, slope, before = s.before
    length = s.t - before
    x = ((t - before) / hnp.where(length == 0, 1, length)).astype(y.dtype)
    length = length.astype(y.dtype)
    b = s.y - y
    c = length * slope - b
    d = b - length * s.slope - c
    return y + x * (b + (1 - x) * (c + x * (d + (1 - x) * s.dense)))


def _solve(f: Any, settings: _Settings, y0: Any, t: Any, args: Any) -> Any:
    """The solution at the times ``t``; NaN where more than ``mxstep`` steps are needed, or steps that are too short to
    change the time, and where the times turn back.

    The equation solved is dz/du == s f(z, s u) at u = s t, where s is the sign of the direction, so that u increases.
    """
    sign = hnp.where(t[-1] < t[0], -1, 1).astype(t.dtype)
    g = lambda z, u: sign.astype(z.dtype) * f(z, sign * u, *args)
    u = sign * t
    end = hnp.nanmax(u)

    def reach(s: _StepState, target: Any) -> Any:
        def more(state: Any) -> Any:
            s, count = state
            return (s.t < target) & (count < settings.mxstep) & (s.t + s.step > s.t)

        s, _ = while_loop(more, lambda state: (_step(g, settings, state[0], end), state[1] + 1), (s, 0.0))
        return s, hnp.where(s.t >= target, _between(s, target), hnp.nan)

    slope = g(y0, u[0])
    step = _first_step(g, y0, u[0], slope, settings)
    start = _StepState(y0, slope, u[0], step, (y0, slope, u[0]), hnp.zeros_like(y0))
    targets = hnp.where(u < cummax(u), hnp.nan, u)
    return hnp.concatenate([y0[None], scan(reach, start, targets[1:])[1]])


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _odeint(f: Any, settings: _Settings, y0: Any, t: Any, args: Any) -> Any:
    return _solve(f, settings, y0, t, args)


def _forward(f: Any, settings: _Settings, y0: Any, t: Any, args: Any) -> Any:
    ys = _odeint(f, settings, y0, t, args)
    return ys, (ys, t, args)


def _backward(f: Any, settings: _Settings, saved: Any, cts: Any) -> Any:
    """The cotangents of ``y0``, ``t`` and ``args``, by the adjoint equation from the last time to the first.

    The cotangent a of y obeys da/dt = -a df/dy; those of the first time and of the floats among ``args`` are integrals
    of -a df/dt and -a df/dargs.
    """
    ys, t, (floats, others) = saved
    looped = settings._replace(slopes=_looped_slopes)  # the adjoint equation is several times as large as ``f``

    def adjoint(state: Any, t: Any, floats: Any, others: Any) -> Any:
        y, ct, _, _ = unravel(state)
        value, pull = vjp(lambda y, t, floats: f(y, t, floats, others), y, t, floats)
        by_y, by_t, by_args = tree_map(hnp.negative, pull(ct))
        return ravel_pytree((value, by_y, by_t, by_args))[0]

    zeros = tree_map(hnp.zeros_like, floats)
    _, unravel = ravel_pytree((ys[0], ys[0], t[0], zeros))

    def through(carry: Any, at: Any) -> Any:
        ct, by_first, by_args = carry
        y, here, now, earlier = at
        by_time = hnp.real(hnp.dot(f(y, now, floats, others), here)).astype(now.dtype)
        state = ravel_pytree((y, ct + here, by_first - by_time, by_args))[0]
        times = hnp.stack([now, earlier])
        _, ct, by_first, by_args = unravel(_odeint(adjoint, looped, state, times, (floats, others))[1])
        return (ct, by_first, by_args), by_time

    start = (hnp.zeros_like(ys[0]), hnp.zeros_like(t[0]), zeros)
    (ct, by_first, by_args), by_times = scan(through, start, (ys[1:], cts[1:], t[1:], t[:-1]), reverse=True)
    return ct + cts[0], hnp.concatenate([by_first[None], by_times]), (by_args, None)


_odeint.defvjp(_forward, _backward)


def _turns_back(t: np.ndarray[Any, Any]) -> bool:
    steps = np.diff(t)
    return bool((steps < 0).any() and (steps > 0).any())


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, *args: Any, rtol: Any = 1.4e-8, atol: Any = 1.4e-8,
    mxstep: Any = hnp.inf, hmax: Any = hnp.inf,
) -> Any:
    """The solution of ``dy/dt == func(y, t, *args)`` at the times ``t``, with the value ``y0`` at ``t[0]``.

    Steps of adaptive length, by the method of order 5 of Dormand and Prince.

    Args:
        func: gives a tree like ``y``, of the same shapes; real numbers of another dtype are converted.
        y0: a tree of arrays; each leaf of the result has a leading axis of the times.
        args: trees of arrays. Reverse mode by floats among ``args``, by arrays that ``func`` captures, ``y0`` and
            ``t`` solves the adjoint equation.
        t: times that increase, or that decrease. Where traced times turn back, the solution is NaN.
        rtol, atol: a step is accepted where its error is at most ``atol + rtol * abs(y)``, in the mean square.
        mxstep: the largest number of steps between two times; where more are needed, the solution is NaN.
        hmax: the longest step.

    Raises: BadArgument: ``t`` neither increases nor decreases, or a tolerance or bound is negative or NaN.
        TreeMismatch, ShapeMismatch, DTypeMismatch: ``func`` gives no derivative of ``y``. ShapeMismatch: ``t`` is no
        vector.

    >>> abs(odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[1] - 0.36787944) < 1e-6
    Array(True, dtype=bool)
    """
    if not callable(func):
        raise BadArgument(f"odeint: func must be a function, got {type(func).__name__}.")
    times = hnp.asarray(t)
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeMismatch(f"odeint: t must be a vector of times, got {times.type}.")
    if known(times) and _turns_back(np.asarray(times)):
        raise BadArgument(f"odeint: t must increase or decrease, got {np.asarray(times)}.")
    times = times.astype(hnp.result_type(times, float))
    y0 = tree_map(lambda y: hnp.asarray(y).astype(hnp.result_type(y, float)), y0)
    args = tree_map(hnp.asarray, args)
    y, unravel = ravel_pytree(y0)
    need_at_least(0, "odeint", rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
    derivative = lambda y, *args: result_like("odeint: func", func(y, *args), y)
    flat = lambda y, t, *args: ravel_pytree(derivative(unravel(y), t, *args))[0].astype(y.dtype)
    f, captured = closure_converted("odeint", flat, (y, times[0], *args))
    leaves, tree = pytrees.flatten((*args, *captured))
    floating = [is_inexact(x.dtype) for x in leaves]
    floats, others = [[x for x, yes in zip(leaves, floating) if yes is kind] for kind in (True, False)]

    def slope(y: Any, t: Any, floats: Any, others: Any) -> Any:
        parts = {True: iter(floats), False: iter(others)}
        return f(y, t, *pytrees.unflatten(tree, [next(parts[yes]) for yes in floating]))

    settings = _Settings(rtol, atol, mxstep, hmax, _unrolled_slopes)
    return vmap(unravel)(_odeint(slope, settings, y, times, (floats, others)))
