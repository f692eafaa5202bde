"""The functions that vjp and linearize return are trees: of their residuals, around a linear program."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.errors import BadCall, TreeMismatch

X, Y = hnp.array(0.5), hnp.array([1.0, 2.0, 3.0])
DX, DY = hnp.array(2.0), hnp.array([1.0, -1.0, 0.5])
CT = {"a": hnp.array([1.0, 2.0, -1.0]), "n": np.zeros((), hx.dtypes.float0)}


def f(x, y):
    return {"a": 3.0 * hnp.sin(x) * y, "n": 7}


def pullback(x, y):
    return hx.vjp(f, x, y)[1]


def pushforward(x, y):
    return hx.linearize(f, x, y)[1]


def pulled(pull):
    return [np.asarray(g) for g in pull(CT)]


def pushed(push):
    return [np.asarray(push(DX, DY)["a"])]


EXPECTED = {
    pullback: [3 * np.cos(0.5) * (1 + 4 - 3), 3 * np.sin(0.5) * np.array([1.0, 2.0, -1.0])],
    pushforward: [3 * np.cos(0.5) * 2 * np.asarray(Y) + 3 * np.sin(0.5) * np.asarray(DY)],
}
CALLS = {pullback: pulled, pushforward: pushed}
BOTH = pytest.mark.parametrize("make", [pullback, pushforward])


def check(make, derivative):
    for got, expected in zip(CALLS[make](derivative), EXPECTED[make], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


WAYS = {
    "as it is": lambda make: make(X, Y),
    "again a tree": lambda make: hx.tree.map(lambda x: x, make(X, Y)),
    "out of jit": lambda make: hx.jit(make)(X, Y),
    "into jit": lambda make: hx.jit(lambda d: d)(make(X, Y)),
    "cond": lambda make: hx.jit(lambda p: lax.cond(p, make, make, X, Y))(True),
    "cond of residuals": lambda make: lax.cond(False, lambda d: make(X, Y), lambda d: d, make(X, Y)),
    "carry": lambda make: lax.fori_loop(0, 3, lambda i, d: make(X, Y), make(2 * X, Y)),
    "stacked": lambda make: hx.tree.map(lambda x: x[1], lax.map(lambda x: make(x, Y), hnp.array([2.0, 0.5]))),
    "lane": lambda make: hx.tree.map(lambda x: x[1], hx.vmap(make, (0, None))(hnp.array([2.0, 0.5]), Y)),
    "checkpoint": lambda make: hx.checkpoint(make)(X, Y),
    "aux": lambda make: hx.grad(lambda x: (x, make(X, Y)), has_aux=True)(1.0)[1],
    "primal of jvp": lambda make: hx.jvp(make, (X, Y), (DX, DY))[0],
    "program": lambda make: hx.tree.unflatten(
        hx.tree.structure(make(X, Y)), hx.make_program(make)(X, Y)(X, Y)
    ),
    "pickled": lambda make: hx.tree.map(lambda x: pickle.loads(pickle.dumps(x)), make(X, Y)),
    "handler": lambda make: hx.handle(hx.handler({}))(make)(X, Y),
}


@BOTH
@pytest.mark.parametrize("way", WAYS)
def test_a_derivative_crosses(make, way):
    check(make, WAYS[way](make))


@BOTH
def test_calls_of_a_derivative_are_transformed(make):
    derivative = make(X, Y)
    call = {pullback: lambda d, c: d({"a": c, "n": CT["n"]})[1], pushforward: lambda d, c: d(DX, c)["a"]}[make]
    direct = call(derivative, DY)
    for transformed in (hx.jit(call), lambda d, c: hx.vmap(call, (None, 0))(d, c[None])[0]):
        np.testing.assert_allclose(transformed(derivative, DY), direct, rtol=1e-6)
    linear = hx.jvp(lambda c: call(derivative, c), (DY,), (Y,))[1]
    np.testing.assert_allclose(linear, call(derivative, DY + Y) - direct, rtol=1e-5)
    by_residual = hx.grad(lambda d: call(d, DY).sum())(derivative)
    assert hx.tree.structure(by_residual) == hx.tree.structure(derivative)


@BOTH
def test_the_children_are_the_residuals_and_the_program_is_shown(make):
    derivative = make(X, Y)
    leaves = hx.tree.leaves(derivative)
    assert {id(x) for x in leaves} == {id(x) for x in derivative.residuals} and len(leaves) == len(derivative.residuals)
    numbers = sorted(float(x) for x in leaves if x.shape == ())
    np.testing.assert_allclose(numbers, sorted((np.cos(0.5), 3 * np.sin(0.5))), rtol=1e-6)
    assert 3.0 not in [x.tolist() for x in leaves], "a number of the function stands in the program"
    assert str(derivative.program) in repr(derivative)
    assert derivative.jaxpr == derivative.program
    argument = [CT["a"]] if make is pullback else [DX, DY]
    results = derivative.program(*derivative.residuals, *argument)
    for got, expected in zip(results, EXPECTED[make], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@BOTH
def test_equal_programs_are_one_structure(make):
    first, second = make(X, Y), make(2 * X, Y + 1)
    assert hx.tree.structure(first) == hx.tree.structure(second)
    assert hash(hx.tree.structure(first)) == hash(hx.tree.structure(second))
    assert hx.tree.structure(make(X, Y[:2])) != hx.tree.structure(first)
    traces = []
    g = hx.jit(lambda d: traces.append(1) or d.residuals[0])
    g(first), g(second)
    assert len(traces) == 1


@pytest.mark.parametrize("x", [2.0, hnp.array(2.0), hnp.asarray(2.0), np.float32(2.0)])
def test_a_number_that_is_an_argument_is_a_residual(x):
    (residual,) = hx.tree.leaves(hx.vjp(lambda x: 5.0 * x * x, x)[1])[:1]
    assert float(residual) in (2.0, 10.0)
    assert hx.tree.structure(hx.vjp(hnp.sin, 1.0)[1]) == hx.tree.structure(hx.vjp(hnp.sin, 2.0)[1])


def test_without_residuals_there_are_no_children():
    for fun in (lambda x: x, lambda x: 2.0 * x, lambda x: 4.0):
        _, pull = hx.jit(lambda x, fun=fun: hx.vjp(fun, x))(3.0)
        assert hx.tree.leaves(pull) == []
        assert float(pull(1.0)[0]) == float(hx.grad(fun)(3.0))


@pytest.mark.parametrize("wrap", [
    lambda g: g, hx.jit, lambda g: lambda x: hx.vmap(g)(x[None])[0], hx.checkpoint,
    lambda g: lambda x: lax.scan(lambda c, x: (c, g(x)), 0.0, x[None])[1][0],
])
def test_a_pullback_is_the_residual_of_a_custom_rule(wrap):
    g = hx.custom_vjp(lambda x: hnp.sin(x) * x)
    g.defvjp(lambda x: hx.vjp(lambda x: hnp.sin(x) * x, x), lambda pull, ct: pull(3.0 * ct))
    expected = 3 * (np.cos(0.5) * 0.5 + np.sin(0.5))
    np.testing.assert_allclose(hx.grad(wrap(g))(X), expected, rtol=1e-6)
    np.testing.assert_allclose(wrap(hx.grad(g))(X), expected, rtol=1e-6)


def test_a_loop_of_the_linear_part_is_in_the_program():
    _, pull = hx.jit(lambda x: hx.vjp(lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=3)[0], x))(X)
    np.testing.assert_allclose(pull(1.0)[0], 4 * 0.5**3)
    assert any(op.bodied for op in pull.linear.tape.ops)


def test_mistakes_are_named_after_a_crossing_too():
    for pull, push in ((pullback(X, Y), pushforward(X, Y)), (hx.jit(pullback)(X, Y), hx.jit(pushforward)(X, Y))):
        with pytest.raises(TreeMismatch, match="structure of the result"):
            pull([1.0])
        with pytest.raises(BadCall, match="one cotangent"):
            pull(CT, CT)
        with pytest.raises(TreeMismatch, match="structure"):
            push(DX)
        with pytest.raises(hx.errors.Immutable):
            pull.linear = None


def test_the_cotangent_of_an_integer_result_is_any_array_of_its_shape():
    _, pull = hx.vjp(lambda x: (x, hnp.int32(3)), 1.0)
    for ct in (3, hnp.int32(3), 3.0, True, np.zeros((), hx.dtypes.float0)):
        assert pull((1.0, ct)) == (1.0,)
    with pytest.raises(TypeError, match="float0"):
        pull((1.0, np.ones(2, "int32")))


def test_what_backward_rules_log_leaves_the_pullback():
    f = hx.custom_vjp(lambda x, y: hnp.sin(x) * y)
    backward = lambda r, ct: ((r[0] * ct, r[1] * ct), {"ct": {"out": ct}})
    f.defvjp_with_logs(lambda x, y: (f(x, y), (hnp.cos(x) * y, hnp.sin(x))), backward)
    xs = hnp.arange(1.0, 4.0)
    for g, x, shape in (
        (f, (1.0, 2.0), ()), (hx.jit(f), (1.0, 2.0), ()), (hx.vmap(f, (0, None)), (xs, 2.0), (3,)),
        (lambda xs: lax.scan(lambda c, x: (c + f(x, 2.0), None), 0.0, xs)[0], (xs,), (3,)),
        (hx.checkpoint(lambda x, y: 3.0 * f(x, y)), (1.0, 2.0), ()),
    ):
        y, pull = hx.vjp(g, *x)
        cts, logs = pull.with_logs(hnp.ones_like(y))
        assert hnp.allclose(cts[0], pull(hnp.ones_like(y))[0]) and logs["ct"]["out"].shape == shape
    logs = hx.jit(lambda x: hx.vjp(f, x, 2.0)[1].with_logs(3.0)[1])(1.0)
    assert logs == {"ct": {"out": 3.0}} and hx.vjp(hnp.sin, 1.0)[1].with_logs(1.0)[1] == {}


def test_of_two_logs_of_one_name_none_is_lost():
    f = hx.custom_vjp(lambda x: x * x)
    f.defvjp_with_logs(lambda x: (x * x, x), lambda r, ct: ((2 * r * ct,), {"n": ct}))
    for g in (lambda x: f(f(x)), hx.jit(lambda x: f(f(x))), lambda x: lax.cond(x > 0, f, lambda x: x, x) + f(x)):
        with pytest.raises(errors.BadArgument, match="with_logs: a name must be logged by one call") as found:
            hx.vjp(g, 1.0)[1].with_logs(1.0)
        assert "in nondiff_argnums" in str(found.value)
        assert hx.vjp(g, 2.0)[1](1.0)[0] == hx.grad(g)(2.0)
    named = hx.custom_vjp(lambda x, name: x * x, nondiff_argnums=(1,))  # what the hint says
    named.defvjp_with_logs(lambda x, name: (x * x, x), lambda name, r, ct: ((2 * r * ct,), {name: ct}))
    cts, logs = hx.vjp(lambda x: named(named(x, "inner"), "outer"), 3.0)[1].with_logs(1.0)
    assert (cts, logs) == ((108.0,), {"outer": 1.0, "inner": 18.0})


@pytest.mark.parametrize("given", [1j, hnp.array(1j), 2.0, 2])
@pytest.mark.parametrize("call", [
    lambda x, dx: hx.jvp(hnp.sin, (x,), (dx,))[1], lambda x, dx: hx.linearize(hnp.sin, x)[1](dx),
    lambda x, dx: hx.vjp(hnp.sin, x)[1](dx)[0],
])
def test_a_complex_tangent_of_a_real_value_is_refused(call, given):
    np.testing.assert_allclose(call(hnp.array(0.3j), given), np.cos(0.3j) * np.asarray(given), rtol=1e-6)
    if np.iscomplexobj(given):
        with pytest.raises(errors.DTypeMismatch, match=r"a (co)?tangent has .* float32, got complex64"):
            call(0.3, given)
    else:
        np.testing.assert_allclose(call(0.3, given), np.cos(0.3) * given, rtol=1e-6)


TENTH = 0.1  # in float32 another number
WIDE = hnp.ones((), "float64")


def with_tangent(number):
    f = hx.custom_jvp(lambda x: x)
    f.defjvp(lambda xs, dxs: (xs[0], number))
    return f


def with_cotangent(number):
    f = hx.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (number,))
    return f


@pytest.mark.parametrize("number", [TENTH, np.float64(TENTH)], ids=["Python", "NumPy"])
def test_a_number_given_as_a_tangent_is_rounded_once(number):
    found = {
        "jvp": hx.jvp(hnp.sin, (0 * WIDE,), (number,))[1],
        "linearize": hx.linearize(hnp.sin, 0 * WIDE)[1](number),
        "vjp": hx.vjp(hnp.sin, 0 * WIDE)[1](number)[0],
        "linear_transpose": hx.linear_transpose(lambda x: 1.0 * x, WIDE)(number)[0],
        "custom_jvp": hx.jvp(with_tangent(number), (WIDE,), (WIDE,))[1],
        "custom_vjp": hx.grad(with_cotangent(number))(WIDE),
    }
    for name, y in found.items():
        assert (y.dtype, float(y)) == ("float64", TENTH), name
