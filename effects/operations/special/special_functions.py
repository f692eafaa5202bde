"""The gamma function, polygamma, zeta, the incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import NotDifferentiable
from ...base.stack import perform
from ...base.wrapping import ignoring_errors
from ...core.arrays import Array
from ...types import dtypes
from ...types.dtypes import FLOATING, float32, float64, int32
from ...types.sized import surely_at_most
from ..elementwise.arithmetic import RoundingMethod, abs, floor, like, mul, neg, round, sub
from ..elementwise.bitwise import bitwise_and, bitwise_or
from ..elementwise.comparison import eq, ge, gt, le, lt, max, min, select_n
from ..elementwise.complex_functions import PERFORMED
from ..elementwise.conversion import convert, performed_wide
from ..elementwise.transcendental import cos, exp, log, log1p, pow, sin
from ..foundations.elementwise_factory import Function, elementwise, repeated, surface
from ..foundations.half_precision import lower_wide, scipy_special, wide
from ..foundations.shapes import broadcast, reshape
from ..manipulation.slicing import concatenate, slice_in_dim
from . import incomplete_beta, incomplete_gamma
from .polygamma_by_ratios import polygamma_by_ratios, reflected, sign_of_order, sum_around, sum_of_powers
from .special_series import SeriesExpansion, SeriesState, lgamma_coefficients
from .zeta_by_exponent import zeta_by_exponent


def _refuse(name: str, operand: str) -> Any:
    """Raise NotDifferentiable: the tangent term of an operand without a derivative."""
    raise NotDifferentiable(
        f"{name}: there is no derivative by {operand}, got a tangent for it.",
        hint=f"make {operand} constant by lax.stop_gradient, or define a derivative by custom_jvp.",
    )


def _lgamma_near_two(m: Any, x: Any) -> Any:
    """log Gamma(x) for 1/2 < x < 5/2, exact near its zeros; log Gamma(1 + z) = log Gamma(2 + z) - log(1 + z)."""
    below = x < 1.5
    z = x - m.where(below, m.full_like(x, 1.0), m.full_like(x, 2.0))
    y = m.full_like(x, 0.0)
    for c in reversed(lgamma_coefficients()):
        y = y * z + c
    return y * z - m.log1p(m.where(below, z, m.full_like(x, 0.0)))


def _lgamma(x):
    """SciPy's gammaln, but infinity at -inf, and exact near 1 and 2."""
    y = np.where(x == -np.inf, -x, scipy_special("gammaln")(x))
    near = (x > 0.5) & (x < 2.5)
    if x.dtype == float64 and near.any():
        y[near] = _lgamma_near_two(IN_NUMPY, x[near])
    return y


def _lower_lgamma(op, emit, x):
    """CHLO's lgamma, whose error is absolute, with a series near the zeros at 1 and 2."""
    y = emit.elementwise("chlo.lgamma", x)
    half, end = emit.full(0.5, x.type), emit.full(2.5, x.type)
    near = emit.binary("and", emit.compare("GT", x, half), emit.compare("LT", x, end))
    safe = emit.select(near, x, emit.full(1, x.type))
    return emit.select(near, emit.decompose(lambda v: _lgamma_near_two(PERFORMED, v), safe), y)


def _performed_digamma(x: Any) -> Any:
    """By the asymptotic series at x + SHIFT less the sum of 1 / (x + k), more exact than CHLO's; reflected below 0.

    At 0 it is -inf, the limit from above. Source: Abramowitz & Stegun 6.3.5, 6.3.7, 6.3.18.
    """
    below, rest = x < 0.0, _from_nearest(x)
    y = select_n(below, x, 1.0 - x)
    a = y + float(incomplete_gamma.SHIFT)
    y = log(a) - (0.5 / a + incomplete_gamma.digamma_excess(1.0 / (a * a))) - _sum_of_inverses(y)
    angle = rest * math.pi
    y = select_n(below, y, y - cos(angle) / sin(angle) * math.pi)
    y = select_n(bitwise_and(below, eq(rest, like(x, 0.0))), y, like(x, np.nan))
    return select_n(eq(x, like(x, 0.0)), y, like(x, -np.inf))


def _sum_of_inverses(y: Any) -> Any:
    """The sum of 1 / (y + k) for k < SHIFT, the smallest first."""
    total = 0.0
    for k in reversed(range(incomplete_gamma.SHIFT)):
        total = total + 1.0 / (y + float(k))
    return total


@ignoring_errors
def _digamma(x):
    """SciPy's psi, but -inf, the limit from above, at -0 too, NaN at -inf, and reflected below 0: exact near poles."""
    z = np.asarray(x, np.float64)
    reflected = scipy_special("psi")(1 - z) - np.pi / np.tan(np.pi * (z - np.rint(z)))
    y = np.where((x < 0) & (x != np.rint(x)), reflected, scipy_special("psi")(x))
    return np.where(x == 0, -np.inf, np.where(x == -np.inf, np.nan, y)).astype(x.dtype)


def _betainc(a, b, x):
    """SciPy's betainc of 64 bits, as that of 32 is wrong for small a and b; of versions whose limits differ, not these.
    """
    a, b, x = np.broadcast_arrays(*[np.asarray(v, np.float64) for v in (a, b, x)])
    return incomplete_beta.at_limits(np, a, b, x, scipy_special("betainc")(a, b, x))


# y = log |Gamma(x)|, its derivative, the m-th derivative of that, and sum over n of (n + q)^-s
Lgamma = elementwise(
    "lgamma", FLOATING, wide(_lgamma), jvp=lambda x, dx: mul(dx, digamma(x)), lower=lower_wide(_lower_lgamma),
    doc="``y[i] = log(abs(Gamma(x[i])))``.",
)
Digamma = elementwise(
    "digamma", FLOATING, wide(_digamma), jvp=lambda x, dx: mul(dx, polygamma(like(x, 1.0), x)),
    decompose=performed_wide(_performed_digamma),
    doc="The derivative of ``lgamma``.",
)


def _zeta(s, q):
    """SciPy's zeta; for q < 0 and an integer s a sum over all integers less one over natural numbers, else NaN.

    sum over n in Z of (q + n)^-s = r^-s + zeta(s, 1 + r) + (-1)^s zeta(s, 1 - r) for q = r modulo 1. The poles at 0 and
    below are infinite from both sides for even s, and NaN for others. zeta(1, q) is infinite, a sum without a limit.
    """
    s, q = (np.asarray(v, np.float64) for v in (s, q))
    hurwitz = scipy_special("zeta")
    even, below, r = s / 2 == np.floor(s / 2), q < 0, q - np.rint(q)
    sign = np.where(even, 1.0, -1.0)
    near = np.abs(r) ** -s * np.where(r < 0, sign, 1.0)
    around = near + hurwitz(s, 1 + r) + sign * (hurwitz(s, 1 - r) - hurwitz(s, np.where(below, 1 - q, 1.0)))
    around = np.where((s == np.floor(s)) & (s > 1), around, np.nan)
    y = np.where(below, around, hurwitz(s, np.where(below, 1.0, q)))
    y = np.where((q <= 0) & (r == 0), np.where(even, np.inf, np.nan), y)
    y = np.where((s > FIRST_TERM) & (q > 0) & (q < np.inf), np.abs(q) ** -s, y)
    return np.where(s == 1, np.inf, y)


FIRST_TERM = 1000.0  # for exponents from here on the first term is zeta, in every dtype
BRANCHED = 10_000  # arrays of at least so many elements branch on whether any is negative


def _even(s: Any) -> Any:
    """Whether ``s`` is an even integer."""
    half = s * like(s, 0.5)
    return eq(half, floor(half))


def _from_nearest(q: Any) -> Any:
    """``q`` minus the nearest integer."""
    return sub(q, round(q, RoundingMethod.TO_NEAREST_EVEN))


def _positive_arguments(s: Any, q: Any) -> list[Any]:
    """The (s, q) pairs of the three zeta functions in ``_zeta``."""
    r, one = _from_nearest(q), like(q, 1.0)
    rows = [one + r, one - r, select_n(lt(q, like(q, 0.0)), q, one - q)]
    return [broadcast(s, (3, *q.shape)), concatenate([reshape(v, (1, *q.shape)) for v in rows], 0)]


def _over_all_integers(s: Any, q: Any, sums: Any) -> Any:
    """``_zeta`` from the values of its three zeta functions."""
    r, one, none, nan = _from_nearest(q), like(q, 1.0), like(q, 0.0), like(q, np.nan)
    above, under, direct = (reshape(slice_in_dim(sums, i, i + 1), q.shape) for i in range(3))
    sign = select_n(_even(s), -one, one)
    near = pow(abs(r), -s) * select_n(lt(r, none), one, sign)
    around = near + above + sign * (under - direct)
    y = select_n(lt(q, none), direct, select_n(bitwise_and(eq(s, floor(s)), gt(s, one)), nan, around))
    return select_n(bitwise_and(le(q, none), eq(r, none)), y, select_n(_even(s), nan, like(q, np.inf)))


def _at_zero_and_infinity(s: Any, q: Any, y: Any) -> Any:
    """``y``, the zeta function, with its values for large ``s``, for ``q`` 0 and infinite, and for ``s`` 1."""
    nan = like(q, np.nan)
    first = bitwise_and(gt(s, like(s, FIRST_TERM)), gt(q, like(q, 0.0)))
    y = select_n(first, y, pow(abs(q), neg(s)))
    y = select_n(eq(q, like(q, np.inf)), y, select_n(gt(s, like(s, 1.0)), nan, like(q, 0.0)))
    y = select_n(eq(q, like(q, 0.0)), y, select_n(_even(s), nan, like(q, np.inf)))
    return select_n(bitwise_and(eq(s, like(s, 1.0)), eq(q, q)), y, like(q, np.inf))


def _by_sign(emit: Any, q: Any, branches: Sequence[Callable[[], list[Any]]]) -> Any:
    """The result of the second branch; of the first, for positive arguments, where a large array has only such."""
    negative = emit.decompose(lambda q: convert(PERFORMED.any(lt(q, like(q, 0.0))), int32), q)
    return emit.case(negative, branches[1:] if surely_at_most(q.type.size, BRANCHED) else branches, [q.type])[0]


def _lower_zeta(op: Any, emit: Any, s: Any, q: Any) -> Any:
    """The lowering: CHLO's zeta at positive arguments, since it is wrong below -9.

    Where a large array has no negative element, one zeta function is computed for each element and not three.
    """
    s, q = emit.spread(s, q)

    def direct() -> Any:
        return [emit.elementwise("chlo.zeta", s, q)]

    def around() -> Any:
        exponents, stacked = emit.decompose(_positive_arguments, s, q)
        sums = emit.elementwise("chlo.zeta", exponents, stacked, type=stacked.type)
        return [emit.decompose(_over_all_integers, s, q, sums)]

    return emit.decompose(_at_zero_and_infinity, s, q, _by_sign(emit, q, [direct, around]))


def _polygamma(m, x):
    """(-1)^(m+1) m! zeta(m + 1, x), by ratios where a factor leaves the range of 64 bits.

    It is digamma for m = 0, and NaN where m is no natural number.
    """
    m, x = np.broadcast_arrays(np.asarray(m, np.float64), np.asarray(x, np.float64))
    z = reflected(IN_NUMPY, m, x, np.rint(x))
    factorial, sums = scipy_special("gamma")(m + 1), _zeta(m + 1, z)
    y = np.asarray(sign_of_order(IN_NUMPY, m) * factorial * sums)
    lost = (m > 0) & (np.isinf(factorial) | (np.abs(sums) < dtypes.finfo(float64).tiny))
    if lost.any():
        operands = IN_NUMPY, m[lost], z[lost], np.rint(z[lost])
        y[lost] = polygamma_by_ratios(*operands, sum_around(*operands))
    y = np.where(x == -np.inf, np.nan, np.where(m == 0, _digamma(x), y))
    return np.where((m < 0) | (m != np.floor(m)), np.nan, y)


def _lower_polygamma(op: Any, emit: Any, m: Any, x: Any) -> Any:
    """The lowering: by ratios."""
    m, x = emit.spread(m, x)

    def operands(m: Any, x: Any) -> list[Any]:
        n, nearest = max(m, like(m, 1.0)), round(x, RoundingMethod.TO_NEAREST_EVEN)
        return [n, reflected(PERFORMED, n, x, nearest), nearest]

    def others(m: Any, x: Any, y: Any) -> Any:
        y = select_n(eq(m, like(m, 0.0)), y, digamma(x))
        return select_n(bitwise_and(ge(m, like(m, 0.0)), eq(m, floor(m))), like(x, np.nan), y)

    _, z, _ = ratios = emit.decompose(operands, m, x)
    branches = [lambda f=f: [emit.decompose(partial(f, PERFORMED), *ratios)] for f in (sum_of_powers, sum_around)]
    y = emit.decompose(partial(polygamma_by_ratios, PERFORMED), *ratios, _by_sign(emit, z, branches))
    return emit.decompose(others, m, x, y)


def _in_operand_dtype(f: Callable[..., Any]) -> Callable[..., Any]:
    """The NumPy function computed in 64 bits and rounded to the dtype of its operands."""

    @ignoring_errors
    def function(*operands):
        return f(*operands).astype(operands[0].dtype)

    return wide(function)


Polygamma = elementwise(
    "polygamma", FLOATING, _in_operand_dtype(_polygamma), arity=2,
    lower=lower_wide(_lower_polygamma),
    jvp=(lambda m, x, dm: _refuse("polygamma", "m"), lambda m, x, dx: mul(dx, polygamma(m + like(m, 1.0), x))),
    exempt={"jvp": "there is no derivative by the order"},
)
Zeta = elementwise(
    "zeta", FLOATING, _in_operand_dtype(_zeta), arity=2,
    lower=lower_wide(_lower_zeta),
    jvp=(
        lambda s, q, ds: mul(ds, zeta_by_exponent(s, q)),
        lambda s, q, dq: mul(dq, neg(mul(s, zeta(s + like(s, 1.0), q)))),
    ),
)
lgamma: Function = surface(Lgamma)
digamma: Function = surface(Digamma)
_polygamma_op, _zeta_op = Polygamma(), Zeta()


def polygamma(m: Any, x: Any) -> Array:
    """The ``m``-th derivative of ``digamma`` at ``x``; NaN where ``m`` is no natural number.

    Shapes: equal but for sizes 1, or rank 0. Raises: NotDifferentiable: a derivative by ``m``.
    """
    return perform(_polygamma_op, *repeated(m, x))


def zeta(x: Any, q: Any) -> Array:
    """Hurwitz' zeta: the sum over n = 0, 1, ... of ``(n + q)**-x``.

    Shapes: equal but for sizes 1, or rank 0.
    """
    return perform(_zeta_op, *repeated(x, q))


class _InNumPy:
    """NumPy's functions, and SciPy's ``lgamma`` and ``erfc``: the counterpart of ``PERFORMED`` on NumPy arrays."""

    lgamma, erfc = staticmethod(scipy_special("gammaln")), staticmethod(scipy_special("erfc"))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


IN_NUMPY = _InNumPy()
STEPS = 4  # iterations of an expansion for each test of a compiled loop


def _iterate(expansion: SeriesExpansion, finish: Callable[..., Any]) -> Callable[..., Any]:
    """The ``lower`` rule of a function computed by an iterated expansion, a loop, in at least 32 bits."""

    def steps(*values: Any) -> SeriesState:
        state: SeriesState = values
        for _ in range(STEPS):
            state = expansion.step(PERFORMED, *state)
        return state

    def lower(op, emit, *operands):
        result = emit.made
        dtype = result.dtype if result.dtype.itemsize > 2 else float32
        operands = emit.decompose(lambda *xs: [convert(x, dtype) for x in xs], *emit.spread(*operands))
        start = emit.decompose(partial(expansion.start, PERFORMED), *operands)
        state = emit.loop(partial(expansion.more, PERFORMED), steps, *start)

        def last(*values: Any) -> list[Any]:
            return [convert(finish(PERFORMED, *values), result.dtype, result.weak)]

        return emit.decompose(last, *operands, *state)[0]

    return lower


def _by_numpy(expansion: SeriesExpansion, finish: Callable[..., Any]) -> Callable[..., Any]:
    """The ``evaluate`` rule of a function computed by an iterated expansion, in 64 bits, as it cancels near terms."""

    def evaluate(*operands):
        xs = [np.array(x, np.float64) for x in np.broadcast_arrays(*operands)]
        return finish(IN_NUMPY, *xs, *expansion.last_state(IN_NUMPY, *xs)).astype(operands[0].dtype)

    return wide(evaluate)


def _gamma_density(a: Any, x: Any) -> Any:
    """The density of the gamma distribution, dP/dx = x^(a-1) e^-x / Gamma(a), by its logarithm; at 0 by the power."""
    p, rest = a - like(a, 1.0), -x - lgamma(a)
    x = broadcast(x, rest.type.shape)
    end = bitwise_and(eq(x, like(x, 0.0)), ge(p, like(p, 0.0)))
    known = bitwise_or(end, eq(x, like(x, np.inf)))
    inside = exp(p * log(select_n(known, x, like(x, 0.5))) + rest)
    return select_n(end, inside, pow(select_n(end, like(x, 0.5), x), p) * exp(rest))


# z = P(a, x), Q(a, x), dP/da; and dx/da of a sample x at constant P(a, x)
Igamma = elementwise(
    "igamma", FLOATING, scipy_special("gammainc"), arity=2,
    jvp=(lambda a, x, da: mul(da, igamma_grad_a(a, x)), lambda a, x, dx: mul(dx, _gamma_density(a, x))),
    lower=_iterate(incomplete_gamma.VALUES, incomplete_gamma.lower_part),
    exempt={"symmetric": "there is no second derivative by the shape parameter"},
)
Igammac = elementwise(
    "igammac", FLOATING, scipy_special("gammaincc"), arity=2,
    jvp=(lambda a, x, da: mul(da, neg(igamma_grad_a(a, x))), lambda a, x, dx: mul(dx, neg(_gamma_density(a, x)))),
    lower=_iterate(incomplete_gamma.VALUES, incomplete_gamma.upper_part),
    exempt={"symmetric": "there is no second derivative by the shape parameter"},
)
IgammaGradA = elementwise(
    "igamma_grad_a", FLOATING, _by_numpy(incomplete_gamma.SLOPES, incomplete_gamma.slope_by_shape), arity=2,
    jvp=(
        lambda a, x, da: _refuse("igamma_grad_a", "a"),
        lambda a, x, dx: mul(dx, mul(_gamma_density(a, x), sub(log(x), digamma(a)))),
    ),
    lower=_iterate(incomplete_gamma.SLOPES, incomplete_gamma.slope_by_shape),
    exempt={"jvp": "there is no second derivative by the shape parameter"},
)
RandomGammaGrad = elementwise(
    "random_gamma_grad", FLOATING, _by_numpy(incomplete_gamma.SLOPES, incomplete_gamma.sample_slope), arity=2,
    jvp=(lambda a, x, da: _refuse("random_gamma_grad", "a"), lambda a, x, dx: _refuse("random_gamma_grad", "x")),
    lower=_iterate(incomplete_gamma.SLOPES, incomplete_gamma.sample_slope),
    exempt={"jvp": "there is no second derivative of a sample"},
)
_igamma, _igammac, _igamma_grad_a, _random_gamma_grad = Igamma(), Igammac(), IgammaGradA(), RandomGammaGrad()


def igamma(a: Any, x: Any) -> Array:
    """The regularized lower incomplete gamma function P: the integral of ``t**(a-1) e**-t`` to ``x`` over ``Gamma(a)``.

    Shapes: equal but for sizes 1, or rank 0. It is NaN for a negative ``a`` or ``x``.
    """
    return perform(_igamma, *repeated(a, x))


def igammac(a: Any, x: Any) -> Array:
    """``igammac(a, x) == 1 - igamma(a, x)``, exact where that is small."""
    return perform(_igammac, *repeated(a, x))


def igamma_grad_a(a: Any, x: Any) -> Array:
    """The derivative of ``igamma(a, x)`` by ``a``. Raises: NotDifferentiable: a derivative of it by ``a``."""
    return perform(_igamma_grad_a, *repeated(a, x))


def random_gamma_grad(a: Any, x: Any) -> Array:
    """``dx/da`` of a sample ``x`` of the gamma distribution with shape ``a``, at constant ``igamma(a, x)``.

    Source: Figurnov, Mohamed & Mnih 2018, implicit reparameterization gradients.
    """
    return perform(_random_gamma_grad, *repeated(a, x))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """The density of the beta distribution, x^(a-1) (1-x)^(b-1) / B(a, b), by its logarithm; at 0 and 1 by powers."""
    one, half = like(x, 1.0), like(x, 0.5)
    p, q, scale = a - one, b - one, lgamma(a + b) - (lgamma(a) + lgamma(b))
    x = broadcast(x, scale.type.shape) if not x.type.shape else x
    zero = like(x, 0.0)
    end = bitwise_or(bitwise_and(eq(x, zero), ge(p, zero)), bitwise_and(eq(x, one), ge(q, zero)))
    inner, outer = select_n(end, x, half), select_n(end, half, x)
    inside = exp(p * log(inner) + q * log1p(-inner) + scale)
    powers = pow(outer, p) * pow(one - outer, q)
    return select_n(end, inside, powers * exp(min(scale, like(x, 80.0))))  # where B is smaller, the power is 0


# z = the integral of t^(a-1) (1-t)^(b-1) from 0 to x, over B(a, b)
RegularizedIncompleteBeta = elementwise(
    "regularized_incomplete_beta", FLOATING, _in_operand_dtype(_betainc), arity=3,
    jvp=(
        lambda a, b, x, d: _refuse("betainc", "a"),
        lambda a, b, x, d: _refuse("betainc", "b"),
        lambda a, b, x, d: mul(d, _beta_density(a, b, x)),
    ),
    lower=_iterate(incomplete_beta.FRACTION, incomplete_beta.beta_integral),
    exempt={"jvp": "there is no derivative by a and b"},
)
_betainc_op = RegularizedIncompleteBeta()


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The regularized incomplete beta function: the integral of ``t**(a-1) (1-t)**(b-1)`` to ``x``, over ``B(a, b)``.

    Shapes: equal but for sizes 1, or rank 0. Raises: NotDifferentiable: a derivative by ``a`` or ``b``.
    """
    return perform(_betainc_op, *repeated(a, b, x))


regularized_incomplete_beta = betainc
