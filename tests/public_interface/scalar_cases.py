"""Every public function that takes a number beside an array, called with a float (``FLOATS``) or an integer.

``x`` is an array of 64 bits, ``s`` the number, or an array of rank 0 of the same dtype: the results are equal.
A word after the name says which argument the number is. ``WITHOUT`` lists the functions that take none, by reason.
"""

import numpy as np

from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.nn import initializers

KEY = random.key(0)
POINT = lax.ScatterDimensionNumbers((), (0,), (0,))
GATHER = lax.GatherDimensionNumbers((), (0,), (0,))


def _square(x):
    return hnp.reshape(x, (2, 2))


def _outside(x):
    return hnp.array([[9]], "int32")


_ARITHMETIC = (
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "mod", "remainder", "fmod", "divmod",
    "power", "pow", "float_power", "arctan2", "atan2", "hypot", "nextafter", "logaddexp", "logaddexp2",
    "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal",
)
_INTEGER_ARITHMETIC = (
    "add", "subtract", "multiply", "floor_divide", "mod", "remainder", "fmod", "divmod", "maximum", "minimum", "fmax",
    "fmin", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or",
    "bitwise_xor", "gcd", "lcm", "true_divide", "divide", "float_power",
)
_LAX = (
    "add", "sub", "mul", "div", "rem", "pow", "atan2", "nextafter", "max", "min", "eq", "ne", "lt", "le", "gt", "ge",
)
_LAX_INTEGER = (
    "add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or",
    "bitwise_xor", "mulhi",
)


def _both(module, name):
    """The calls with the number second and first; a base is positive."""
    f = getattr(module, name)
    prefix = module.__name__.removeprefix("handlax.")
    base = abs if "pow" in name else lambda x: x
    return {
        f"{prefix}.{name} second": lambda x, s: f(base(x), s),
        f"{prefix}.{name} first": lambda x, s: f(s, x),
    }


def _shifted(module, name):
    f = getattr(module, name)
    return lambda x, s: f(s, x % 8)


def _operators():
    symbols = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
        "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "pow": lambda x, y: abs(x) ** y,
        "eq": lambda x, y: x == y, "lt": lambda x, y: x < y, "divmod": divmod,
    }
    right = {f"operator.{name}": f for name, f in symbols.items()}
    left = {f"operator.r{name}": lambda x, s, f=f: f(s, x) for name, f in symbols.items() if name not in ("eq", "lt")}
    return right | left


FLOATS = {
    **_operators(),
    **{key: call for name in _ARITHMETIC for key, call in _both(hnp, name).items()},
    **{key: call for name in _LAX for key, call in _both(lax, name).items()},
    "numpy.copysign": lambda x, s: hnp.copysign(s, x),
    "numpy.heaviside": lambda x, s: hnp.heaviside(x - x, s),
    "Array.at set": lambda x, s: x.at[0].set(s),
    "Array.at set slice": lambda x, s: x.at[1:3].set(s),
    "Array.at set mask": lambda x, s: x.at[x > 0].set(s),
    "Array.at add": lambda x, s: x.at[0].add(s),
    "Array.at subtract": lambda x, s: x.at[0].subtract(s),
    "Array.at mul": lambda x, s: x.at[0].mul(s),
    "Array.at multiply": lambda x, s: x.at[0].multiply(s),
    "Array.at divide": lambda x, s: x.at[0].divide(s),
    "Array.at power": lambda x, s: abs(x).at[0].power(s),
    "Array.at min": lambda x, s: x.at[3].min(s),
    "Array.at max": lambda x, s: x.at[1].max(s),
    "Array.at get fill": lambda x, s: x.at[hnp.array([9])].get(mode="fill", fill_value=s),
    "Array.at apply": lambda x, s: x.at[x > 0].apply(lambda _: s),
    "Array.at set sequence": lambda x, s: x.at[:2].set([s, s]),
    "Array.clip": lambda x, s: x.clip(s),
    "Array.clip max": lambda x, s: x.clip(max=s),
    "Array.max": lambda x, s: (x - 9).max(initial=s),
    "Array.min": lambda x, s: (x + 9).min(initial=s),
    "Array.sum": lambda x, s: x.sum(initial=s),
    "Array.prod": lambda x, s: x.prod(initial=s),
    "Array.take": lambda x, s: x.take(hnp.array([9]), mode="fill", fill_value=s),
    "Array.compress": lambda x, s: x.compress(x > 2, size=3, fill_value=s),
    "Array.choose": lambda x, s: hnp.array([0, 1, 0, 1]).choose([x, s]),
    "Array.searchsorted": lambda x, s: hnp.sort(x).searchsorted(s),
    "numpy.allclose b": lambda x, s: hnp.allclose(x[0], s, 0.0, 0.0),
    "numpy.allclose a": lambda x, s: hnp.allclose(s, x[0], 0.0, 0.0),
    "numpy.allclose rtol": lambda x, s: hnp.allclose(1 + x[0], 1.0, s, 0.0),
    "numpy.amax": lambda x, s: hnp.amax(x - 9, initial=s),
    "numpy.amin": lambda x, s: hnp.amin(x + 9, initial=s),
    "numpy.append": lambda x, s: hnp.append(x, s),
    "numpy.array_equal": lambda x, s: hnp.array_equal(x[0], s),
    "numpy.array_equiv": lambda x, s: hnp.array_equiv(x[:1], s),
    "numpy.average": lambda x, s: hnp.average(x, weights=hnp.full_like(x, s)),
    "numpy.choose": lambda x, s: hnp.choose(hnp.array([0, 1, 0, 1]), [x, s]),
    "numpy.clip": lambda x, s: hnp.clip(x, s),
    "numpy.clip max": lambda x, s: hnp.clip(x, None, s),
    "numpy.clip both": lambda x, s: hnp.clip(x, -s, s),
    "numpy.compress": lambda x, s: hnp.compress(x > 2, x, size=3, fill_value=s),
    "numpy.diff prepend": lambda x, s: hnp.diff(x, prepend=s),
    "numpy.diff append": lambda x, s: hnp.diff(x, append=s),
    "numpy.digitize": lambda x, s: hnp.digitize(s, hnp.sort(x)),
    "numpy.dot": lambda x, s: hnp.dot(x, s),
    "numpy.dot first": lambda x, s: hnp.dot(s, x),
    "numpy.ediff1d": lambda x, s: hnp.ediff1d(x, to_end=s),
    "numpy.ediff1d begin": lambda x, s: hnp.ediff1d(x, to_begin=s),
    "numpy.einsum": lambda x, s: hnp.einsum("i,->i", x, s),
    "numpy.extract": lambda x, s: hnp.extract(x > 2, x, size=3, fill_value=s),
    "numpy.fill_diagonal": lambda x, s: hnp.fill_diagonal(_square(x), s, inplace=False),
    "numpy.full": lambda x, s: hnp.full(3, s, x.dtype),
    "numpy.full_like": lambda x, s: hnp.full_like(x, s),
    "numpy.geomspace start": lambda x, s: hnp.geomspace(s, 2, 3, dtype=x.dtype),
    "numpy.geomspace stop": lambda x, s: hnp.geomspace(x[3], s, 3),
    "numpy.gradient": lambda x, s: hnp.gradient(x, s),
    "numpy.gradient coordinates": lambda x, s: hnp.gradient(_square(x), s, 2 * s),
    "numpy.histogram": lambda x, s: hnp.histogram(x, 3, range=(s, 1)),
    "numpy.histogram2d": lambda x, s: hnp.histogram2d(x, x, 3, range=((s, 1), (0, s))),
    "numpy.histogram_bin_edges": lambda x, s: hnp.histogram_bin_edges(x, 3, range=(0, s)),
    "numpy.histogramdd": lambda x, s: hnp.histogramdd(hnp.stack([x, x], 1), 3, range=((s, 1), (0, s))),
    "numpy.inner": lambda x, s: hnp.inner(x, s),
    "numpy.insert": lambda x, s: hnp.insert(x, 0, s),
    "numpy.interp x": lambda x, s: hnp.interp(s, hnp.sort(x), x),
    "numpy.interp left": lambda x, s: hnp.interp(-9.0, hnp.sort(x), x, left=s),
    "numpy.interp right": lambda x, s: hnp.interp(9.0, hnp.sort(x), x, right=s),
    "numpy.interp period": lambda x, s: hnp.interp(x / 3, x, x, period=s),
    "numpy.intersect1d": lambda x, s: hnp.intersect1d(x, s),
    "numpy.intersect1d fill": lambda x, s: hnp.intersect1d(x, -x, size=2, fill_value=s),
    "numpy.isclose": lambda x, s: hnp.isclose(x, s, 0.0, 0.0),
    "numpy.isclose atol": lambda x, s: hnp.isclose(x, x + x[0], 0.0, s),
    "numpy.isin": lambda x, s: hnp.isin(x, s),
    "numpy.isin element": lambda x, s: hnp.isin(s, x),
    "numpy.kron": lambda x, s: hnp.kron(x, s),
    "numpy.linspace start": lambda x, s: hnp.linspace(s, 1, 3, dtype=x.dtype),
    "numpy.linspace stop": lambda x, s: hnp.linspace(x[3], s, 3),
    "numpy.logspace": lambda x, s: hnp.logspace(s, 1, 3, dtype=x.dtype),
    "numpy.logspace base": lambda x, s: hnp.logspace(x[1], 1, 3, base=s),
    "numpy.max": lambda x, s: hnp.max(x - 9, initial=s),
    "numpy.minmax": lambda x, s: hnp.minmax(x - 9, initial=(9.0, s))[1],
    "numpy.min": lambda x, s: hnp.min(x + 9, initial=s),
    "numpy.nan_to_num": lambda x, s: hnp.nan_to_num(x / 0 * 0, nan=s),
    "numpy.nan_to_num inf": lambda x, s: hnp.nan_to_num(x / 0, posinf=s, neginf=s),
    "numpy.nanmax": lambda x, s: hnp.nanmax(x - 9, initial=s),
    "numpy.nanmin": lambda x, s: hnp.nanmin(x + 9, initial=s),
    "numpy.nanpercentile": lambda x, s: hnp.nanpercentile(x, s),
    "numpy.nanprod": lambda x, s: hnp.nanprod(x, initial=s),
    "numpy.nanquantile": lambda x, s: hnp.nanquantile(x, s),
    "numpy.nansum": lambda x, s: hnp.nansum(x, initial=s),
    "numpy.nanstd": lambda x, s: hnp.nanstd(x, mean=s),
    "numpy.nanvar": lambda x, s: hnp.nanvar(x, mean=s),
    "numpy.nanvar ddof": lambda x, s: hnp.nanvar(x, ddof=s),
    "numpy.outer": lambda x, s: hnp.outer(x, s),
    "numpy.pad": lambda x, s: hnp.pad(x, 1, constant_values=s),
    "numpy.pad sequence": lambda x, s: hnp.pad(x, 1, constant_values=(s, -s)),
    "numpy.pad ramp": lambda x, s: hnp.pad(x, 3, "linear_ramp", end_values=s),
    "numpy.array_equal sequence": lambda x, s: hnp.array_equal(x[:1], [s]),
    "numpy.block": lambda x, s: hnp.block([x, s]),
    "numpy.column_stack": lambda x, s: hnp.column_stack([x[:1], s]),
    "numpy.dstack": lambda x, s: hnp.dstack([x[0], s]),
    "numpy.hstack": lambda x, s: hnp.hstack([x, s]),
    "numpy.vstack": lambda x, s: hnp.vstack([x[0], s]),
    "numpy.vstack dtype": lambda x, s: hnp.vstack([1.0, s], dtype=x.dtype),
    "numpy.stack": lambda x, s: hnp.stack([x[0], s]),
    "numpy.array": lambda x, s: hnp.array([[x[0], s], [s, s]]),
    "numpy.asarray": lambda x, s: hnp.asarray(s, x.dtype),
    "numpy.nan_to_num sequence": lambda x, s: hnp.nan_to_num(x / 0 * 0, nan=[s, s, s, s]),
    "numpy.quantile sequence": lambda x, s: hnp.quantile(x, [s, s]),
    "numpy.percentile": lambda x, s: hnp.percentile(x, s),
    "numpy.piecewise": lambda x, s: hnp.piecewise(x, [x > 0], [s, -s]),
    "numpy.place": lambda x, s: hnp.place(x, x > 0, s, inplace=False),
    "numpy.polyadd": lambda x, s: hnp.polyadd(x, s),
    "numpy.polydiv": lambda x, s: hnp.polydiv(x, s),
    "numpy.polyint": lambda x, s: hnp.polyint(x, k=s),
    "numpy.polymul": lambda x, s: hnp.polymul(x, s),
    "numpy.polysub": lambda x, s: hnp.polysub(x, s),
    "numpy.polyval": lambda x, s: hnp.polyval(x, s),
    "numpy.prod": lambda x, s: hnp.prod(x, initial=s),
    "numpy.put": lambda x, s: hnp.put(x, 0, s, inplace=False),
    "numpy.put_along_axis": lambda x, s: hnp.put_along_axis(x, hnp.array([0]), s, 0, inplace=False),
    "numpy.quantile": lambda x, s: hnp.quantile(x, s),
    "numpy.searchsorted": lambda x, s: hnp.searchsorted(hnp.sort(x), s),
    "numpy.select": lambda x, s: hnp.select([x > 0], [x], s),
    "numpy.select choice": lambda x, s: hnp.select([x > 0, x < 0], [s, x]),
    "numpy.setdiff1d": lambda x, s: hnp.setdiff1d(x, s),
    "numpy.setdiff1d fill": lambda x, s: hnp.setdiff1d(x, x[:2], size=3, fill_value=s),
    "numpy.setxor1d": lambda x, s: hnp.setxor1d(x, s),
    "numpy.setxor1d fill": lambda x, s: hnp.setxor1d(x, x[:2], size=3, fill_value=s),
    "numpy.std": lambda x, s: hnp.std(x, mean=s),
    "numpy.std correction": lambda x, s: hnp.std(x, correction=s),
    "numpy.sum": lambda x, s: hnp.sum(x, initial=s),
    "numpy.take": lambda x, s: hnp.take(x, hnp.array([9]), mode="fill", fill_value=s),
    "numpy.take_along_axis": lambda x, s: hnp.take_along_axis(x, hnp.array([9]), 0, mode="fill", fill_value=s),
    "numpy.tensordot": lambda x, s: hnp.tensordot(x, s, 0),
    "numpy.trapezoid": lambda x, s: hnp.trapezoid(x, dx=s),
    "numpy.union1d": lambda x, s: hnp.union1d(x, s),
    "numpy.union1d fill": lambda x, s: hnp.union1d(x, x, size=6, fill_value=s),
    "numpy.unique": lambda x, s: hnp.unique(x, size=6, fill_value=s),
    "numpy.unique_all": lambda x, s: hnp.unique_all(x, size=6, fill_value=s),
    "numpy.unique_counts": lambda x, s: hnp.unique_counts(x, size=6, fill_value=s),
    "numpy.unique_inverse": lambda x, s: hnp.unique_inverse(x, size=6, fill_value=s),
    "numpy.unique_values": lambda x, s: hnp.unique_values(x, size=6, fill_value=s),
    "numpy.unwrap": lambda x, s: hnp.unwrap(x, period=s),
    "numpy.unwrap discont": lambda x, s: hnp.unwrap(hnp.stack([x[0], 2 * x[0]]), discont=s, period=x[0] / 100),
    "numpy.var": lambda x, s: hnp.var(x, mean=s),
    "numpy.var ddof": lambda x, s: hnp.var(x, ddof=s),
    "numpy.vdot": lambda x, s: hnp.vdot(x[0], s),
    "numpy.where": lambda x, s: hnp.where(x > 0, x, s),
    "numpy.where first": lambda x, s: hnp.where(x > 0, s, x),
    "lax.betainc": lambda x, s: lax.betainc(s, abs(x), abs(x) / 3),
    "lax.clamp": lambda x, s: lax.clamp(s, x, 2.0),
    "lax.clamp max": lambda x, s: lax.clamp(-2.0, x, s),
    "lax.complex": lambda x, s: lax.complex(x, s),
    "lax.convert_element_type": lambda x, s: lax.convert_element_type(s, x.dtype),
    "lax.full": lambda x, s: lax.full((3,), s, x.dtype),
    "lax.full_like": lambda x, s: lax.full_like(x, s),
    "lax.gather": lambda x, s: lax.gather(x, _outside(x), GATHER, (1,), mode="fill", fill_value=s),
    "lax.igamma": lambda x, s: lax.igamma(s, abs(x)),
    "lax.igamma_grad_a": lambda x, s: lax.igamma_grad_a(s, abs(x)),
    "lax.igammac": lambda x, s: lax.igammac(s, abs(x)),
    "lax.pad": lambda x, s: lax.pad(x, s, [(1, 1, 0)]),
    "lax.polygamma": lambda x, s: lax.polygamma(1.0, x + s),
    "lax.polygamma x": lambda x, s: lax.polygamma(abs(x).round() + 1, s),
    "lax.polynomial": lambda x, s: lax.polynomial(x, [1.0, s, 2.0]),
    "lax.random_gamma_grad": lambda x, s: lax.random_gamma_grad(s, abs(x)),
    "lax.reduce": lambda x, s: lax.reduce(x, s, lax.add, (0,)),
    "lax.scatter": lambda x, s: lax.scatter(x, np.array([0]), s, POINT),
    "lax.scatter_add": lambda x, s: lax.scatter_add(x, np.array([0]), s, POINT),
    "lax.scatter_apply": lambda x, s: lax.scatter_apply(x, np.array([0]), lambda y: y * s, POINT),
    "lax.scatter_max": lambda x, s: lax.scatter_max(x, np.array([1]), s, POINT),
    "lax.scatter_min": lambda x, s: lax.scatter_min(x, np.array([3]), s, POINT),
    "lax.scatter_mul": lambda x, s: lax.scatter_mul(x, np.array([0]), s, POINT),
    "lax.scatter_sub": lambda x, s: lax.scatter_sub(x, np.array([0]), s, POINT),
    "lax.select": lambda x, s: lax.select(x > 0, x, s),
    "lax.select_n": lambda x, s: lax.select_n(x > 0, s, x),
    "lax.zeta": lambda x, s: lax.zeta(abs(x) + 2, s),
    "lax.dynamic_update_slice": lambda x, s: lax.dynamic_update_slice(x[0], s, ()),
    "lax.dynamic_update_index_in_dim": lambda x, s: lax.dynamic_update_index_in_dim(x, s, 0, 0),
    "nn.celu": lambda x, s: nn.celu(x, s),
    "nn.elu": lambda x, s: nn.elu(x, s),
    "nn.leaky_relu": lambda x, s: nn.leaky_relu(x, s),
    "nn.logsumexp": lambda x, s: nn.logsumexp(x, b=s),
    "nn.squareplus": lambda x, s: nn.squareplus(x, s),
    "nn.standardize": lambda x, s: nn.standardize(x, epsilon=s),
    "nn.standardize mean": lambda x, s: nn.standardize(x, mean=s),
    "nn.standardize variance": lambda x, s: nn.standardize(x, variance=s),
    "nn.initializers.constant": lambda x, s: initializers.constant(s, x.dtype)(KEY, (2,)),
    "nn.initializers.normal": lambda x, s: initializers.normal(s, x.dtype)(KEY, (2,)),
    "nn.initializers.truncated_normal": lambda x, s: initializers.truncated_normal(s, x.dtype)(KEY, (2,)),
    "nn.initializers.truncated_normal lower": lambda x, s: initializers.truncated_normal(1, x.dtype, s)(KEY, (2,)),
    "nn.initializers.uniform": lambda x, s: initializers.uniform(s, x.dtype)(KEY, (2,)),
    "nn.initializers.variance_scaling":
        lambda x, s: initializers.variance_scaling(s, "fan_in", "normal", dtype=x.dtype)(KEY, (2, 2)),
    "random.beta a": lambda x, s: random.beta(KEY, s, 2.0, (3,), x.dtype),
    "random.beta b": lambda x, s: random.beta(KEY, 2.0, s, (3,), x.dtype),
    "random.chisquare": lambda x, s: random.chisquare(KEY, s, (3,), x.dtype),
    "random.dirichlet": lambda x, s: random.dirichlet(KEY, hnp.stack([x[0], x[3]]) + s, (3,), x.dtype),
    "random.double_sided_maxwell": lambda x, s: random.double_sided_maxwell(KEY, s, s, (3,), x.dtype),
    "random.f": lambda x, s: random.f(KEY, s, s, (3,), x.dtype),
    "random.ball": lambda x, s: random.ball(KEY, 2, s, (3,), x.dtype),
    "random.gamma": lambda x, s: random.gamma(KEY, s, (3,), x.dtype),
    "random.generalized_normal": lambda x, s: random.generalized_normal(KEY, s, (3,), x.dtype),
    "random.loggamma": lambda x, s: random.loggamma(KEY, s, (3,), x.dtype),
    "random.lognormal": lambda x, s: random.lognormal(KEY, s, (3,), x.dtype),
    "random.pareto": lambda x, s: random.pareto(KEY, s, (3,), x.dtype),
    "random.rayleigh": lambda x, s: random.rayleigh(KEY, s, (3,), x.dtype),
    "random.t": lambda x, s: random.t(KEY, s, (3,), x.dtype),
    "random.triangular": lambda x, s: random.triangular(KEY, -s, s, 2 + s, (3,), x.dtype),
    "random.truncated_normal": lambda x, s: random.truncated_normal(KEY, -s, s, (3,), x.dtype),
    "random.uniform": lambda x, s: random.uniform(KEY, (3,), x.dtype, -s, s),
    "random.wald": lambda x, s: random.wald(KEY, s, (3,), x.dtype),
    "random.weibull_min": lambda x, s: random.weibull_min(KEY, s, s, (3,), x.dtype),
}

INTEGERS = {
    **{key: call for name in _INTEGER_ARITHMETIC for key, call in _both(hnp, name).items()},
    **{key: call for name in _LAX_INTEGER for key, call in _both(lax, name).items()},
    **{f"numpy.{name}": _shifted(hnp, name)
       for name in ("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift")},
    **{f"lax.{name}": _shifted(lax, name)
       for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")},
    "operator.and": lambda x, s: x & s,
    "operator.ror": lambda x, s: s | x,
    "operator.rshift": lambda x, s: s >> (x % 8),
    "Array.at set": lambda x, s: x.at[0].set(s),
    "Array.at add": lambda x, s: x.at[0].add(s),
    "numpy.arange": lambda x, s: hnp.arange(s, s + 2, dtype=x.dtype),
        "numpy.append": lambda x, s: hnp.append(x, s),
    "numpy.clip": lambda x, s: hnp.clip(x, s),
    "numpy.full": lambda x, s: hnp.full(3, s, x.dtype),
    "numpy.full_like": lambda x, s: hnp.full_like(x, s),
    "numpy.insert": lambda x, s: hnp.insert(x, 0, s),
    "numpy.isin": lambda x, s: hnp.isin(x, s),
    "numpy.linspace": lambda x, s: hnp.linspace(s, s + 4, 3, dtype=x.dtype),
    "numpy.max": lambda x, s: hnp.max(x - 2**41, initial=s),
    "numpy.min": lambda x, s: hnp.min(x + 2**41, initial=s),
    "numpy.pad": lambda x, s: hnp.pad(x, 1, constant_values=s),
    "numpy.piecewise": lambda x, s: hnp.piecewise(x, [x > 0], [s, -s]),
    "numpy.polyval": lambda x, s: hnp.polyval(x[:2], s),
    "numpy.prod": lambda x, s: hnp.prod(x, initial=s),
    "numpy.searchsorted": lambda x, s: hnp.searchsorted(hnp.sort(x), s),
    "numpy.select": lambda x, s: hnp.select([x > 9], [x], s),
    "numpy.sum": lambda x, s: hnp.sum(x, initial=s),
    "numpy.take": lambda x, s: hnp.take(x, hnp.array([9]), mode="fill", fill_value=s),
    "numpy.unique": lambda x, s: hnp.unique(x, size=6, fill_value=s),
    "numpy.where": lambda x, s: hnp.where(x > 9, x, s),
    "lax.clamp": lambda x, s: lax.clamp(s, x, s + 2),
    "lax.full": lambda x, s: lax.full((3,), s, x.dtype),
    "lax.pad": lambda x, s: lax.pad(x, s, [(1, 1, 0)]),
    "lax.reduce": lambda x, s: lax.reduce(x, s, lax.add, (0,)),
    "lax.select": lambda x, s: lax.select(x > 9, x, s),
    "lax.scatter_add": lambda x, s: lax.scatter_add(x, np.array([0]), s, POINT),
    "random.randint": lambda x, s: random.randint(KEY, (3,), s, s + 9, x.dtype),
}

# functions without a number beside an array, by the reason
WITHOUT = {
    "it takes one array, whose functions it is": """
        numpy: abs absolute acos acosh all angle any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin
        argpartition argsort around asin asinh atan atanh bitwise_count bitwise_invert bitwise_not cbrt ceil conj
        conjugate cos cosh corrcoef count_nonzero cov cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees
        exp exp2 expm1 fabs fix floor frexp i0 imag invert isfinite isinf isnan isneginf isposinf iscomplex isreal
        lexsort log log10 log1p log2 logical_not mean median modf nancumprod nancumsum nanargmax nanargmin nanmean
        nanmedian negative packbits partition poly polyder positive ptp rad2deg radians real reciprocal rint roots round
        sign signbit sin sinc sinh sort sort_complex spacing sqrt square tan tanh top_k trace trunc unpackbits vander
        lax: abs acos acosh approx_max_k approx_min_k argmax argmin asin asinh atan atanh bessel_i0e bessel_i1e
        bitwise_not cbrt ceil clz conj cos cosh cumlogsumexp cummax cummin cumprod cumsum digamma erf erf_inv erfc exp
        exp2 expm1 floor imag integer_pow is_finite lgamma log log1p log2 logistic neg one_minus_square
        population_count real reciprocal reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod
        reduce_sum reduce_xor round rsqrt sign sin sinh sort sqrt square stop_gradient tan tanh top_k
        nn: gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity log1mexp log_sigmoid log_softmax logmeanexp
        mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid swish tanh
        numpy.linalg: cholesky cond det eig eigh eigvals eigvalsh inv matrix_norm matrix_power norm pinv qr slogdet svd
        svdvals tensorinv trace vector_norm
        lax.linalg: cholesky eig eigh geqrf hessenberg lu lu_pivots_to_permutation qdwh qr schur svd tridiagonal
        tridiagonal_solve
    """,
    "it moves elements, by numbers that are positions, counts or sizes": """
        numpy: array_split atleast_1d atleast_2d atleast_3d bincount broadcast_arrays broadcast_shapes broadcast_to copy
        delete diag diag_indices diag_indices_from diagflat diagonal dsplit expand_dims eye flip fliplr flipud hsplit
        identity indices ix_ mask_indices matrix_transpose moveaxis permute_dims ravel ravel_multi_index repeat reshape
        resize roll rollaxis rot90 split squeeze swapaxes tile transpose tri tril tril_indices tril_indices_from
        trim_zeros triu triu_indices triu_indices_from unravel_index unstack vsplit
        lax: DotDimensionNumbers bitcast_convert_type broadcast broadcast_in_dim broadcast_like broadcast_shapes
        broadcast_to_rank
        broadcasted_iota collapse conv_dimension_numbers conv_general_permutations conv_general_shape_tuple
        conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple
            dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim expand_dims index_in_dim
        index_take iota reshape rev slice slice_in_dim split squeeze tile transpose unstack
        numpy.linalg: diagonal matrix_transpose
    """,
    "its numbers are positions, which have the default integer dtype": """
        numpy: argwhere flatnonzero nonzero ldexp
    """,
    "its result is 0, 1, false, true, or a dtype or text": """
        numpy: array2string array_repr array_str can_cast empty empty_like finfo get_printoptions iinfo iscomplexobj
        isdtype isrealobj isscalar issubdtype iterable logical_and logical_or logical_xor ndim ones ones_like
        printoptions promote_types result_type set_printoptions shape size zeros zeros_like
        lax: dtype empty
    """,
    "its operands have a rank of at least 1": """
        numpy: concat concatenate convolve correlate cross matmul matvec polyfit vecdot vecmat
        lax: batch_matmul concatenate conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches
            conv_transpose conv_with_general_padding dot dot_general dynamic_update_slice_in_dim fft ragged_dot
            ragged_dot_general scaled_dot sort_key_val stack
        nn: scaled_matmul
        numpy.linalg: cross lstsq matmul matrix_rank multi_dot outer solve tensordot tensorsolve vecdot
        lax.linalg: cholesky_update householder_product ormqr symmetric_product triangular_solve
        random: multivariate_normal
    """,
    "its arguments are independent of each other": """
        numpy: meshgrid
        lax: after_all create_token dce_sink rng_bit_generator with_sharding_constraint
    """,
    "it converts what it is given, or reads data": """
        numpy: astype from_dlpack frombuffer fromfile fromfunction fromiter fromstring load save savez
        lax: shape_as_value
    """,
    "it calls functions, which promote": """
        numpy: apply_along_axis apply_over_axes einsum_path frompyfunc vectorize
        lax: associative_scan composite cond custom_linear_solve custom_root fori_loop map optimization_barrier
        platform_dependent reduce_window scan stage switch while_loop
    """,
    "it communicates along axes": """
        lax: all_gather all_to_all axis_index axis_size pargmax pargmin pbroadcast pcummax pcummin pcumprod pcumsum pdot
            pcast pgather pmax pmean pmin ppermute pprod pshuffle psum psum_scatter pvary ragged_all_to_all
        pswapaxes
    """,
    "its softmax is computed in float32, as in JAX": """
        nn: dot_product_attention
    """,
    "its number is a parameter that meets no array and no dtype": """
        numpy: bartlett blackman hamming hanning kaiser
        lax: rng_uniform
        nn.initializers: Initializer delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal
        kaiming_uniform lecun_normal lecun_uniform ones orthogonal xavier_normal xavier_uniform zeros
        random: Key PRNGKey bernoulli binomial bits categorical cauchy choice clone exponential fold_in geometric gumbel
        key key_data key_dtype key_impl laplace logistic maxwell normal multinomial orthogonal
        permutation poisson rademacher split wrap_key_data
    """,
}
