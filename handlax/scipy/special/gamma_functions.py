"""The gamma function and its relatives: beta, polygamma, zeta, binomials, factorials, Bernoulli's numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.errors import BadArgument
from ...effects.base.wrapping import errors_ignored
from ...effects.control.loops import fori_loop
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.half_precision import scipy_special
from ...effects.operations.special import special_functions as operations
from ...effects.operations.special.incomplete_gamma import BERNOULLI, SHIFT
from ...effects.types.dtypes import default_float, is_complex
from ...interpreters.core.eager_programs import evaluated_at_once, programs
from ...numpy.arrays.argument_conversion import in_32_bits, inexact, strong
from ...numpy.mathematics.elementary_functions import sin_pi
from .formulas import analytic, floats, free_promotion

__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc",
    "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]

_FEW = 8  # sums of up to so many terms are unrolled


def gammaln(x: Any) -> Array:
    """``log(abs(gamma(x)))``.

    >>> gammaln(1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return operations.lgamma(*floats("gammaln", x))


def digamma(x: Any) -> Array:
    """The derivative of ``gammaln``: ``digamma(x + 1) == digamma(x) + 1 / x``.

    >>> from handlax.numpy import array
    >>> digamma(array([1.0, 2.0])).round(4)
    Array([-0.5772,  0.4228], dtype=float32)
    """
    return operations.digamma(*floats("digamma", x))


def polygamma(n: Any, x: Any) -> Array:
    """The ``n``-th derivative of ``digamma``. Raises: NotDifferentiable: a derivative by ``n``.

    >>> polygamma(1, 1.0).round(4)
    Array(1.6449, dtype=float32, weak_type=True)
    """
    return operations.polygamma(*floats("polygamma", n, x))


def gammainc(a: Any, x: Any) -> Array:
    """The integral of ``t**(a-1) * exp(-t)`` from 0 to ``x``, over ``gamma(a)``.

    >>> gammainc(2.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return operations.igamma(*floats("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Array:
    """``1 - gammainc(a, x)``, exact where that is small.

    >>> gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return operations.igammac(*floats("gammaincc", a, x))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The integral of ``t**(a-1) * (1-t)**(b-1)`` from 0 to ``x``, over ``beta(a, b)``.

    Raises: NotDifferentiable: a derivative by ``a`` or ``b``.

    >>> betainc(1.0, 1.0, 0.25).round(4)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return operations.betainc(*floats("betainc", a, b, x))


def zeta(x: Any, q: Any = None) -> Array:
    """Hurwitz' zeta: the sum of ``(n + q)**-x`` over ``n = 0, 1, ...`` for ``x > 1``; ``q`` is 1 if it is not given.

    >>> zeta(1.0, 1.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    return operations.zeta(*floats("zeta", x, 1 if q is None else q))


def _correction(x: Any) -> Any:
    """log Gamma(x) minus Stirling's formula, for x >= SHIFT. Source: Abramowitz & Stegun 6.1.40."""
    inverse, total = 1 / x, 0
    for k in reversed(range(len(BERNOULLI))):
        total = total * inverse * inverse + BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1))
    return total * inverse


def _rising(x: Any) -> Any:
    """The rising factorial x (x + 1) ... (x + SHIFT - 1)."""
    product = x
    for k in range(1, SHIFT):
        product = product * (x + k)
    return product


def _gamma_near(n: Any, rest: Any) -> Any:
    """Gamma(n + f) for abs(f) <= 1, from its value at the integer n >= SHIFT.

    Gamma(n + f) = (n - 1)! n^f exp((n + f - 1/2) log(1 + f/n) - f + c(n + f) - c(n)): no large exponent, which would
    multiply rounding errors.
    """
    table = errors_ignored(np.array([math.gamma(max(k, 1)) for k in range(172)]).astype, n.dtype)
    exponent = (n - 0.5 + rest) * hnp.log1p(rest / n) - rest + (_correction(n + rest) - _correction(n))
    growth = hnp.power(n, rest) * hnp.exp(exponent)  # its first factor may be too large for a product with (n - 1)!
    return hnp.take(table, n.astype("int32"), mode="clip") * growth


def _gamma_right(x: Any) -> Any:
    """Gamma(x) for x >= 1/2; below SHIFT by the recurrence Gamma(x + 1) = x Gamma(x), above 172 by overflow."""
    small, n = x < SHIFT, hnp.minimum(hnp.round(x), 171)  # the last integer of which the value is finite
    y = _gamma_near(hnp.where(small, n + SHIFT, n), hnp.minimum(x - n, 1))
    return hnp.where(small, y / _rising(hnp.where(small, x, 1)), y)


def _gamma_slope(y: Any, x: Any) -> Any:
    """y digamma(x), infinite where y is, and so is its slope: of a product it would be a difference of infinities."""
    beyond = (y == hnp.inf) & (x > 1)
    return hnp.where(beyond, y, hnp.where(beyond, 1, y) * operations.digamma(x))


@analytic(_gamma_slope)
def _gamma(x: Any) -> Any:
    left = x < 0.5
    y = _gamma_right(hnp.where(left, 1 - x, x))
    sine = sin_pi(hnp.where(left, x, 0.5))
    reflected = math.pi / hnp.where(sine == 0, 1, sine) / y
    y = hnp.where(left, hnp.where(sine == 0, hnp.nan, reflected), y)
    return hnp.where(x == 0, 1 / x, hnp.where(x == -hnp.inf, hnp.nan, y))


@strong
def gamma(x: Any) -> Array:
    """The gamma function: NaN at negative integers; at 0 infinite with the zero's sign, for complex numbers NaN.

    >>> gamma(5.0)
    Array(24., dtype=float32)
    """
    x = inexact(x)
    if not is_complex(x.type.dtype):
        return _gamma(x)
    pole = (x.imag == 0) & (x.real <= 0) & (x.real == hnp.floor(x.real))
    return hnp.where(pole, complex(math.nan, math.nan), hnp.exp(_loggamma(x)))


@free_promotion
def gammasgn(x: Any) -> Array:
    """The sign of ``gamma(x)``; at 0 the sign of the zero, NaN at negative integers and -inf.

    >>> gammasgn(-0.5)
    Array(-1., dtype=float32)
    """
    (x,) = floats("gammasgn", x)
    floor = hnp.floor(x)
    sign = hnp.where(floor % 2 == 0, hnp.ones_like(x), -1)
    sign = hnp.where(x < 0, hnp.where(x == floor, hnp.nan, sign), hnp.copysign(1.0, x))
    return hnp.where(hnp.isnan(x), x, sign).astype(x.dtype)


def _loggamma_right(z: Any) -> Any:
    """log Gamma(z) for Re z >= 1/2: Stirling's formula at z + SHIFT minus the logarithms of z to z + SHIFT - 1."""
    w = z + SHIFT
    y = (w - 0.5) * hnp.log(w) - w + 0.5 * math.log(2 * math.pi) + _correction(w)
    return y - sum(hnp.log(z + k) for k in range(SHIFT))


@free_promotion
def _loggamma(z: Any) -> Any:
    """log Gamma(z) by reflection, with the branch of the sine's logarithm continuous in the upper half-plane, and
    conjugation.
    """
    lower = hnp.signbit(z.imag)
    upper = hnp.where(lower, z.conj(), z)
    left = upper.real < 0.5
    y = _loggamma_right(hnp.where(left, 1 - upper, upper))
    reduced = hnp.where(left, upper, 0.5)
    angle = 2j * math.pi * (reduced - hnp.round(reduced.real))
    near = hnp.abs(angle) < 1  # a pole: 1 - e^angle is exact there as expm1
    log_rest = hnp.log1p(-hnp.exp(hnp.where(near, 1j * math.pi, angle)))
    log_rest = hnp.where(near, hnp.log(-hnp.expm1(hnp.where(near, angle, 1j))), log_rest)
    log_sine = math.pi * 1j * (0.5 - reduced) - math.log(2.0) + log_rest
    y = hnp.where(left, math.log(math.pi) - log_sine - y, y)
    return hnp.where(lower, y.conj(), y)


def loggamma(x: Any) -> Array:
    """The logarithm of the gamma function, real on the positive axis and continuous except for a branch cut on the
    negative axis.

    Real numbers below 0 give NaN.

    >>> from handlax.numpy import array
    >>> loggamma(array([1.0, 2.0, -1.0])).round(4)
    Array([ 0.,  0., nan], dtype=float32)
    """
    x = inexact(x)
    if is_complex(x.type.dtype):
        return _loggamma(x)
    return hnp.where(x < 0, hnp.nan, gammaln(x)).astype(x.dtype)


def _rise(z: Any, m: Any) -> Any:
    """log(Gamma(z + m) / Gamma(z)) - m log(z + m) for z and z + m >= SHIFT, a number near -m, by Stirling's formula."""
    return (z - 0.5) * hnp.log1p(m / z) - m + _correction(z + m) - _correction(z)


def _betaln_far(a: Any, b: Any) -> Any:
    """log |B(a, b)| for a <= b and b, a + b >= SHIFT, without cancellation."""
    both = a >= SHIFT
    large, small = hnp.where(both, a, SHIFT), hnp.where(both, 1, a)
    ratio = large / b
    far = (
        0.5 * math.log(2 * math.pi) - 0.5 * hnp.log(b) + _correction(large) + _correction(b) - _correction(large + b)
        + (large - 0.5) * hnp.log(ratio / (1 + ratio)) - b * hnp.log1p(ratio)
    )
    mixed = operations.lgamma(small) - _rise(b, small) - small * hnp.log(small + b)
    return hnp.where(both, far, mixed)


@analytic(
    lambda y, a, b: operations.digamma(a) - operations.digamma(a + b),
    lambda y, a, b: operations.digamma(b) - operations.digamma(a + b),
)
def betaln(a: Any, b: Any) -> Array:
    """``log(abs(beta(a, b)))``, accurate also for large arguments. Source: Didonato & Morris 1992, algorithm 708.

    >>> betaln(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    a, b = hnp.broadcast_arrays(a, b)
    low, high = hnp.minimum(a, b), hnp.maximum(a, b)
    far = (low + high >= SHIFT) & (high >= SHIFT) & (high < hnp.inf)
    direct = operations.lgamma(low) + operations.lgamma(high) - operations.lgamma(low + high)
    y = hnp.where(far, _betaln_far(hnp.where(far, low, 1), hnp.where(far, high, SHIFT)), direct)
    pole = ((a <= 0) & (a == hnp.floor(a))) | ((b <= 0) & (b == hnp.floor(b)))
    y = hnp.where(pole & ~hnp.isnan(a + b), hnp.inf, y)
    return hnp.where((low > 0) & (high == hnp.inf), -hnp.inf, y)


@free_promotion
def beta(a: Any, b: Any) -> Array:
    """``gamma(a) * gamma(b) / gamma(a + b)``.

    >>> beta(1.0, 1.0)
    Array(1., dtype=float32)
    """
    a, b = floats("beta", a, b)
    size = hnp.exp(betaln(a, b))
    return hnp.where(size == 0, size, gammasgn(a) * gammasgn(b) * gammasgn(a + b) * size)  # 0 at poles of gamma(a + b)


@strong
@free_promotion
def multigammaln(a: Any, d: Any) -> Array:
    """The logarithm of the multivariate gamma function of dimension ``d``.

    It is ``d (d-1)/4 log(pi)`` plus the sum of ``gammaln(a - j/2)`` for j from 0 to ``d - 1``.

    Raises: BadArgument: ``d`` is negative.

    >>> multigammaln(3.0, 1).round(4)
    Array(0.6931, dtype=float32)
    """
    if d < 0:
        raise BadArgument(f"multigammaln: the size must not be negative, got {d}.")
    (a,) = floats("multigammaln", a)
    total = hnp.full_like(a, d * (d - 1) / 4 * math.log(math.pi))
    few = int(d) if d <= _FEW or evaluated_at_once() else 0
    for j in range(few):
        total = total + gammaln(a - j / 2)
    if few == int(d):
        return total
    return fori_loop(0, int(d), lambda j, total: total + gammaln(a - convert(j, a.dtype, a.weak_type) / 2), total)


@free_promotion
def factorial(n: Any, exact: bool = False) -> Array:
    """``gamma(n + 1)``, and 0 for negative ``n``.

    Raises: BadArgument: ``exact``, as integers of any size are no arrays.

    >>> from handlax.numpy import array
    >>> factorial(array([-1.0, 0.0, 4.0]))
    Array([ 0.,  1., 24.], dtype=float32)
    """
    if exact:
        raise BadArgument(
            f"factorial: exact must be False, got {exact!r}.", hint="math.factorial is exact, of one number."
        )
    (n,) = floats("factorial", n)
    return in_32_bits(lambda n: hnp.where(n < 0, 0, gamma(hnp.where(n < 0, 0, n) + 1)), n).astype(n.dtype)


def _largest_gamma(x: Any) -> float:
    """The largest argument at which the gamma function is finite in the dtype of ``x``."""
    return 170.0 if x.dtype.itemsize == 8 else 34.0


@free_promotion
def comb(N: Any, k: Any, *, repetition: bool = False) -> Array:
    """The binomial coefficient "N choose k"; 0 where ``k > N`` or one is negative. Integers become floats.

    With ``repetition``, the number of multisets: elements may be chosen several times.

    >>> comb(4, 2)
    Array(6., dtype=float32)
    """
    N, k = floats("comb", N, k)
    return in_32_bits(lambda N, k: _comb(N, k, repetition), N, k).astype(N.dtype)


def _comb(N: Any, k: Any, repetition: bool) -> Any:
    """``comb`` of floats of one dtype."""
    if repetition:
        N = N + k - 1
    inside = (k >= 0) & (k <= N) & (N >= 0)
    n, r = hnp.where(inside, N, 0), hnp.where(inside, k, 0)
    whole = (n == hnp.floor(n)) & (r == hnp.floor(r)) & (n < _largest_gamma(n))
    top, chosen = hnp.where(whole, n, 1), hnp.where(whole, r, 0)
    direct = gamma(top + 1) / gamma(chosen + 1) / gamma(top - chosen + 1)
    y = hnp.where(whole, direct, hnp.exp(-betaln(1 + n - r, 1 + r)) / (n + 1))
    none = (N + 1 - k == 0) & (k == 0) if repetition else False  # of nothing there is one way to choose nothing
    return hnp.where(inside, y, hnp.where(none, 1.0, 0.0)).astype(N.dtype)


def _pochhammer(z: Any, m: Any) -> Any:
    """Gamma(z + m) / Gamma(z), by the two values where they are finite, else by their logarithms."""
    limit = _largest_gamma(z)
    small = (hnp.abs(z) < limit) & (hnp.abs(z + m) < limit)
    large = ~small & (z >= SHIFT) & (z + m >= SHIFT) & (z < hnp.inf)
    direct = gamma(hnp.where(small, z + m, 1)) / gamma(hnp.where(small, z, 1))
    base, power = hnp.where(large, z, SHIFT), hnp.where(large, m, 0)
    root = hnp.power(base + power, power / 2)  # no factor is larger than the product
    risen = root * hnp.exp(_rise(base, power)) * root
    by_logs = gammasgn(z + m) * gammasgn(z) * hnp.exp(gammaln(z + m) - gammaln(z))
    return hnp.where(small, direct, hnp.where(large, risen, by_logs))


@free_promotion
def _poch(z: Any, m: Any) -> Any:
    """``poch``, also where ``z`` and ``z + m`` are poles of the gamma function."""
    pole = (z <= 0) & (z == hnp.floor(z)) & (m == hnp.floor(m))
    falling = ~pole & (z < 0.5) & (m < 0) & (m == hnp.floor(m))  # z + m may be rounded to a pole: by reflection
    y = _pochhammer(hnp.where(pole, 1, hnp.where(falling, 1 - z, z)), hnp.where(falling, -m, m))
    y = hnp.where(falling, hnp.where(m % 2 == 0, 1, -1) / y, y)
    both = pole & (z + m <= 0)
    mirrored = hnp.where(m % 2 == 0, 1, -1) * _pochhammer(hnp.where(both, 1 - z - m, 1), hnp.where(both, m, 0))
    y = hnp.where(both, mirrored, hnp.where(pole, 0, y))
    return hnp.where((m == 0) & ~hnp.isfinite(z), 1, y).astype(z.dtype)


@strong
def poch(z: Any, m: Any) -> Array:
    """Pochhammer's symbol ``gamma(z + m) / gamma(z)``, the rising factorial; also where both are infinite.

    >>> poch(2.0, 0.0)
    Array(1., dtype=float32)
    """
    z, m = floats("poch", z, m)
    return in_32_bits(_poch, z, m)


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers ``B_0`` to ``B_n``; ``B_1`` is -1/2.

    >>> bernoulli(2).tolist()
    [1.0, -0.5, 0.1666666716337204]
    """
    if not isinstance(n, int) or n < 0:
        raise BadArgument(f"bernoulli: n must be a natural number, got {n!r}.")
    even = np.arange(2.0, n + 1, 2)  # B_k = -(-1)^(k/2) 2 k! zeta(k) / (2 pi)^k for even k
    factorials = errors_ignored(np.cumprod, even * (even - 1) / (4 * np.pi**2))  # k! / (2 pi)^k
    sizes = 2 * factorials * scipy_special("zeta")(even, np.ones_like(even))
    numbers = np.zeros(n + 1)
    numbers[:2] = (1.0, -0.5)[: n + 1]
    numbers[2::2] = np.where(even % 4 == 0, -sizes, sizes)
    return hnp.asarray(numbers, default_float())


programs(globals(), direct=("betaln", "gamma"))
