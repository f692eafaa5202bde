"""Every public function of one array, elementwise: the compiled value is the eager one, whatever the number is.

Values are compared to a few ulps of their size; NaN, infinities and, of real numbers, signs of zeros exactly.
"""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp
from handlax.scipy import special

ULPS = 128  # complex gamma is e to a number of which each ulp counts
BRANCHES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 30.0, -100.0, 1e4)
SPECIAL = (*BRANCHES, -0.5, 2.0, 3.0, 1e-3, -10.0, np.pi, np.inf, -np.inf, np.nan)
OF_ONE = {"digamma", "gamma", "gammaln", "lgamma", "loggamma", "gelu", "log1mexp"}  # errors are those of a larger term
OF_SHAPES = {"broadcast_shapes", "shape_as_value", "trim_zeros"}  # these read their argument while they are traced
OVERFLOWING = {"one_minus_square", "mish", "loggamma", "hard_silu", "silu"}  # complex products are infinite or NaN


def functions(dtype):
    """The functions by their names, each once; those whose value at an element depends on others are left out."""
    seen = set()
    for module in (lax, special, hnp, nn):
        for name in sorted(set(getattr(module, "__all__", dir(module))) - OF_SHAPES):
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type) and f not in seen and _is_elementwise(f, dtype):
                seen.add(f)
                yield name, f


def _is_elementwise(f, dtype):
    x = np.array([3, 1, 0, 2, 1]).astype(dtype)
    try:
        whole, part, backwards = (np.asarray(f(v)) for v in (x, x[:2], x[::-1]))
    except (AttributeError, TypeError, ValueError, LookupError, RuntimeError, NotImplementedError):
        return False
    if whole.shape != x.shape or whole.dtype.kind not in "biufc":
        return False
    return whole[:2].tobytes() == part.tobytes() and whole[::-1].tobytes() == backwards.tobytes()


def points(dtype):
    """Special values, both ends of the range, and numbers of every size; of complex numbers all pairs."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.min + 1, 0, 1, 2, 3, 5, 7, 10, 20, 100, info.max - 1, info.max], dtype)
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    ends = [float(info.max), -float(info.max) / 2, float(info.eps), 1 + float(info.eps)]
    if dtype.kind == "c":
        parts = [*BRANCHES, np.inf, -np.inf, np.nan, *ends]
        pairs = [complex(*pair) for pair in itertools.product(parts, parts)]
        return np.array([*pairs, *(rng.normal(size=(60, 2)) * 3).view(complex).ravel()], dtype)
    sizes = np.exp(rng.uniform(np.log(float(info.tiny)), np.log(float(info.max)), 60))
    usual = np.exp(rng.uniform(np.log(1e-3), np.log(50.0), 100))
    return np.array([*SPECIAL, *ends, -ends[0], *sizes, *-sizes, *usual, *-usual], dtype)


def differences(f, x, floor):
    """The places where the compiled value is not the eager one; errors are those of at least ``floor``."""
    eager, compiled = (np.asarray(y) for y in (f(hnp.asarray(x)), hx.jit(f)(x)))
    if eager.dtype.kind in "biu":
        return eager != compiled
    info = np.finfo(eager.dtype)
    bound = ULPS * float(info.eps) * np.maximum(np.maximum(abs(eager), abs(compiled)), floor) + 4 * float(info.tiny)
    if eager.dtype.kind == "f":
        zeros = (eager == 0) & (compiled == 0)
        return ~_close(eager, compiled, bound) | zeros & (np.signbit(eager) != np.signbit(compiled))
    undefined = np.isnan(eager) & np.isnan(compiled)  # which of the parts of an overflow are NaN is left open
    return ~(undefined | _close(eager.real, compiled.real, bound) & _close(eager.imag, compiled.imag, bound))


def _close(a, b, bound):
    """Parts of values: equal, both NaN or, where the other part is infinite, finite and near each other."""
    bound = np.where(np.isinf(bound), ULPS * np.finfo(a.dtype).eps * abs(a), bound)
    return (a == b) | (abs(a - b) <= bound) | (np.isnan(a) & np.isnan(b))


@pytest.mark.sweep
@pytest.mark.parametrize("code", ["i1", "u1", "i4", "i8", "u8", "f4", "f8", "c8", "c16"])
def test_compiled_values_are_those_of_eager_calls(code):
    dtype, found = np.dtype(code), {}
    for name, f in functions(dtype):
        x = points(dtype)
        if dtype.kind == "c" and name in OVERFLOWING:
            x = x[~(abs(x) > np.sqrt(np.finfo(dtype).max))]
        with np.errstate(all="ignore"):
            wrong = differences(f, x, 1.0 if name in OF_ONE else 0.0)
        if wrong.any():
            found[name] = x[wrong][:3].tolist()
    assert found == {}
