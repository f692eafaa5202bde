"""``handlax.interop.jax``: programs cross between the libraries, and each side transforms them by its own rules."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import EscapedBox, NotProvided, UnhandledEffect
from handlax.interop.jax import from_jax, to_jax
from handlax.interop.jax_values import our_array, their_array
from handlax.testing.laws import results
from laws.test_laws import CASES

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

X = np.linspace(-1.0, 1.0, 6, dtype="float32").reshape(2, 3)
LIBRARIES = [pytest.param(jax, jnp, id="jax"), pytest.param(hx, hnp, id="handlax")]


def custom_jvp_of(lib, np):
    f = lib.custom_jvp(lambda x, n: np.sin(x) * n)
    f.defjvp(lambda xs, dxs: (f(*xs), 3.0 * dxs[0]))
    return lambda x: f(x, 2)


def custom_vjp_of(lib, np):
    f = lib.custom_vjp(lambda x, n: np.sin(x) * n)
    f.defvjp(lambda x, n: (f(x, n), (x, n)), lambda r, ct: (np.cos(r[0]) * ct * 5.0, None))
    return lambda x: f(x, 2)


def custom_vmap_of(lib, np):
    f = lib.custom_batching.custom_vmap(np.sin)
    f.def_vmap(lambda size, mapped, x: (np.sin(x) * 1.0, mapped[0]))
    return f


def solve_of(lib, np):
    def f(x):
        a = np.eye(3) * 3.0 + x.T @ x
        return lib.lax.custom_linear_solve(
            lambda y: a @ y, x[0], lambda f, b: np.linalg.solve(a, b), lambda f, b: np.linalg.solve(a.T, b))

    return f


def functions(lib, np):
    """Functions of ``f32[2,3]``, by what is in them, written for either library."""
    lax = lib.lax
    return {
        "elementwise": lambda x: np.tanh(x) * 2.0 + np.exp(-x) / (1.0 + x**2) - np.log1p(x * x),
        "comparison": lambda x: np.where(x > 0.1, x, np.minimum(x, 0.5) * 2.0) + np.clip(x, -0.5, 0.5),
        "reductions": lambda x: (x.sum(0), x.max(), x.prod(1), np.argmax(x, 1), (x > 0).any(), np.std(x)),
        "products": lambda x: np.einsum("ij,kj->ik", x, x) @ x,
        "shapes": lambda x: np.concatenate([x.T.reshape(2, 3), np.stack([x[0], x[1]]), x[:, ::-1]], 1),
        "indices": lambda x: np.array(x).at[np.array([0, 1]), np.array([2, 0])].add(x[:, 0]).at[0].set(1.0)[:, [2, 0]],
        "updates": lambda x: np.array(x).at[0].multiply(2.0).at[1].max(0.3).at[:, 1].min(0.2),
        "sort": lambda x: (np.sort(x, 1), np.argsort(x, 1), lax.top_k(x, 2)),
        "cumulative": lambda x: (np.cumsum(x, 1), lax.cumlogsumexp(x), lax.cummax(x, 1)),
        "fft": lambda x: np.abs(np.fft.fft(x)).sum(1) + np.fft.irfft(np.fft.rfft(x), 3).sum(1),
        "linear algebra": lambda x: (
            np.linalg.cholesky(x.T @ x + np.eye(3)), np.linalg.det(x.T @ x + np.eye(3)),
            np.linalg.eigvalsh(x.T @ x), np.linalg.solve(x.T @ x + np.eye(3), x.T), np.linalg.inv(x @ x.T),
            np.abs(np.linalg.qr(x.T)[1]), np.linalg.svd(x, compute_uv=False)),
        "convolution": lambda x: lax.conv(x[None, None], x[None, None, :, :2], (1, 1), "SAME"),
        "pooling": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID"),
        "means of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "SAME"),
        "fold": lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0,)),
        "jit": lambda x: lib.jit(lambda y: np.sin(y) * x)(x) + lib.jit(np.cos, inline=True)(x),
        "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * 2.0, lambda y: y * x, x),
        "switch": lambda x: lax.switch(x.shape[0] - 1 + (x[0, 0] > 0), [np.sin, np.cos, np.tanh], x),
        "scan": lambda x: lax.scan(lambda c, y: (c * x[0] + y, c.sum()), x[0], x, reverse=True),
        "fori": lambda x: lax.fori_loop(0, 4, lambda i, c: c * 0.5 + i * x, x),
        "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1],
        "checkpoint": lambda x: lib.checkpoint(lambda y: np.sin(np.sin(y)))(x),
        "custom_jvp": custom_jvp_of(lib, np),
        "custom_vjp": custom_vjp_of(lib, np),
        "custom_vmap": custom_vmap_of(lib, np),
        "linear solve": solve_of(lib, np),
        "activations": lambda x: (lib.nn.gelu(x), lib.nn.softmax(x), lib.nn.silu(x), lib.nn.relu(x), lib.nn.logsumexp(x)),
        "random": lambda x: x + lib.random.normal(lib.random.key(3), x.shape) + lib.random.uniform(
            lib.random.split(lib.random.key(4))[1], x.shape),
        "words": lambda x: x * lib.random.bernoulli(lib.random.fold_in(lib.random.PRNGKey(3), 2), 0.5, x.shape),
        "special": lambda x: lib.scipy.special.gammaln(x + 3.0) + lib.scipy.special.erf(x) + lib.scipy.special.i0e(x),
    }


NAMES = list(functions(hx, hnp))
NOT_SMOOTH = {"sort", "random", "custom_vmap"}  # or without reverse mode in JAX


def flat(tree):
    """The leaves of a tree as NumPy arrays."""
    return [np.asarray(leaf) for leaf in hx.tree.leaves(tree)]


def same(ours, theirs, rtol=2e-4):
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)


def total(lib, f):
    """The sum of the floats among the results of a function."""
    def summed(x):
        leaves = [y for y in lib.tree_util.tree_leaves(f(x)) if y.dtype == "float32"]
        return sum([(y * y).sum() for y in leaves])

    return summed


SIDES = [
    pytest.param(from_jax, jax, jnp, hx, id="from jax"),
    pytest.param(to_jax, hx, hnp, jax, id="to jax"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
class TestFunctions:
    def test_values(self, convert, lib, np_, other, name):
        f = functions(lib, np_)[name]
        same(convert(f)(X), f(X))
        same(other.jit(convert(f))(X), f(X))

    def test_gradients(self, convert, lib, np_, other, name):
        if name in NOT_SMOOTH:
            pytest.skip("values without a derivative")
        if name == "while":  # without reverse mode
            f = total(lib, functions(lib, np_)[name])
            return same(other.jvp(convert(f), (X,), (X,))[1], lib.jvp(f, (X,), (X,))[1])
        f = total(lib, functions(lib, np_)[name])
        same(other.jit(other.grad(convert(f)))(X), lib.grad(f)(X))

    def test_lanes(self, convert, lib, np_, other, name):
        f = functions(lib, np_)[name]
        lanes = np.stack([X, X[::-1] * 0.5, X + 0.1])
        same(other.vmap(convert(f))(lanes), lib.vmap(f)(lanes))

    def test_the_way_back(self, convert, lib, np_, other, name):
        f = functions(lib, np_)[name]
        back = to_jax if convert is from_jax else from_jax
        same(back(convert(f))(X), f(X))


# What is kept, and what is refused


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operation_crosses_and_comes_back(case):
    dtype = min(case.dtypes, key=lambda d: (d.name != "float32", d.name))
    operands = case.operands(dtype, case.shapes[0], np.random.default_rng(0))
    program = hx.make_program(lambda *xs: hx.perform(case.op, *xs))(*operands)
    theirs = to_jax(program)
    assert hx.make_program(from_jax(theirs))(*operands) == program
    for ours, found in zip(results(case.op, operands), theirs(*map(their_array, operands)), strict=True):
        same(data(our_array(found)), data(ours), rtol=1e-3)
