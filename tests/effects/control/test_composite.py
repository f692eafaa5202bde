"""Composites are operations by name in StableHLO, and functions everywhere else."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax, operations
from handlax import numpy as hnp
from handlax.effects.programs.higher_order import Call

X = np.float32([0.5, -1.0, 2.0])
square = lax.composite(lambda x: x * x, "my.square")


def lines(f, *args):
    text = hx.jit(f).lower(*args).as_text()
    return [line.strip() for line in text.splitlines() if "stablehlo.composite" in line]


def test_a_composite_is_one_operation_with_its_decomposition():
    text = hx.jit(square).lower(X).as_text()
    line = 'stablehlo.composite "my.square" %arg0 {decomposition = @my.square} : (tensor<3xf32>) -> tensor<3xf32>'
    assert line in text and "func.func private @my.square(" in text
    for f in (square, hx.jit(square), hx.checkpoint(square)):
        np.testing.assert_array_equal(f(X), X * X)


def test_attributes_are_written_with_their_types():
    def f(x):
        return lax.composite(lambda x, **_: (x, x), "my.f", version=2)(
            x, **{"n o": 1, "\u00e9": 2}, b=True, a=3, none=None, f=2.5, e=1e30, h=np.float32(np.inf), i=np.int8(-3),
            s='a"\\\n', t=(1, "x", ()), d=np.dtype("bfloat16"), z=np.arange(2), y=b"raw",
        )

    (line,) = lines(f, X)
    assert (
        '{a = 3 : i64, b = true, d = bf16, e = 1.0e+30 : f64, f = 2.5 : f64, h = 0x7F800000 : f32, i = -3 : i8, '
        '"n o" = 1 : i64, s = "a\\22\\5C\\0A", t = [1 : i64, "x", []], y = "raw", '
        'z = dense<[0, 1]> : tensor<2xi64>, "\\C3\\A9" = 2 : i64}'
    ) in line and "version = 2 : i32" in line
    for y in hx.jit(f)(X):
        np.testing.assert_array_equal(y, X)


def test_what_changes_the_decomposition_leaves_a_call_without_the_name():
    twice = hx.handler({operations.Mul: lambda op, x, y: 2 * hx.perform(op, x, y)})
    for f, wanted in (
        (hx.vmap(square), X * X), (lambda x: hx.jvp(square, (x,), (X,))[1], 2 * X * X),
        (hx.vmap(hx.grad(square)), 2 * X), (hx.handle(twice)(square), 2 * X * X),
    ):
        assert not lines(f, X)
        for g in (f, hx.jit(f)):
            np.testing.assert_array_equal(g(X), wanted)
    assert len(lines(lambda x: hx.value_and_grad(lambda x: square(x).sum())(x)[0] + square(x), X)) == 1


def test_a_composite_over_its_own_body_is_itself():
    (op,) = hx.make_program(lambda x: lax.composite(hnp.sin, "my.f")(x))(1.0).ops
    (other,) = hx.make_program(lambda x: lax.composite(hnp.cos, "my.f")(x))(1.0).ops
    assert op.with_bodies(list(op.bodies)) is op.map_bodies(lambda body: body) is op
    assert op.with_bodies(other.bodies) == other.as_call() == Call(other.bodies, "my.f")


def test_a_composite_crosses_loops_branches_and_linear_functions():
    def f(x):
        y = lax.scan(lambda c, _: (square(c), None), x, None, 2)[0]
        return lax.cond(x > 0, square, lambda x: -x, y)

    assert (f(2.0), hx.jit(f)(2.0), hx.grad(f)(2.0), hx.jit(hx.grad(f))(-1.5)) == (256.0, 256.0, 1024.0, 13.5)
    double = lax.composite(lambda x: 2 * x, "my.double")
    assert hx.linear_transpose(double, 1.0)(3.0)[0] == hx.linearize(double, 1.0)[1](3.0) == 6.0
    assert hx.hessian(square)(3.0) == 2.0


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op): return None


def test_an_effect_of_the_decomposition_is_handled_outside():
    def ticking(x):
        hx.perform(Tick())
        return x + 1

    counter = hx.handler({Tick: lambda n, op: (n + 1, None)})
    f = hx.handle(counter, 0)(lax.composite(ticking, "my.ticking"))
    for g in (f, hx.jit(f)):
        assert [float(y) for y in g(2.0)] == [1.0, 3.0]


def test_large_constants_are_the_first_operands():
    table = np.arange(2000.0, dtype=np.float32)
    add = lax.composite(lambda x: x + table, "my.add")
    (line,) = lines(add, np.float32(1))
    assert '"my.add" %arg0, %arg1' in line and "(tensor<2000xf32>, tensor<f32>)" in line
    np.testing.assert_array_equal(hx.jit(add)(np.float32(1)), table + 1)


def test_two_decompositions_of_a_name_are_two_functions():
    other = lax.composite(lambda x: x + 1, "my.square")
    found = lines(lambda x: square(x) + other(x) + square(x), X)
    assert [line.count("@my.square}") for line in found] == [1, 0, 1] and len(found) == 3
    np.testing.assert_array_equal(hx.jit(lambda x: square(x) + other(x))(X), X * X + X + 1)


def test_a_program_with_a_composite_is_read_back():
    f = lax.composite(lambda x, *, k, a: lax.top_k(x, k), "my.top_k", version=3)
    program = hx.make_program(lambda x: f(x, k=2, a=np.arange(3)))(X)
    again = hx.parse_program(str(program), program.constants).unwrap()
    assert again == program and hash(again) == hash(program)
    assert program != hx.make_program(lambda x: f(x, k=2, a=np.arange(1, 4)))(X)


def test_what_is_no_composite_is_refused():
    with pytest.raises(errors.BadArgument, match="words with dots"):
        lax.composite(abs, "square")
    with pytest.raises(errors.NotAFunction):
        lax.composite(3, "my.f")
    with pytest.raises(errors.BadArgument, match=r"attributes must be numbers.*ConcreteArray"):
        lax.composite(lambda x, a: x, "my.f")(X, a=hnp.ones(2))
    with pytest.raises(errors.EscapedBox, match="its arguments alone"):
        hx.jit(lambda x: lax.composite(lambda: x + 1, "my.f")())(X)
