"""``handlax.interop.jax``: loops over lanes, functions with rules of their own and calls of the host, both ways."""

import numpy as np
import pytest
from beside_jax.test_interop import SIDES, X, functions, same

import handlax as hx
from handlax import lax
from handlax.interop.jax import from_jax, to_jax

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")
pytest.importorskip("jax.export")


def loops_over_lanes(lax, random):
    """Functions of a number, and of what comes with it, whose number of iterations depends on the number."""
    return {
        "while": lambda x, y: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * y), (x, y))[1],
        "fori": lambda x, y: lax.fori_loop(0, x.astype(int), lambda i, c: c * y.sum() + i, 1.0),
        "rows": lambda x, y: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2 + y), (x, y))[1],
        "nested": lambda x, y: lax.while_loop(lambda c: c < x, lambda c: lax.while_loop(
            lambda d: d < y.sum(), lambda d: d + 1, c) + 1.0, 0.0),
        "keys": lambda x, y: random.bits(lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, random.split(c[1])[0]), (x, random.key(0)))[1]),
    }


@pytest.mark.parametrize("name", list(loops_over_lanes(lax, hx.random)))
def test_a_loop_over_lanes_ends_for_each_lane_by_itself(name):
    f = jax.vmap(loops_over_lanes(jax.lax, jax.random)[name])
    xs, ys = np.array([1.0, 2.0, 5.0], "float32"), np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 0.0]], "float32")
    for args in ((xs, ys), (xs.reshape(3, 1), np.stack([ys], 1))):
        g = f if args[0].ndim == 1 else jax.vmap(f)
        for convert in (from_jax, lambda f: hx.jit(from_jax(f)), lambda f: to_jax(from_jax(f))):
            same(convert(g)(*args), g(*args))
    if name in ("while", "rows", "nested"):
        same(hx.jvp(lambda ys: from_jax(f)(xs, ys), (ys,), (ys,)), jax.jvp(lambda ys: f(xs, ys), (ys,), (ys,)))
    same(hx.vmap(from_jax(f), (None, 0))(xs, np.stack([ys, ys[::-1]])),
         jax.vmap(f, (None, 0))(xs, np.stack([ys, ys[::-1]])))


def is_zero(x):
    return type(x).__name__ == "SymbolicZero"


def rules_that_look_at_zeros(lib, seen):
    """Functions of two numbers, whose rules write down what they are told of the arguments and the cotangents."""
    f, g = lib.custom_vjp(lambda x, y: (x * y, x + y)), lib.custom_jvp(lambda x, y: x * y)

    def fwd(x, y):
        seen.add(("perturbed", x.perturbed, y.perturbed))
        return f(x.value, y.value), (x.value, y.value)

    def bwd(residuals, cts):
        seen.add(("cotangents", *map(is_zero, cts)))
        a, b = [0.0 if is_zero(ct) else ct for ct in cts]
        return a * residuals[1] + b, a * residuals[0] * 7.0 + b

    def rule(primals, tangents):
        seen.add(("tangents", *map(is_zero, tangents)))
        return g(*primals), sum([3.0 * dx for dx in tangents if not is_zero(dx)])

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    g.defjvp(rule, symbolic_zeros=True)
    return f, g


@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_a_rule_sees_which_arguments_are_differentiated_and_which_cotangents_are_zero(convert, lib, np_, other):
    def told(lib, convert, other, argnums, number):
        seen = set()
        f, g = rules_that_look_at_zeros(lib, seen)
        slopes = [other.grad(lambda *xs: convert(f)(*xs)[number], argnums)(2.0, 3.0),
                  other.grad(convert(g), argnums)(2.0, 3.0)]
        return np.asarray(slopes).tolist(), seen

    for argnums in (0, 1, (0, 1)):
        for number in (0, 1):
            assert told(lib, convert, other, argnums, number) == told(lib, lambda f: f, lib, argnums, number)


@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_pullbacks_of_one_function_may_be_called_in_any_order(convert, lib, np_, other):
    f = other.jit(convert(rules_that_look_at_zeros(lib, set())[0]))
    _, first = other.vjp(lambda x: f(x, 3.0), 2.0)
    _, second = other.vjp(lambda y: f(2.0, y), 3.0)
    assert [float(pull((1.0, 1.0))[0]) for pull in (first, second)] == [4.0, 15.0]


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_tangents_and_cotangents_may_be_numbers(convert, lib, np_, other, name):
    f = functions(lib, np_)[name]
    same(other.vjp(convert(f), 3.0)[1](1.0), lib.grad(f)(3.0))
    if (convert, name) != (from_jax, "custom_vjp"):  # in JAX it has no forward mode
        same(other.jvp(convert(f), (3.0,), (1.0,))[1], lib.grad(f)(3.0))


AT = {
    **{f"{name} {flags}": (lambda x, np, name=name, flags=flags: getattr(np.asarray(x).at[np.array([0, 2, 5])], name)(
        2.0, unique_indices=flags == "unique"))
       for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max") for flags in ("", "unique")},
    "apply": lambda x, np: np.asarray(x).at[np.array([0, 2, 5])].apply(lambda y: np.sin(y) + 2.0),
    "apply twice": lambda x, np: np.asarray(x).at[np.array([1, 1])].apply(lambda y: np.sin(y) + 2.0),
    "apply unique": lambda x, np: np.asarray(x).at[np.array([2, 0])].apply(np.exp, unique_indices=True),
    "apply to a number": lambda x, np: np.asarray(x).at[1].apply(np.sin),
    "apply to a slice": lambda x, np: np.asarray(x).at[1:].apply(np.sin),
    "apply to nothing": lambda x, np: np.asarray(x).at[3:].apply(np.sin),
    "apply to rows": lambda x, np: np.stack([x, x, x]).at[np.array([2, 0])].apply(lambda y: y * 3.0, mode="clip"),
    "apply to integers": lambda x, np: np.asarray(x).astype(int).at[0].apply(lambda y: y + 7),
    "get": lambda x, np: np.asarray(x).at[np.array([0, 9])].get(mode="fill", fill_value=-7.0),
}


@pytest.mark.parametrize("name", list(AT))
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_every_update_of_elements_means_the_same(convert, lib, np_, other, name):
    f = lambda x: AT[name](x, np_)
    x = np.array([1.0, 2.0, 3.0], "float32")
    same(convert(f)(x), f(x))
    same(other.jit(other.vmap(convert(f)))(np.stack([x, x + 1])), lib.vmap(f)(np.stack([x, x + 1])))


def test_what_jax_applies_to_elements_has_the_derivative_of_its_function():
    x = np.array([1.0, 2.0, 3.0], "float32")
    slope = hx.grad(lambda x: from_jax(lambda x: x.at[1:].apply(jax.numpy.sin))(x).sum())(x)
    same(slope, np.array([1.0, *np.cos(x[1:])], "float32"))


def over_lanes(lax):
    """Functions of a lane that combine all lanes, of the axis i."""
    names = ("psum", "pmean", "pmax", "pmin", "all_gather")
    return {
        **{name: (lambda x, name=name: getattr(lax, name)(x, "i")) for name in names},
        "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]),
        "all_to_all": lambda x: lax.all_to_all(x[:2], "i", 0, 0),
        "psum_scatter": lambda x: lax.psum_scatter(x[:2], "i"),
        "axis_index": lambda x: x * lax.axis_index("i"),
    }


@pytest.mark.parametrize("name", list(over_lanes(lax)))
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_what_combines_the_lanes_of_a_vmap_within_the_function_crosses(convert, lib, np_, other, name):
    f = lib.vmap(over_lanes(lib.lax)[name], axis_name="i")
    twice = lib.vmap(lib.vmap(over_lanes(lib.lax)[name], axis_name="i"), axis_name="j")
    same(convert(f)(X), f(X))
    same(convert(twice)(np.stack([X, X + 1.0])), twice(np.stack([X, X + 1.0])))
    if name in ("psum", "pmean", "all_gather"):
        same(other.grad(lambda x: (convert(f)(x) ** 2).sum())(X), lib.grad(lambda x: (f(x) ** 2).sum())(X))


def test_an_axis_of_two_vmaps_is_summed_over_both():
    f = jax.vmap(jax.vmap(lambda x: jax.lax.psum(x * x, ("i", "j")), axis_name="i"), axis_name="j")
    same(from_jax(f)(X), f(X))


EXPORTED = jax.export.export(jax.jit(lambda x, y: {"a": jax.numpy.sin(x["b"]) * y}))(
    {"b": jax.ShapeDtypeStruct((2, 3), "float32")}, jax.ShapeDtypeStruct((), "float32"))
SIZES = np.array([1, 1], "int32")
IN_JAX = {
    "jacfwd": jax.jacfwd(jax.numpy.sin), "jacrev": jax.jacrev(jax.numpy.sin),
    "hessian": jax.hessian(lambda x: (x**3).sum()),
    "gradient of gamma": jax.grad(lambda x: jax.random.gamma(jax.random.key(0), x + 2.0).sum()),
    "ragged_dot": lambda x: jax.lax.ragged_dot(x, np.ones((2, 3, 4), "float32"), SIZES),
    "gradient of ragged_dot": jax.grad(
        lambda x: (jax.lax.ragged_dot(x, np.ones((2, 3, 4), "float32"), SIZES) ** 2).sum()),
    "composite": lambda x: jax.lax.composite(lambda x, *, k: jax.numpy.sin(x) * k, "my.sin", version=2)(x, k=2.0),
    "approx_max_k": lambda x: jax.lax.approx_max_k(x, 2),
    "approx_min_k": lambda x: jax.lax.approx_min_k(x, 2, reduction_dimension=0),
    "rng_bit_generator": lambda x: jax.lax.rng_bit_generator(np.arange(4, dtype="uint32"), (3,)),
    "symmetric_product": lambda x: jax.lax.linalg.symmetric_product(
        x, np.eye(2, dtype="float32"), alpha=2.0, beta=3.0, symmetrize_output=True),
    "exported": lambda x: EXPORTED.call({"b": x}, x[0, 0]),
}


@pytest.mark.parametrize("name", list(IN_JAX))
def test_what_only_jax_s_own_functions_trace_is_performed(name):
    f = IN_JAX[name]
    same(from_jax(f)(X), f(X))
    same(hx.jit(from_jax(f))(X), f(X))


def test_a_composite_keeps_its_name_version_and_attributes():
    text = str(hx.make_program(from_jax(IN_JAX["composite"]))(X))
    assert "'my.sin'" in text and "version=2" in text and "'k'" in text


def test_a_function_that_jax_exported_has_the_derivative_that_was_exported_with_it():
    exported = jax.export.deserialize(jax.export.export(jax.jit(jax.numpy.sin))(
        jax.ShapeDtypeStruct((2, 3), "float32")).serialize(vjp_order=1))
    same(hx.grad(lambda x: from_jax(exported.call)(x).sum())(X), np.cos(X))


METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_a_call_of_the_host_gets_the_lanes_as_its_method_says(convert, lib, np_, other, method):
    shapes = []

    def host(x, y):
        shapes.append((np.shape(x), np.shape(y)))
        return np.asarray(x) + np.asarray(y)

    f = lambda x, y: lib.pure_callback(host, lib.ShapeDtypeStruct((2,), "float32"), x, y, vmap_method=method)
    xs, y = np.arange(24.0, dtype="float32").reshape(4, 3, 2), np.ones(2, "float32")

    def found(lib, f):
        shapes.clear()
        return np.asarray(lib.vmap(lib.vmap(f, (0, None)), (0, None))(xs, y)).tolist(), [*shapes]

    assert found(other, convert(f)) == found(lib, f)
    same(other.jit(other.vmap(convert(f)))(xs[0], xs[1]), xs[0] + xs[1])


def functions_that_call_the_host(lib, log):
    seen = lambda x: lib.debug.callback(lambda v: log.append(np.asarray(v).tolist()), x)
    cosine = lambda x: lib.pure_callback(np.cos, lib.ShapeDtypeStruct((), "float32"), x)
    with_rule = lib.custom_batching.custom_vmap(lambda x: (seen(x), cosine(x))[1])
    with_rule.def_vmap(lambda size, mapped, x: ((seen(x * 100.0), lib.numpy.cos(x) * 2.0)[1], mapped[0]))
    return {
        "custom_vmap": with_rule,
        "sequential_vmap": lib.custom_batching.sequential_vmap(lambda x: (seen(x), x * 2.0)[1]),
        "solve": lambda b: lib.lax.custom_linear_solve(
            lambda x: 2.0 * x, b, lambda f, b: (seen(b), b / 2.0)[1], lambda f, b: (seen(b), b / 2.0)[1]),
    }


@pytest.mark.parametrize("name", list(functions_that_call_the_host(hx, [])))
@pytest.mark.parametrize(("convert", "lib", "np_", "other"), SIDES)
def test_functions_with_rules_may_call_the_host(convert, lib, np_, other, name):
    def told(f, *args):
        y = np.asarray(f(*args))
        hx.effects_barrier(), jax.effects_barrier()
        seen = sorted(log, key=str)
        log.clear()
        return y, seen

    log = []
    f = functions_that_call_the_host(lib, log)[name]
    for ours, theirs, x in ((convert(f), f, 2.0), (other.jit(convert(f)), f, 2.0),
                            (other.vmap(convert(f)), lib.vmap(f), X[0])):
        (y, seen), (expected, expected_seen) = told(ours, x), told(theirs, x)
        same(y, expected)
        assert seen == expected_seen
    if name == "solve":
        same(other.grad(convert(f))(2.0), np.float32(0.5))


@hx.effect(vmap="per_lane", diff="stop")
class Add:
    def result_type(op, x):
        return None


@pytest.mark.parametrize("moves", [hx.carry, hx.merge(lambda a, b: a + b, 0.0)], ids=["carry", "merge"])
def test_lanes_in_the_order_of_a_state_are_a_loop_of_jax(moves):
    adding = hx.handler({Add: lambda s, op, x: (s + x * x, None)}, moves=moves)

    def lane(x):
        lax.cond(x > 1.0, lambda: hx.perform(Add(), x), lambda: None)
        return x * x

    def f(xs):
        total, ys = hx.handle(adding, 0.0)(hx.vmap(lane))(xs)
        return total + 3.0 * ys.sum()

    xs = np.array([0.5, 1.5, 2.0], "float32")
    same(jax.grad(to_jax(f))(xs), hx.grad(f)(xs))
    same(jax.jvp(to_jax(f), (xs,), (xs,)), hx.jvp(f, (xs,), (xs,)))
    rows = np.stack([xs, xs[::-1]])
    same(jax.vmap(to_jax(f))(rows), hx.vmap(f)(rows))


def test_an_integer_result_of_an_operation_has_no_tangent():
    @hx.operation
    class HalvedAndRounded:
        multiple_results = True

        def result_type(op, x):
            return x, hx.ShapeDtypeStruct(x.shape, "int32")

        def decompose(op, x):
            return x / 2, x.astype("int32")

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), (tangents[0] / 2, None)

    f = lambda x: hx.perform(HalvedAndRounded(), x)
    (y, n), (dy, dn) = jax.jvp(to_jax(f), (X[0],), (X[1],))
    same((y, n), f(X[0])), same(dy, X[1] / 2)
    assert dn.dtype == jax.dtypes.float0
