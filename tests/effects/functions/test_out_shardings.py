"""``out_sharding``: the result is that of the function without it, cut over devices as it says."""

import inspect

import numpy as np
import pytest

import handlax as hx
from handlax import lax, nn, ops, random
from handlax import numpy as hnp
from handlax.sharding import P

MESH = hx.make_mesh((2,), ("a",))
ROWS = hx.NamedSharding(MESH, P("a"))
KEY = random.key(0)
X = hnp.arange(8.0).reshape(4, 2)
POSITIVE = X + 1.0
NUMBERS = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
GROUPS = hnp.ones((2, 2, 2)), hnp.array([1, 3])

CALLS = {
    "lax.broadcast": lambda s: lax.broadcast(X, (2,), out_sharding=s),
    "lax.broadcast_in_dim": lambda s: lax.broadcast_in_dim(X, (4, 3, 2), (0, 2), out_sharding=s),
    "lax.broadcasted_iota": lambda s: lax.broadcasted_iota("int32", (2, 3), 0, out_sharding=s),
    "lax.conv_general_dilated": lambda s: lax.conv_general_dilated(
        hnp.ones((2, 1, 4)), hnp.ones((1, 1, 2)), (1,), "VALID", out_sharding=s),
    "lax.dot": lambda s: lax.dot(X, X.T, out_sharding=s),
    "lax.dot_general": lambda s: lax.dot_general(X, X, (((1,), (1,)), ((), ())), out_sharding=s),
    "lax.empty": lambda s: lax.empty((2,), "float32", out_sharding=s),
    "lax.ragged_dot": lambda s: lax.ragged_dot(X, *GROUPS, out_sharding=s),
    "lax.ragged_dot_general": lambda s: lax.ragged_dot_general(X, *GROUPS, NUMBERS, out_sharding=s),
    "lax.reduce": lambda s: lax.reduce(X, 0.0, lax.add, (1,), out_sharding=s),
    "lax.reduce_max": lambda s: lax.reduce_max(X, (1,), out_sharding=s),
    "lax.reduce_min": lambda s: lax.reduce_min(X, (1,), out_sharding=s),
    "lax.reduce_sum": lambda s: lax.reduce_sum(X, (1,), out_sharding=s),
    "lax.reshape": lambda s: lax.reshape(X, (2, 4), out_sharding=s),
    "lax.rng_bit_generator": lambda s: lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (4,), out_sharding=s)[1],
    "numpy.arange": lambda s: hnp.arange(4, out_sharding=s),
    "numpy.array": lambda s: hnp.array([1.0, 2.0], out_sharding=s),
    "numpy.asarray": lambda s: hnp.asarray(X, out_sharding=s),
    "numpy.bincount": lambda s: hnp.bincount(hnp.array([0, 1, 1]), length=4, out_sharding=s),
    "numpy.broadcast_to": lambda s: hnp.broadcast_to(X, (2, 4, 2), out_sharding=s),
    "numpy.dot": lambda s: hnp.dot(X, X.T, out_sharding=s),
    "numpy.einsum": lambda s: hnp.einsum("ij,kj->ik", X, X, out_sharding=s),
    "numpy.empty": lambda s: hnp.empty(2, out_sharding=s),
    "numpy.empty_like": lambda s: hnp.empty_like(X, out_sharding=s),
    "numpy.full": lambda s: hnp.full((2,), 3.0, out_sharding=s),
    "numpy.full_like": lambda s: hnp.full_like(X, 3.0, out_sharding=s),
    "numpy.linalg.tensordot": lambda s: hnp.linalg.tensordot(X, X.T, axes=1, out_sharding=s),
    "numpy.matmul": lambda s: hnp.matmul(X, X.T, out_sharding=s),
    "numpy.ones": lambda s: hnp.ones((4, 2), out_sharding=s),
    "numpy.ones_like": lambda s: hnp.ones_like(X, out_sharding=s),
    "numpy.percentile": lambda s: hnp.percentile(X, 50.0, axis=1, out_sharding=s),
    "numpy.ravel": lambda s: hnp.ravel(X, out_sharding=s),
    "numpy.repeat": lambda s: hnp.repeat(X, 2, axis=0, out_sharding=s),
    "numpy.reshape": lambda s: hnp.reshape(X, (2, 4), out_sharding=s),
    "numpy.tensordot": lambda s: hnp.tensordot(X, X.T, 1, out_sharding=s),
    "numpy.zeros": lambda s: hnp.zeros((4, 2), out_sharding=s),
    "numpy.zeros_like": lambda s: hnp.zeros_like(X, out_sharding=s),
    "random.bernoulli": lambda s: random.bernoulli(KEY, 0.5, (4,), out_sharding=s),
    "random.categorical": lambda s: random.categorical(KEY, X, out_sharding=s),
    "random.dirichlet": lambda s: random.dirichlet(KEY, POSITIVE, out_sharding=s),
    "random.f": lambda s: random.f(KEY, POSITIVE, POSITIVE, out_sharding=s),
    "random.generalized_normal": lambda s: random.generalized_normal(KEY, 2.0, (4,), out_sharding=s),
    "random.ball": lambda s: random.ball(KEY, 3, shape=(4,), out_sharding=s),
    "random.multivariate_normal": lambda s: random.multivariate_normal(
        KEY, hnp.zeros(3), hnp.eye(3), (4,), out_sharding=s),
    "random.orthogonal": lambda s: random.orthogonal(KEY, 4, out_sharding=s),
    "random.permutation": lambda s: random.permutation(KEY, X, out_sharding=s),
    "random.randint": lambda s: random.randint(KEY, (4,), 0, 9, out_sharding=s),
    "random.triangular": lambda s: random.triangular(KEY, 0.0, 0.5, 1.0, (4,), out_sharding=s),
    "random.truncated_normal": lambda s: random.truncated_normal(KEY, -1.0, 1.0, (4,), out_sharding=s),
    **{f"random.{name}": lambda s, name=name: getattr(random, name)(KEY, (4,), out_sharding=s) for name in (
        "bits", "cauchy", "exponential", "gumbel", "laplace", "logistic", "maxwell", "normal", "rademacher",
        "uniform")},
    **{f"random.{name}": lambda s, name=name: getattr(random, name)(KEY, POSITIVE, out_sharding=s) for name in (
        "chisquare", "gamma", "loggamma", "lognormal", "pareto", "poisson", "rayleigh", "t", "wald")},
    "random.beta": lambda s: random.beta(KEY, POSITIVE, POSITIVE, out_sharding=s),
    "random.geometric": lambda s: random.geometric(KEY, 1 / (POSITIVE + 1), out_sharding=s),
    **{f"nn.initializers.{name}": lambda s, name=name: getattr(nn.initializers, name)(
        KEY, (4, 2), "float32", s) for name in ("ones", "zeros")},
    **{f"ops.{name}": lambda s, name=name: getattr(ops, name)(X, hnp.array([0, 1, 1, 0]), 2, out_sharding=s)
       for name in ("segment_max", "segment_min", "segment_prod", "segment_sum")},
    "an initializer": lambda s: nn.initializers.glorot_uniform()(KEY, (4, 2), out_sharding=s),
    "x.dot": lambda s: X.dot(X.T, out_sharding=s),
    "x.flatten": lambda s: X.flatten(out_sharding=s),
    "x.ravel": lambda s: X.ravel(out_sharding=s),
    "x.reshape": lambda s: X.reshape(2, 4, out_sharding=s),
    "x.at[i].get": lambda s: X.at[:2].get(out_sharding=s),
    "x.at[i].set": lambda s: X.at[0].set(7.0, out_sharding=s),
}
MODULES = {"lax": lax, "numpy": hnp, "numpy.linalg": hnp.linalg, "random": random, "ops": ops,
           "nn": nn, "nn.initializers": nn.initializers}


def takes_sharding(f):
    try:
        return "out_sharding" in inspect.signature(f).parameters
    except (TypeError, ValueError):
        return False


def test_every_function_that_takes_a_sharding_is_called_here():
    for where, module in MODULES.items():
        names = [name for name in getattr(module, "__all__", dir(module)) if not name.startswith("_")]
        assert {f"{where}.{name}" for name in names if takes_sharding(getattr(module, name))} <= CALLS.keys()


def same(y, plain):
    np.testing.assert_allclose(y, plain, rtol=1e-6, atol=1e-6)
    assert y.sharding.is_equivalent_to(ROWS, y.ndim)


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_cut_as_asked(name):
    call = CALLS[name]
    plain = np.asarray(call(None))
    np.testing.assert_array_equal(call(hx.typeof(X).sharding), plain)
    same(call(ROWS), plain)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CALLS)
def test_and_so_over_the_mesh_in_force_and_in_programs(name):
    call = CALLS[name]
    plain = np.asarray(call(None))
    with hx.set_mesh(MESH):
        same(call(P("a")), plain)
        same(hx.jit(lambda: call(P("a")))(), plain)


def test_what_is_no_sharding_is_refused_by_the_function():
    with pytest.raises(hx.errors.BadArgument, match="zeros: a sharding or a PartitionSpec is needed, got 'x'"):
        hnp.zeros(2, out_sharding="x")
    with pytest.raises(hx.errors.BadArgument, match="uniform: a PartitionSpec is about the mesh in force"):
        random.uniform(KEY, (2,), out_sharding=P("a"))
    with pytest.raises(hx.errors.ShapeMismatch, match="arange"):
        hnp.arange(3, out_sharding=ROWS)


def test_it_is_its_own_derivative_and_is_placed_in_lanes():
    f = lambda x: hnp.matmul(x, X.T, out_sharding=ROWS).sum()
    np.testing.assert_array_equal(hx.jit(hx.grad(f))(X), hx.grad(lambda x: (x @ X.T).sum())(X))
    np.testing.assert_array_equal(hx.jit(hx.vmap(f))(hnp.stack([X, X])), hnp.stack([f(X), f(X)]))
