"""Nestings that once went wrong: each was found by the laws of generated nests."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax import operations as o
from handlax.effects.base.errors import MissingRule
from handlax.effects.base.stack import STACK, installed
from handlax.effects.core.arrays import as_array
from handlax.effects.operations.elementwise.arithmetic import Mul
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.extend import Box, Column, cross, inside
from handlax.interpreters.core.body_transform import BodyTransformer
from handlax.interpreters.differentiation import partial_eval

x = np.float32(0.5)


@hx.effect(vmap="once", diff="stop")
class Ask:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "float32").type


def test_a_linear_transpose_reads_values_of_transformations_around_it():
    def scaled(x):
        return hx.linear_transpose(lambda d: hnp.sin(x) * d, x)(1.0)[0]

    np.testing.assert_allclose(hx.grad(scaled)(x), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(hx.vmap(scaled)(hnp.arange(3.0)), np.sin(np.arange(3)), rtol=1e-6)
    np.testing.assert_allclose(hx.jit(scaled)(x), np.sin(x), rtol=1e-6)


def test_a_test_that_computes_more_than_it_needs_has_an_adjoint():
    def more(carry):
        hnp.tanh(carry[1])
        return carry[0] < 3

    def f(x):
        return lax.while_loop(more, lambda c: (c[0] + 1, hnp.sin(c[1])), (0, x), max_steps=4)[1]

    wanted = hx.grad(lambda x: hnp.sin(hnp.sin(hnp.sin(x))))(x)
    np.testing.assert_allclose(hx.grad(f)(x), wanted, rtol=1e-6)
    transposed = hx.linear_transpose(lambda dx: hx.jvp(f, (x,), (dx,))[1], x)
    np.testing.assert_allclose(transposed(1.0)[0], wanted, rtol=1e-6)


def test_a_rule_whose_results_are_the_same_in_all_lanes_fits_lanes_along_any_dimension():
    f = hx.custom_vjp(lambda x: (x, hnp.float32(2.0)))
    f.defvjp(lambda x: (f(x), None), lambda _, cts: (cts[0],))
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    ys, twos = hx.vmap(f, in_axes=1)(w)
    np.testing.assert_array_equal(ys, w.T)
    np.testing.assert_array_equal(twos, [2, 2, 2])


def test_what_is_computed_again_is_known_to_the_adjoint_of_its_derivative():
    f = hx.checkpoint(hnp.sin)
    pulled = hx.linear_transpose(lambda ct: hx.vjp(f, x)[1](ct)[0], x)
    np.testing.assert_allclose(pulled(2.0)[0], 2 * np.cos(x), rtol=1e-6)
    ruled = hx.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), x), lambda x, ct: hx.vjp(f, x)[1](ct))
    np.testing.assert_allclose(hx.jvp(ruled, (x,), (hnp.float32(3.0),))[1], 3 * np.cos(x), rtol=1e-6)


def test_a_crossing_is_remembered_for_equal_operations():
    def f(x):
        return hnp.sum(lax.scan(lambda c, w: (hnp.sin(c * w) + 0.125, c), x, hnp.ones(5))[1])

    def tangent(x):
        return hx.jvp(f, (x,), (x,))[1]

    first = hx.make_program(tangent)(x)
    before = hx.cache_info()["cross"]
    again = hx.make_program(tangent)(x)
    after = hx.cache_info()["cross"]
    assert again == first
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 0)


def test_what_a_crossing_remembers_is_split_once_for_each_setting(monkeypatch):
    @hx.checkpoint
    def f(x):
        return hnp.sum(hnp.sin(x) * 0.375)

    made = []
    once = partial_eval.split_bodies
    monkeypatch.setattr(partial_eval, "split_bodies", lambda *args: made.append(args) or once(*args))
    first = hx.grad(f)(x)
    assert hx.grad(f)(x) == first
    assert len(made) == 1
    with hx.rules(jvp={Sin: lambda op, xs, dxs: (hx.perform(op, *xs), dxs[0])}):
        other = hx.grad(f)(x)
    assert len(made) == 2
    assert other != first
    assert hx.grad(f)(x) == first


def test_a_crossing_that_a_handler_around_has_a_part_in_is_not_remembered():
    def f(x):
        return lax.scan(lambda c, _: (c * hx.perform(Ask()), None), x, None, 2)[0]

    for answer in (2.0, 3.0):
        handled = hx.handle(hx.handler({Ask: lambda op, answer=answer: hnp.float32(answer)}))
        np.testing.assert_allclose(handled(hx.grad(f))(x), answer**2)
        np.testing.assert_allclose(handled(hx.vmap(f))(hnp.ones(3)), np.full(3, answer**2))


def test_the_adjoint_of_a_loop_follows_the_rules_in_force():
    slope = hx.grad(lambda x: lax.scan(lambda c, _: (c * 2.0, None), x, None, 3)[0])
    assert slope(1.0) == 8.0
    with hx.rules(transpose={Mul: lambda op, ct, x, y, *, wrt: ct}):
        assert slope(1.0) == 1.0
    assert slope(1.0) == 8.0


@hx.effect(vmap="per_lane", diff="stop")
class Scale:
    def result_type(op, x):
        return x


def handled(kind, f, calls):
    """The result of ``f`` under a handler of Scale, whose clause appends to ``calls``."""
    scaled = lambda x: (calls.append(x), 1.5 * x)[1]
    forwarding = hx.handler({Scale: lambda op, x: scaled(hx.perform(op, x))})
    outside = hx.handler({Scale: lambda s, op, x: (s + x, x)})
    return {
        "stateless": hx.handle(hx.handler({Scale: lambda op, x: scaled(x)}))(f),
        "carry": lambda x: hx.handle(hx.handler({Scale: lambda s, op, x: (s + x, scaled(x))}), 0.0)(f)(x)[1],
        "split": lambda x: hx.handle(
            hx.handler({Scale: lambda s, op, x: (s, scaled(x) + s)}, moves=hx.split(lambda s, n: s * hnp.ones(n))), 1.0
        )(f)(x)[1],
        "append": lambda x: hx.handle(
            hx.handler({Scale: lambda s, op, x: ((*s, x), scaled(x))}, moves=hx.append), ()
        )(f)(x)[1],
        "forwarding": lambda x: hx.handle(outside, 0.0)(hx.handle(forwarding)(f))(x)[1],
        "final": hx.handle(hx.handler({Scale: hx.final(lambda op, x: scaled(x))}))(f),
    }[kind]


WRAPS = {
    "jit": lambda f: hx.jit(lambda x: f(x) + f(x)),
    "branch": lambda f: lambda x: lax.cond(x.sum() > 1.0, lambda: f(x), lambda: f(2 * x)),
    "loop": lambda f: hx.jit(lambda x: lax.fori_loop(0, 2, lambda i, y: 0.5 * (f(y) + f(x)), x)),
}
AROUND = {
    "alone": lambda handle, f: handle(f),
    "inside grad": lambda handle, f: handle(hx.grad(f)),
    "inside vmap": lambda handle, f: lambda x: handle(lambda x: hx.vmap(f)(x[None] * hnp.ones(2)).sum())(x),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", ["stateless", "carry", "split", "append", "forwarding", "final"])
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_function_that_is_called_twice_at_each_level_is_transformed_once(wrap, kind, around):
    def clause_calls(depth):
        calls = []
        f = lambda x: hx.perform(Scale(), x)
        for _ in range(depth):
            f = WRAPS[wrap](f)
        hx.make_program(AROUND[around](lambda g: handled(kind, g, calls), f))(1.0)
        return len(calls)

    assert clause_calls(6) == clause_calls(2) > 0


def test_integers_that_bodies_pass_on_are_the_operands():
    count, x = hnp.int32(7), hnp.linspace(0.0, 1.0, 4)
    louder = hx.handle(hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)}))
    for f in (
        hx.jit(lambda n, x: (n, hnp.sin(x))),
        lambda n, x: lax.fori_loop(0, 2, lambda i, c: (c[0], hnp.sin(c[1])), (n, x)),
        lambda n, x: lax.cond(x[0] < 1, lambda n, x: (n, hnp.sin(x)), lambda n, x: (n, -x), n, x),
    ):
        n, y = louder(f)(count, x)
        assert n is count and (y != f(count, x)[1])[1:].all()


@pytest.mark.parametrize("fold", [
    lambda xs, starts, f: lax.reduce(xs, starts, f, (0,)),
    lambda xs, starts, f: lax.reduce_window(xs, starts, f, (2, 1)),
], ids=["reduce", "reduce_window"])
def test_a_fold_that_keeps_its_start_has_the_shape_of_its_elements(fold):
    xs = hnp.arange(6, dtype="int32").reshape(3, 2), hnp.linspace(0.0, 1.0, 6).reshape(3, 2)

    def kept(*xs):
        return fold(xs, (np.int32(7), np.float32(0.0)), lambda a, b: (a[0], a[1] + hnp.sin(b[1])))

    louder = hx.handle(hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)}))
    for y, expected in zip(louder(kept)(*xs), kept(*xs)):
        assert y.shape == expected.shape
    assert (louder(kept)(*xs)[0] == 7).all()


def test_an_operation_without_a_rule_or_a_decomposition_is_refused_in_three_lines():
    run = BodyTransformer(STACK.get(), "counting")
    with installed(run), pytest.raises(MissingRule) as caught:
        run.decompose(Sin(), (as_array(1.0),))
    assert "counting: sin has neither a rule nor a decomposition." in str(caught.value)
    assert "@hx.columns.decompose.rule(Sin)" in caught.value.hint


class Sized(Box):
    __slots__ = ("value", "number")

    def __init__(self, run, value, number):
        self.run, self.type, self.value, self.number = run, value.type, value, number


NUMBER = Column("number", doc="what an operation adds to the number of its operands")
NUMBER.rule(o.Sin)(lambda op: 1)
NUMBER.rule(o.Add, o.ConvertElementType)(lambda op: 0)


class Numbering(BodyTransformer):
    """Marks are numbers: the largest of the operands', and one more at each ``sin``."""

    most = float("inf")

    def split(self, x):
        return (x.number, (x.value,)) if x.run is self else (None, (x,))

    def box(self, mark, parts):
        return parts[0] if mark is None else Sized(self, parts[0], mark)

    def join(self, marks):
        return max([mark for mark in marks if mark is not None], default=None)

    def answer(self, op, operands):
        if all([x.run is not self for x in operands]):
            return self.outer.answer(op, operands)
        with inside(self.outer):
            if op.bodied:
                return cross(self, op, operands)
            number = self.join([self.split(x)[0] for x in operands]) + NUMBER.find(type(op))(op)
            y = self.outer.answer(op, tuple([self.split(x)[1][0] for x in operands]))
            return Sized(self, y, min(number, self.most))


class Bounded(Numbering):
    most = 7


def numbered(f, kind=Numbering):
    def counted(x):
        run = kind(STACK.get(), "numbered")
        with installed(run):
            return f(Sized(run, as_array(x), 0)).number

    return counted


def repeated(step):
    return lambda x: lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]


def test_marks_without_a_fixed_point_are_refused():
    assert numbered(lambda x: repeated(lambda c: c + 1.0)(hnp.sin(x)))(1.0) == 1
    message = r"scan: the marks of numbered must reach a fixed point.*got \d+ after \d+(.|\n)*Numbering.carried"
    with pytest.raises(errors.CannotCross, match=message):
        numbered(repeated(hnp.sin))(1.0)
    assert numbered(repeated(hnp.sin), Bounded)(1.0) == 7


def test_a_mark_passes_through_many_carries():
    n = 100
    rotate = lambda c, _: ((*c[1:], c[0]), None)
    f = lambda x: lax.scan(rotate, (*[hnp.float32(0.0)] * n, hnp.sin(x)), None, length=3)[0][0]
    assert numbered(f)(hnp.float32(1.0)) == 1


def without_a_rule(x):
    y = x + 1.0
    return hnp.cos(y)    # the line


@pytest.mark.parametrize("nest", [
    lambda f: f, hx.jit, repeated, lambda f: hx.jit(repeated(f)), lambda f: lambda x: lax.cond(True, f, f, x),
])
def test_an_error_of_an_interpreter_names_the_line_that_performs(nest):
    line = f"test_body_transform.py:{without_a_rule.__code__.co_firstlineno + 2}"
    for outer in (lambda f: f, hx.jit):
        with pytest.raises(errors.MissingRule, match=line):
            outer(lambda x: numbered(nest(without_a_rule))(x))(1.0)


def test_a_choice_by_a_box_says_how_it_can_be_made():
    f = lambda x: lax.cond(x, lambda: 1.0, lambda: 2.0)
    with pytest.raises(errors.CannotCross, match=r"numbered(.|\n)*hint: .*Numbering.choose\(self, op, operands\)"):
        numbered(f)(True)
