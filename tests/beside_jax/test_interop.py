"""``handlax.interop.jax``: programs cross between the libraries, and each side transforms them by its own rules."""

import importlib

import numpy as np
import pytest
from laws.test_laws import CASES

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import BadArgument, EscapedBox, NotAnArray, NotProvided, UnhandledEffect
from handlax.interop.jax import from_jax, to_jax
from handlax.interop.jax_values import our_array, their_array
from handlax.testing.operation_laws import results

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
        "reductions": lambda x: (x.sum(0), x.max(), x.min(1), x.prod(1), np.argmax(x, 1), (x > 0).any(), np.std(x)),
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
        "activations": lambda x: [getattr(lib.nn, f)(x) for f in ("gelu", "softmax", "silu", "relu", "logsumexp")],
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


# Operations

UNIQUE_UP_TO_SIGNS = ("svd",)  # LAPACK's drivers choose them


def data(x):
    """An array of either library as NumPy's, of keys their words."""
    return np.asarray(hx.random.key_data(x) if hx.dtypes.issubdtype(x.dtype, hx.dtypes.extended) else x)


def crosses(case):
    dtype = min(case.dtypes, key=lambda d: (d.name != "float32", d.name))
    operands = case.draw(dtype, case.shapes[0], np.random.default_rng(0))
    program = hx.make_program(lambda *xs: hx.perform(case.op, *xs))(*operands)
    theirs = to_jax(program)
    back = hx.make_program(from_jax(theirs))(*operands)
    assert str(back.with_name(program.name)) == str(program) or case.op.name in OTHERWISE
    for ours, found in zip(results(case.op, operands), theirs(*map(hnp.asarray, operands)), strict=True):
        a, b = data(our_array(found)), data(ours)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if case.op.name in UNIQUE_UP_TO_SIGNS:
            a, b = abs(a), abs(b)
        np.testing.assert_allclose(a.astype("complex128"), b.astype("complex128"), rtol=1e-3, atol=1e-4)


OTHERWISE = {
    "platform_index": "a branch for each platform in JAX",
    "convert_element_type": "JAX drops one to the same dtype", "cholesky": "followed by tril in JAX",
    "eigh": "JAX does not say that a matrix is Hermitian, or that vectors are not needed",
    **dict.fromkeys(["reduce_max", "reduce_min"], "JAX does not say that NaN may be passed over"),
}
KINDS = {type(case.op): case for case in reversed(CASES) if case.op.name not in ("sharding_constraint",)}


@pytest.mark.parametrize("case", KINDS.values(), ids=lambda case: case.op.name)
def test_an_operation_crosses_and_comes_back(case):
    crosses(case)


@pytest.mark.sweep
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_of_an_operation_crosses_and_comes_back(case):
    if case.op.name == "sharding_constraint":
        pytest.skip("devices are left to JAX")
    crosses(case)


# What is kept


def test_a_dtype_is_kept_and_a_weak_type():
    for dtype in ("bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64", "float64", "int64"):
        for x in (np.ones(3, dtype), hnp.ones(3, dtype)):
            assert from_jax(lambda x: x)(x).dtype == dtype
        assert to_jax(lambda x: x)(hnp.ones(3, dtype)).dtype == dtype
        with jax.enable_x64(True):
            assert from_jax(lambda x: x)(jnp.ones(3, dtype)).dtype == dtype
    assert from_jax(lambda x: x * 2)(1.0).weak_type and to_jax(lambda x: x * 2)(1.0).weak_type
    assert to_jax(lambda x: x.astype("float64"))(X).dtype == "float64"
    assert jax.jit(to_jax(lambda x: x.astype("float64") * 2))(X).dtype == "float64"


def test_wide_dtypes_within_loops_are_kept():
    step = lambda c, row: (c + row.astype("float64").sum().astype("float32") * 1e-9, None)
    f = lambda x: lax.scan(step, x[0, 0], x)[0]
    assert np.asarray(to_jax(f)(X)) == np.asarray(f(X))
    assert "f64" in str(jax.make_jaxpr(to_jax(f))(X))


def test_narrow_dtypes_cross():
    for dtype in ("int4", "uint4", "float8_e5m2", "float8_e4m3fn"):
        for convert, ones in ((from_jax, jnp.ones(3, dtype)), (to_jax, hnp.ones(3, dtype))):
            assert convert(lambda x: x)(ones).dtype == dtype


def test_a_donated_array_leaves_the_other_library_s_alone():
    ours = hx.jit(lambda x: x + 1)(hnp.arange(4096.0))
    jax.jit(lambda x: x * 2, donate_argnums=0)(their_array(ours)).block_until_ready()
    np.testing.assert_array_equal(ours, np.arange(4096.0) + 1)
    theirs = jnp.arange(4096.0) + 1
    hx.jit(lambda x: x * 2, donate_argnums=0)(our_array(theirs)).block_until_ready()
    np.testing.assert_array_equal(theirs, np.arange(4096.0) + 1)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_cross(impl):
    ours, theirs = hx.random.key(3, impl=impl), jax.random.key(3, impl=impl)
    draw = lambda lib: lambda key: (lib.random.split(key), lib.random.bits(key, (3,)))
    for key in (ours, theirs):
        keys, bits = from_jax(draw(jax))(key)
        assert keys.dtype == ours.dtype and (bits == hx.random.bits(ours, (3,))).all()
        keys, bits = to_jax(draw(hx))(key)
        assert keys.dtype == theirs.dtype and (bits == jax.random.bits(theirs, (3,))).all()


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_of_jax_are_arguments_wherever_its_arrays_are(impl):
    key, keys = jax.random.key(3, impl=impl), jax.random.split(jax.random.key(4, impl=impl), 2)
    draw, ours = lambda key: jax.random.normal(key, (2,)), lambda key: hx.random.normal(key, (2,))
    for f in (from_jax(draw), hx.jit(from_jax(draw)), ours, hx.jit(ours)):
        same(f(key), draw(key))
    program = hx.make_program(from_jax(draw))(key)
    same(program(key), [draw(key)])
    assert hx.typeof(keys).dtype == hx.typeof(hnp.asarray(keys)).dtype == hx.random.key(0, impl=impl).dtype
    assert hx.eval_shape(from_jax(draw), key).shape == (2,)
    each = np.stack([draw(k) for k in keys])
    same(hx.lax.map(from_jax(draw), keys), each)
    same(hx.vmap(ours)(hx.random.wrap_key_data(jax.random.key_data(keys), impl=impl)), hx.vmap(ours)(keys))
    if impl == "threefry2x32":  # of rbg the words of lanes are others in JAX
        same(hx.vmap(from_jax(draw))(keys), each)


def test_a_loop_with_a_bound_for_reverse_mode_is_a_loop_of_jax():
    f = lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: c * 2.0, x, max_steps=5)
    same(jax.jit(to_jax(f))(1.0), np.float32(4.0))
    same(jax.jvp(to_jax(f), (1.0,), (1.0,))[1], np.float32(4.0))
    same(to_jax(hx.grad(f))(1.0), np.float32(4.0))


def test_arrays_share_their_memory():
    x = jnp.arange(64.0)
    assert np.shares_memory(np.asarray(our_array(x)), np.asarray(x))
    y = hx.jit(lambda x: x + 1)(hnp.arange(64.0))
    assert np.shares_memory(np.asarray(their_array(y)), np.asarray(y))


def test_trees_of_both_libraries_are_kept():
    @jax.tree_util.register_pytree_node_class
    class Theirs:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return [self.x], None

        @classmethod
        def tree_unflatten(cls, _, leaves):
            return cls(*leaves)

    class Ours(Theirs):
        pass

    hx.tree_util.register_pytree_node(Ours, lambda o: ([o.x], None), lambda _, xs: Ours(*xs))
    swap = lambda tree, *, y: {"a": Theirs(tree["b"].x), "b": Ours([tree["a"].x["c"], y, None])}
    tree = {"a": Theirs({"c": X}), "b": Ours(X + 1)}
    for convert, array in ((from_jax, hx.Array), (to_jax, jax.Array)):
        result = convert(swap)(tree, y=2.0)
        assert type(result["a"]) is Theirs and type(result["b"]) is Ours and result["b"].x[2] is None
        assert isinstance(result["a"].x, array) and isinstance(result["b"].x[0], array)
        same([result["a"].x, *result["b"].x[:2]], [X + 1, X, np.float32(2.0)])


def test_a_line_of_the_user_is_kept():
    program = hx.make_program(from_jax(lambda x: jnp.tanh(x) * 2))(X)
    assert {str(program.site(i)).partition(":")[0] for i in range(len(program))} == {"test_interop.py"}


def test_a_closed_jaxpr_is_a_program_that_prints_the_same_equations():
    program = from_jax(jax.make_jaxpr(lambda x: jnp.tanh(x) @ jnp.ones(3))(X))
    assert isinstance(program, hx.Program)
    assert from_jax(jax.make_jaxpr(to_jax(program))(X)).diff(program).__bool__() is False


@pytest.mark.parametrize("name", ["scan", "while", "cond", "jit", "checkpoint", "fori", "indices", "products"])
def test_programs_come_back_with_the_same_equations(name):
    program = hx.make_program(functions(hx, hnp)[name])(X)
    back = hx.make_program(from_jax(to_jax(program)))(X)
    assert not program.diff(back), program.diff(back)


def test_second_derivatives_cross():
    f = lambda lib, np: lambda x: (np.tanh(x) ** 3).sum() + custom_jvp_of(lib, np)(x).sum()
    same(hx.hessian(from_jax(f(jax, jnp)))(X), jax.hessian(f(jax, jnp))(X))
    same(jax.hessian(to_jax(f(hx, hnp)))(X), hx.hessian(f(hx, hnp))(X))
    same(hx.grad(lambda x: from_jax(jax.grad(f(jax, jnp)))(x).sum())(X),
         jax.grad(lambda x: jax.grad(f(jax, jnp))(x).sum())(X))


def test_the_gradient_of_pooling_in_jax_crosses():
    for extreme, start in ((jax.lax.max, -np.inf), (jax.lax.min, np.inf)):
        f = lambda x: (jax.lax.reduce_window(x, start, extreme, (2, 2), (1, 1), "VALID") ** 2).sum()
        same(from_jax(jax.grad(f))(X), jax.grad(f)(X))
        same(from_jax(lambda x: jax.jvp(f, (x,), (x,)))(X), jax.jvp(f, (X,), (X,)))


def test_policies_of_checkpoints_cross():
    saved = lambda lib, policy: lambda x: lib.checkpoint(
        lambda y: lib.numpy.sin(y @ y.T) @ y, policy=policy)(x).sum()
    f = saved(jax, jax.checkpoint_policies.dots_saveable)
    same(hx.grad(from_jax(f))(X), jax.grad(f)(X))
    g = saved(hx, hx.checkpoint_policies.dots_saveable)
    same(jax.grad(to_jax(g))(X), hx.grad(g)(X))
    none, dots = [str(hx.make_program(hx.grad(from_jax(saved(jax, policy))))(X)).count("dot_general")
                  for policy in (None, jax.checkpoint_policies.dots_saveable)]
    assert none > dots


# Effects


def seen_by(lib, log):
    def f(x):
        lib.debug.callback(lambda v: log.append(float(v)), x[0, 0])
        struct = lib.ShapeDtypeStruct
        y = lib.pure_callback(lambda v: np.asarray(v) * 2, struct((2, 3), "float32"), x, vmap_method="sequential")
        z = lib.experimental.io_callback(
            lambda v: np.asarray(v) + 1, struct((), "float32"), x[0, 0], ordered=True)
        return y.sum() + z

    return f


def test_calls_of_the_host_cross(capfd):
    importlib.import_module("jax.experimental")
    log = []
    for f in (from_jax(seen_by(jax, log)), hx.jit(from_jax(seen_by(jax, log))), to_jax(seen_by(hx, log)),
              jax.jit(to_jax(seen_by(hx, log))), from_jax(to_jax(seen_by(hx, log)))):
        assert abs(float(f(X))) < 1e-5
        hx.effects_barrier()
        jax.effects_barrier()
    assert log == [-1.0] * 5
    from_jax(lambda x: jax.debug.print("x {} k {k}", x, k=3))(2)
    to_jax(lambda x: hx.debug.print("y {}", x))(2)
    jax.effects_barrier()
    assert capfd.readouterr().out == "x 2 k 3\ny 2\n"


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


def ticking(x):
    def step(c, row):
        hx.perform(Tick())
        return c + row, c

    return lax.scan(step, x[0], x)


def test_a_handler_is_part_of_a_function_for_jax():
    counter = hx.handler({Tick: lambda n, op: (n + 1, None)})
    n, (last, _) = jax.jit(to_jax(hx.handle(counter, 0)(ticking)))(X)
    assert int(n) == 2
    same(last, X[0] + X.sum(0))


def test_an_effect_that_nobody_handles_is_refused():
    with pytest.raises(UnhandledEffect, match=r"to_jax: every effect must be handled, got tick at test_interop.py"):
        to_jax(ticking)(X)
    with pytest.raises(UnhandledEffect, match="got get at"):  # JAX has a primitive of this name, for references
        to_jax(hx.handle(hx.handler({}), None)(lambda x: hx.perform(hx.operations.Get("s", hx.typeof(x)))))(X)


def test_handlers_see_what_jax_traced():
    sines = hx.handler({hx.operations.Sin: lambda op, x: 2.0 * hx.perform(op, x)})
    f = lambda x: jax.lax.scan(lambda c, row: (c + jnp.sin(row), None), x[0], x)[0]
    same(hx.jit(hx.handle(sines)(from_jax(f)))(X), X[0] + 2 * np.sin(X).sum(0))


def test_the_tools_of_handlax_work_on_functions_of_jax():
    f = from_jax(lambda x: (jnp.tanh(jnp.log(x)) * 2).sum())
    origin, _ = hx.library.nan_origin(f)(X)
    assert "log made the first NaN" in str(origin) and "test_interop.py" in str(origin)
    assert "tanh" in str(hx.costs(f)(X))
    products = hx.handle(hx.library.autocast("bfloat16"))(from_jax(lambda x: x @ x.T))
    assert "bf16" in str(hx.make_program(products)(X))
    program = hx.make_program(f)(X)
    assert hx.Program.parse(str(program)) == program
    assert "tanh" in str(hx.step(f)(X).program) and hx.draw(f)(X)


@hx.operation
class Thrice:
    def result_type(op, x):
        return x

    def evaluate(op, x):
        return 3 * x

    def batch(op, dims, x):
        return hx.perform(op, x), dims[0]

    jvp = hx.columns.linear

    def transpose(op, ct, x):
        return hx.perform(op, ct)

    def lower(op, emit, x):
        return emit.binary("multiply", x, emit.full(3, x.type))


def test_an_operation_of_a_user_is_a_primitive_of_jax():
    f = to_jax(lambda x: hx.perform(Thrice(), x * x))
    same(f(X), 3 * X**2)
    same(jax.jit(jax.grad(lambda x: f(x).sum()))(X), 6 * X)
    same(jax.vmap(f)(X), 3 * X**2)
    assert "handlax.thrice" in str(jax.make_jaxpr(f)(X))
    assert "thrice" in str(hx.make_program(from_jax(f))(X))


# What is refused


def test_what_one_library_does_not_have_is_refused_with_its_line():
    with pytest.raises(NotProvided, match=r"from_jax: an operation that handlax has is needed, got new_ref \(at"):
        from_jax(lambda x: jax.new_ref(x)[...])(X)
    with pytest.raises(NotProvided, match="no device may be named"):
        from_jax(lambda x: jax.device_put(x, jax.devices()[0]))(X)


def test_an_argument_that_is_no_array_is_named():
    def f(x, activation):
        return x

    module = jax.tree_util.Partial(f, X, "relu")  # a node that JAX alone knows
    for convert in (from_jax, to_jax):
        for args, name in (((X, "relu"), "activation"), (({"a": [1.0, np.tanh]}, 2.0), r"x\['a'\]\[1\]"),
                           ((module, X), "x")):
            with pytest.raises(NotAnArray, match=f"f: arguments must be arrays or numbers, got .* for {name}\\."):
                convert(f)(*args)


def test_a_symbolic_size_is_refused_by_name():
    n, = hx.export.symbolic_shape("n")
    with pytest.raises(BadArgument, match=r"an array of known shape is needed, got f32\[n\]"):
        hx.export.export(hx.jit(from_jax(jnp.sin)))(hx.ShapeDtypeStruct((n,), "float32"))


def test_traced_values_do_not_cross():
    with pytest.raises(EscapedBox, match="from_jax: a traced value of JAX's"):
        jax.jit(lambda x: from_jax(jnp.sin)(x))(X)
    with pytest.raises(EscapedBox, match="to_jax: a traced value of handlax"):
        hx.jit(lambda x: to_jax(hnp.sin)(x))(X)
    for f in (hnp.sin, hx.jit(hnp.sin), hx.grad(hnp.sum), lambda x: hnp.ones(3) + x, lambda x: x * hnp.ones(3)):
        for transform in (jax.jit, jax.vmap, jax.grad):
            with pytest.raises(EscapedBox, match=r"a value that JAX traces(.|\n)*to_jax"):
                transform(lambda x: f(x))(X)
    same(hx.jit(from_jax(lambda x: to_jax(hnp.sin)(x)))(X), np.sin(X))
    same(jax.jit(to_jax(lambda x: from_jax(jnp.sin)(x)))(X), np.sin(X))


# Programs of users


def trained(lib, np_, step_of, steps=3):
    """The parameters of a small network after some steps, as ``step_of`` converts one step of training."""
    keys = lib.random.split(lib.random.key(0), 2)
    params = {"in": {"w": lib.random.normal(keys[0], (3, 8)) * 0.3, "b": np_.zeros(8)},
              "out": {"w": lib.random.normal(keys[1], (8, 1)) * 0.3, "b": np_.zeros(1)}}

    def loss(params, x, y):
        hidden = lib.nn.gelu(x @ params["in"]["w"] + params["in"]["b"])
        return np_.mean((hidden @ params["out"]["w"] + params["out"]["b"] - y) ** 2)

    def step(params, x, y):
        value, slopes = lib.value_and_grad(loss)(params, x, y)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    step, losses, params = step_of(step), [], lib.tree.map(np.asarray, params)
    for _ in range(steps):
        params, value = step(params, X, X[:, :1])
        losses.append(value)
    return losses, params


def test_a_step_of_training_crosses():
    expected = trained(jax, jnp, jax.jit)
    same(trained(jax, jnp, lambda step: hx.jit(from_jax(step))), expected)
    same(trained(hx, hnp, lambda step: jax.jit(to_jax(step))), expected)


def transformer(lib, np_):
    def block(x, w):
        heads = lambda y: y.reshape(4, 2, 4)
        q, k, v = heads(x @ w["q"]), heads(x @ w["k"]), heads(x @ w["v"])
        scores = np_.einsum("ihd,jhd->hij", q, k) / 2.0
        scores = np_.where(np_.tril(np_.ones((4, 4), bool)), scores, -1e9)
        x = x + np_.einsum("hij,jhd->ihd", lib.nn.softmax(scores), v).reshape(4, 8) @ w["o"]
        normal = (x - x.mean(-1, keepdims=True)) * lib.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + lib.nn.relu(normal @ w["u"]) @ w["d"], None

    def loss(ws, table, tokens):
        x, _ = lib.lax.scan(lib.checkpoint(block), table[tokens], ws)
        logits = lib.nn.log_softmax(x @ table.T)
        return -np_.mean(np_.take_along_axis(logits[:-1], tokens[1:, None], 1))

    return loss


def test_a_transformer_crosses():
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype("float32") * 0.2
    ws = {name: draw(2, 8, 8) for name in "qkvo"} | {"u": draw(2, 8, 16), "d": draw(2, 16, 8)}
    args = ws, draw(11, 8), np.array([1, 5, 2, 10], "int32")
    expected = jax.value_and_grad(transformer(jax, jnp), (0, 1))(*args)
    same(hx.jit(hx.value_and_grad(from_jax(transformer(jax, jnp)), (0, 1)))(*args), expected, rtol=2e-3)
    same(jax.jit(jax.value_and_grad(to_jax(transformer(hx, hnp)), (0, 1)))(*args), expected, rtol=2e-3)


def test_a_model_of_flax_crosses():
    linen = pytest.importorskip("flax.linen", reason="flax is not installed")
    model = linen.Sequential([linen.Dense(8), linen.LayerNorm(), linen.relu, linen.Dense(2)])
    params = model.init(jax.random.key(0), X)
    loss = lambda params, x: (model.apply(params, x) ** 2).sum()
    same(hx.jit(hx.grad(from_jax(loss)))(params, X), jax.grad(loss)(params, X))


def test_a_model_of_equinox_crosses():
    equinox = pytest.importorskip("equinox", reason="equinox is not installed")
    model = equinox.nn.MLP(3, 2, 8, 2, key=jax.random.key(0))
    arrays, rest = equinox.partition(model, equinox.is_array)
    loss = lambda arrays, x: (jax.vmap(equinox.combine(arrays, rest))(x) ** 2).sum()
    value, slopes = from_jax(jax.value_and_grad(loss))(arrays, X)
    expected = jax.value_and_grad(loss)(arrays, X)
    assert isinstance(slopes, equinox.nn.MLP)
    same([value, *jax.tree.leaves(slopes)], [expected[0], *jax.tree.leaves(expected[1])])


def test_the_branch_of_a_platform_is_chosen_by_jax():
    f = to_jax(lambda x: lax.platform_dependent(x, cpu=lambda x: x * x, cuda=lambda x: x + 2.0, tpu=lambda x: -x))
    assert [float(g(3.0)) for g in (f, jax.jit(f), from_jax(f))] == [9.0] * 3
    for g, expected in ((f, 9.0), (jax.grad(f), 6.0)):
        exported = jax.export.export(jax.jit(g), platforms=("cpu", "cuda"))(3.0)
        assert exported.call(3.0) == expected and "negate" not in exported.mlir_module()
