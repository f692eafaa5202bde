"""``handlax.scipy.optimize``: minimisation of functions of vectors by BFGS and limited-memory BFGS.

The inverse Hessian is estimated by a matrix, or implicitly by the last steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, BadCall, NotAnArray, ShapeMismatch, TracerArrayConversionError, text_of
from ..effects.control.loops import scan, while_loop
from ..effects.core.arrays import Array
from ..interpreters.transformations.derivatives import value_and_grad
from ..numpy.arrays.index_arrays import known
from ..numpy.arrays.solver_arguments import need_at_least

__all__ = ["OptimizeResults", "minimize"]

SUFFICIENT, CURVATURE = 1e-4, 0.9  # Wolfe's conditions


class OptimizeResults(NamedTuple):
    """The result of ``minimize``.

    The point, its value and gradient, the estimate of the inverse of the Hessian, and the numbers of evaluations,
    gradients and steps. ``success`` is ``status == 0``, and ``message`` says ``status`` in words.

    ====== ================================================== ===================================================
    status the search has ended                               what to do
    ====== ================================================== ===================================================
    0      where the gradient is at most ``tol``
    1      after ``maxiter`` steps                            go on from ``x``, or allow more
    2      after ``maxfun`` or ``maxgrad`` evaluations        go on from ``x``, or allow more
    3      where rounding hides whether a step is progress    where ``jac`` is small: nothing, ``x`` is the minimum to
                                                              working precision; else see ``minimize``, ``tol``
    4      where a step changed the value by less than        nothing, or a smaller ``ftol``
           ``ftol``
    5      where the search along a line found a smaller      as for 3; or a larger ``line_search_maxiter``, ``maxls``
           value, but no step of sufficient decrease
    6      where it began: ``fun`` or its gradient is not     another ``x0``
           finite there
    ====== ================================================== ===================================================
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Any
    nfev: Array
    njev: Array
    nit: Array

    @property
    def message(self) -> Any:
        """What ``status`` means, a string; for lanes a list of strings.

        Raises: TracerArrayConversionError: the result is traced.
        """
        if not known(self.status):
            raise TracerArrayConversionError(
                f"minimize: the status must be known for its message, a Python string, got {self.status.type}.",
                hint="read message outside of jit.",
            )
        return np.array(MESSAGES)[np.asarray(self.status)].tolist()


MESSAGES = (
    "the gradient is at most the tolerance",
    "maxiter steps were taken",
    "maxfun or maxgrad evaluations were made",
    "no step makes fun less by more than rounding: a minimum to working precision, if jac is small",
    "a step changed fun by less than ftol",
    "the line search ended with a smaller value, without a step of sufficient decrease: "
    "a minimum to working precision, if jac is small",
    "fun or its gradient is not finite at x0",
)
"""By status."""

RAVEL = "x, unravel = hx.flatten_util.ravel_pytree(x0); minimize(lambda x: fun(unravel(x)), x); unravel(result.x)."


class _LineSearch(NamedTuple):
    """The state of a line search: the step of least value so far or, once ``done``, the one that satisfies Wolfe's
    conditions, with its value and gradient; the step to try next; and the interval that brackets the solution.
    """

    step: Any
    value: Any
    gradient: Any
    guess: Any
    low: Any
    high: Any
    low_value: Any
    low_slope: Any
    done: Any
    count: Any


def _next_step(low: Any, high: Any, low_value: Any, low_slope: Any, high_value: Any) -> Any:
    """The minimum of the parabola through the interval's ends, kept away from them; twice the step if there is no upper
    end.
    """
    width = hnp.where(hnp.isinf(high), 1, high - low)
    bend = high_value - low_value - low_slope * width
    inner = hnp.where(bend > 0, -0.5 * low_slope * width / hnp.where(bend > 0, bend, 1), 0.5)
    inner = hnp.clip(hnp.where(hnp.isfinite(inner), inner, 0.5), 0.1, 0.9)
    return hnp.where(hnp.isinf(high), 2 * low, low + inner * width)


def _search(f: Callable[..., Any], x: Any, value: Any, gradient: Any, p: Any, first: Any, limit: Any) -> _LineSearch:
    """A step along ``p`` that satisfies Wolfe's conditions, by bisection; after ``limit`` steps without one, the best.

    Source: Nocedal & Wright, chapter 3.
    """
    slope = hnp.vdot(gradient, p)

    def more(line: _LineSearch) -> Any:
        return ~line.done & (line.count < limit)

    def evaluate(line: _LineSearch) -> _LineSearch:
        v, g = f(x + line.guess * p)
        at = hnp.vdot(g, p)
        finite = hnp.isfinite(v) & hnp.isfinite(at)  # steps to other points are too long
        above = ~(finite & (v <= value + SUFFICIENT * line.guess * slope))
        steep = ~above & (at < CURVATURE * slope)
        high = hnp.where(above, line.guess, line.high)
        low = hnp.where(steep, line.guess, line.low)
        low_value, low_slope = hnp.where(steep, v, line.low_value), hnp.where(steep, at, line.low_slope)
        done = ~above & ~steep
        guess = _next_step(low, high, low_value, low_slope, hnp.where(above, v, hnp.inf))
        best = done | finite & (v < line.value)
        taken, v, g = [hnp.where(best, new, old) for new, old in zip((line.guess, v, g), line)]
        return _LineSearch(taken, v, g, guess, low, high, low_value, low_slope, done, line.count + 1)

    zero, one = hnp.zeros_like(value), hnp.ones_like(value)
    start = _LineSearch(
        zero, value, gradient, first * one, zero, hnp.inf * one, value, slope, hnp.asarray(False), hnp.asarray(0)
    )
    return while_loop(more, evaluate, start)


class _Options(NamedTuple):
    """The options of BFGS: it ends where the gradient's norm of order ``norm`` is at most ``gtol``.

    Or after ``maxiter`` steps; each evaluates ``fun`` up to ``line_search_maxiter`` times.
    """

    gtol: Any = 1e-5
    norm: Any = hnp.inf
    maxiter: Any = None
    line_search_maxiter: Any = 40


def _size(x: Any, order: Any) -> Any:
    """The norm of a vector, of this order."""
    if order == hnp.inf:
        return hnp.max(hnp.abs(x), initial=0)
    return hnp.sum(hnp.abs(x) ** order) ** (1 / order)


class _LimitedOptions(NamedTuple):
    """The options of L-BFGS: those of ``_Options``, tolerances of the value, and the length of the history."""

    gtol: Any = 1e-5
    norm: Any = hnp.inf
    maxiter: Any = None
    maxls: Any = 20
    ftol: Any = 2.220446049250313e-09
    maxcor: int = 10
    maxfun: Any = None
    maxgrad: Any = None


class _History(NamedTuple):
    """The last steps, the newest last, with the gradient differences and the inverses of their inner products, or 0."""

    steps: Any
    changes: Any
    inverses: Any


def _remembered(history: _History, s: Any, y: Any) -> _History:
    """The history with one more step, if its curvature is positive, without the oldest."""
    curvature = hnp.vdot(y, s)
    usable = curvature > 0
    newest = _History(s, y, 1 / hnp.where(usable, curvature, 1))
    return _History(*[
        hnp.where(usable, hnp.concatenate([old[1:], new[None]]), old) for old, new in zip(history, newest)
    ])


def _by_history(history: _History, g: Any) -> Any:
    """The L-BFGS inverse Hessian estimate times a vector (two-loop recursion). Source: Nocedal & Wright, algorithm 7.4.
    """

    def back(q: Any, row: _History) -> tuple[Any, Any]:
        share = row.inverses * hnp.vdot(row.steps, q)
        return q - share * row.changes, share

    def forth(r: Any, item: tuple[_History, Any]) -> tuple[Any, None]:
        row, share = item
        return r + (share - row.inverses * hnp.vdot(row.changes, r)) * row.steps, None

    q, shares = scan(back, g, history, reverse=True)
    inverse, change = history.inverses[-1], history.changes[-1]
    size = inverse * hnp.vdot(change, change)
    return scan(forth, hnp.where(size > 0, 1 / hnp.where(size > 0, size, 1), 1) * q, (history, shares))[0]


def _updated(h: Any, s: Any, y: Any) -> Any:
    """The BFGS update of the inverse Hessian estimate h, which then maps the gradient difference y to the step s."""
    curvature = hnp.vdot(y, s)
    usable = curvature > 0
    rho = 1 / hnp.where(usable, curvature, 1)
    left = hnp.eye(len(s), dtype=s.dtype) - rho * hnp.outer(s, y)
    return hnp.where(usable, left @ h @ left.T + rho * hnp.outer(s, s), h)


class _Estimate(NamedTuple):
    """A method of estimating the inverse Hessian: its initial value, its product with a vector, and its update."""

    first: Any
    times: Callable[[Any, Any], Any]
    after: Callable[[Any, Any, Any], Any]


def _descend(
    f: Callable[..., Any], x0: Any, estimate: _Estimate, options: _Options | _LimitedOptions, line_steps: Any,
    least_change: Any = None, evaluations: Any = None,
) -> OptimizeResults:
    """Quasi-Newton descent: steps along minus the estimate times the gradient, each by a line search for Wolfe's
    conditions of at most ``line_steps`` evaluations.

    It ends as ``options`` says, where the value changes by less than ``least_change``, or after so many evaluations;
    at once where value or gradient are not finite; and, at the latest where rounding hides the difference of values,
    where a step makes neither the value less nor, at the same value, the gradient.
    """
    limit = 200 * x0.size if options.maxiter is None else options.maxiter

    def more(r: OptimizeResults) -> Any:
        return (_size(r.jac, options.norm) > options.gtol) & (r.status == 0) & (r.nit < limit)

    def step(r: OptimizeResults) -> OptimizeResults:
        p = -estimate.times(r.hess_inv, r.jac)
        p = hnp.where(hnp.vdot(p, r.jac) < 0, p, -r.jac)
        first = hnp.where(r.nit == 0, hnp.minimum(1, 1 / hnp.sqrt(hnp.vdot(p, p))), 1)
        line = _search(f, r.x, r.fun, r.jac, p, first, line_steps)
        # Wolfe's conditions also hold for equal values, where the decrease that they ask for is lost in rounding
        flatter = line.done & (line.value == r.fun) & (_size(line.gradient, options.norm) < _size(r.jac, options.norm))
        less = (line.value < r.fun) | flatter
        s = hnp.where(less, line.step * p, 0)
        value, gradient = hnp.where(less, line.value, r.fun), hnp.where(less, line.gradient, r.jac)
        status = hnp.where(less, hnp.where(line.done, 0, 5), 3)
        if least_change is not None:
            status = hnp.where((status == 0) & (r.fun - value < least_change), 4, status)
        count = r.nfev + line.count
        if evaluations is not None:
            status = hnp.where((status == 0) & (count >= evaluations), 2, status)
        h = estimate.after(r.hess_inv, s, gradient - r.jac)
        return OptimizeResults(r.x + s, r.success, status, value, gradient, h, count, count, r.nit + 1)

    value, gradient = f(x0)
    count = hnp.asarray(1)
    status = hnp.where(hnp.isfinite(value) & hnp.isfinite(gradient).all(), count * 0, 6)
    start = OptimizeResults(
        x0, hnp.asarray(False), status, value, gradient, estimate.first, count, count, count * 0
    )
    end = while_loop(more, step, start)
    small = (_size(end.jac, options.norm) <= options.gtol) & (end.status != 6)
    return end._replace(success=small, status=hnp.where(small, 0, hnp.where(end.status == 0, 1, end.status)))


def _bfgs(f: Callable[..., Any], x0: Any, options: _Options) -> OptimizeResults:
    """Descent with a matrix as estimate of the inverse Hessian."""
    estimate = _Estimate(hnp.eye(x0.size, dtype=x0.dtype), lambda h, g: h @ g, _updated)
    return _descend(f, x0, estimate, options, options.line_search_maxiter)


def _limited(f: Callable[..., Any], x0: Any, options: _LimitedOptions) -> OptimizeResults:
    """L-BFGS: descent with an estimate of the inverse Hessian by the last steps."""
    none = hnp.zeros((options.maxcor, x0.size), x0.dtype)
    estimate = _Estimate(_History(none, none, none[:, 0]), _by_history, _remembered)
    evaluations = min([n for n in (options.maxfun, options.maxgrad) if n is not None], default=None)
    return _descend(f, x0, estimate, options, options.maxls, options.ftol, evaluations)._replace(hess_inv=None)


METHODS: Mapping[str, tuple[Any, Any]] = {
    "bfgs": (_bfgs, _Options), "l-bfgs-experimental-do-not-rely-on-this": (_limited, _LimitedOptions),
}


def _checked(options: Any) -> Any:
    """The options, with ``norm`` as a number of Python.

    Raises: BadArgument: it is not positive, a tolerance or bound is negative or NaN, or there are no steps to remember.
    """
    bounds = options._asdict()
    norm = bounds.pop("norm")
    order = norm.item() if isinstance(norm, (np.ndarray, Array)) and norm.ndim == 0 else norm
    if not (isinstance(order, (int, float, np.integer, np.floating)) and order > 0):
        hint = "inf is the largest component, 2 the Euclidean norm."
        raise BadArgument(f"minimize: norm must be a number above 0, got {text_of(norm)}.", hint=hint)
    need_at_least(1, "minimize", maxcor=bounds.pop("maxcor", None))
    need_at_least(0, "minimize", **bounds)
    return options._replace(norm=order)


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str = "BFGS",
    tol: Any = None, options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of ``fun(x, *args)`` near ``x0``.

    Args:
        fun: a function of a vector that returns a scalar.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", which is JAX's name for that of limited memory.
        tol: the tolerance of the gradient's norm, 1e-5; the same as ``gtol`` in ``options``. It has the unit of
            ``fun``, whose rounding bounds what can be reached: a search that comes so far ends with status 3 or 5,
            as SciPy's does with "precision loss". Then ``x`` is a minimum to working precision if ``jac`` is small
            beside ``hess_inv``: the value could become less by about ``jac @ hess_inv @ jac / 2``. To be told
            success, pass a larger ``tol``, a ``fun`` divided by its size, or an ``x0`` of float64.
        options: ``gtol``, ``norm`` (its order, above 0: inf), ``maxiter`` and ``line_search_maxiter``; with limited
            memory ``maxls`` in place of the last, ``maxcor`` (the number of steps in memory), ``ftol``, ``maxfun`` and
            ``maxgrad``.

    Parameters in a tree: ``x, unravel = flatten_util.ravel_pytree(tree)``, then ``fun(unravel(x))``. The function may
    be mapped by ``vmap`` over starts and data.

    Raises: BadCall: ``args`` is no tuple. BadArgument: another method or option, a bound that is negative or NaN, or a
        ``norm`` that is no positive number. NotAnArray, ShapeMismatch: ``x0`` is no vector. NotDifferentiable: ``fun``
        gives no real scalar.

    Source: Nocedal & Wright, Numerical Optimization, algorithms 6.1 and 7.5.

    >>> r = minimize(lambda x: (x[0] - 1.0) ** 2 + (x[1] + 2.0) ** 2, hnp.zeros(2), method="BFGS")
    >>> bool(r.success), hnp.round(r.x, 3).tolist()
    (True, [1.0, -2.0])
    """
    if not isinstance(args, tuple):
        raise BadCall(f"minimize: args must be a tuple, got {type(args).__name__}.", hint="for one: args=(a,).")
    if not isinstance(method, str) or method.lower() not in METHODS:
        raise BadArgument(
            f'minimize: method must be "BFGS" or "l-bfgs-experimental-do-not-rely-on-this", got {method!r}.',
            hint="both take gradients, which fun has here by hx.grad; for others: scipy.optimize.minimize(hx.jit(fun), "
            "x0, jac=hx.jit(hx.grad(fun))).",
        )
    search, kind = METHODS[method.lower()]
    chosen = dict(options or {})
    unknown = sorted(chosen.keys() - set(kind._fields))
    if unknown:
        raise BadArgument(f"minimize: options must be of {', '.join(kind._fields)}, got {', '.join(unknown)}.")
    if tol is not None:
        chosen.setdefault("gtol", tol)
    try:
        x = hnp.asarray(x0)
    except NotAnArray:
        raise NotAnArray(f"minimize: x0 must be a vector, got {type(x0).__name__}.", hint=RAVEL) from None
    x = x.astype(hnp.result_type(x, float))
    if x.ndim != 1:
        raise ShapeMismatch(f"minimize: x0 must be a vector, got {x.type}.", hint=RAVEL)
    settings = _checked(kind(**chosen))
    results: OptimizeResults = search(value_and_grad(lambda x: _in_dtype_of(x, fun(x, *args))), x, settings)
    return results


def _in_dtype_of(x: Array, value: Any) -> Any:
    """A real value of the objective in the dtype of the vector, in which the search compares it; others as they are."""
    return value.astype(x.dtype) if isinstance(value, Array) and hnp.issubdtype(value.dtype, hnp.floating) else value
