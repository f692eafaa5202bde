"""Where the first NaN comes from."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import nan_origin


def f(x):
    y = hnp.log(x)
    z = hnp.sqrt(y - 1)      # the root
    return z * 2


def said(origin):
    found = origin.get()
    return None if found is None else found.splitlines()[0]


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_the_operation_and_the_line_are_named(wrap):
    line = f.__code__.co_firstlineno + 2
    for g in (nan_origin(wrap(f)), wrap(nan_origin(f))):
        assert said(g(10.0)[0]) is None
        assert said(g(-1.0)[0]).startswith("log made the first NaN, in f32[]")
        origin, y = g(1.0)
        assert said(origin).startswith("sqrt made the first NaN, in f32[]") and np.isnan(y)
        assert f"test_nan_origin.py:{line}" in origin.get()
        with pytest.raises(errors.FoundNaN, match="sqrt"):
            origin.throw()


def test_loops_and_branches_are_looked_into():
    scan = lambda x: lax.scan(lambda c, y: (hnp.sqrt(c - y), None), x, hnp.arange(3.0))[0]
    cond = lambda x: lax.cond(x > 0, lambda: hnp.log(-x), lambda: x)
    loop = lambda x: lax.while_loop(lambda c: c > -5.0, lambda c: hnp.log(c) - 1, x)
    test = lambda x: lax.while_loop(lambda c: hnp.sqrt(c) > 1, lambda c: c - 8.0, x)
    for wrap in (lambda f: f, hx.jit):
        assert said(nan_origin(wrap(scan))(5.0)[0]) == "sqrt made the first NaN, in f32[]."
        assert said(nan_origin(wrap(scan))(50.0)[0]) is None
        assert said(nan_origin(wrap(cond))(1.0)[0]).startswith("log made")
        assert said(nan_origin(wrap(cond))(-1.0)[0]) is None
        assert said(nan_origin(wrap(loop))(5.0)[0]).startswith("log made")
        assert said(nan_origin(wrap(test))(5.0)[0]).startswith("sqrt made")


def test_the_backward_pass_is_looked_into():
    root = lambda x: hnp.where(x > 0, hnp.sqrt(x), 0.0)
    origin, slope = nan_origin(hx.grad(root))(0.0)
    assert np.isnan(slope) and "made the first NaN" in said(origin)
    assert said(nan_origin(root)(0.0)[0]) is None


def test_the_index_and_the_lane_are_named():
    xs = hnp.array([10.0, 1.0, -1.0])
    assert said(nan_origin(hx.vmap(f))(xs)[0]) == "log made the first NaN, in f32[3] at index [2]."
    assert said(hx.vmap(nan_origin(f))(xs)[0]).endswith("in lane 1.")
    grid = hnp.array([[1.0, 2.0], [-3.0, 1.0]])
    assert said(nan_origin(lambda x: hnp.log(x) @ x)(grid)[0]) == "log made the first NaN, in f32[2,2] at index [1, 0]."


def test_a_nan_that_an_argument_brings_is_told_apart():
    origin, _ = nan_origin(lambda p, y: p["w"] * y)({"w": hnp.array([1.0, hnp.nan])}, 2.0)
    assert said(origin) == "the argument [0]['w'] came with a NaN, in f32[2] at index [1]."


def test_a_sum_over_lanes_does_not_make_the_nan_of_another_lane():
    total = hx.vmap(nan_origin(lambda x: lax.psum(hnp.log(x), "i")), axis_name="i")
    assert said(total(hnp.array([1.0, -1.0]))[0]) == "log made the first NaN, in f32[] in lane 1."


def test_what_is_no_float_is_left_alone():
    assert said(nan_origin(lambda x: (x + 1, x > 2, x.astype("complex64")))(hnp.arange(3))[0]) is None
    assert said(nan_origin(lambda x: hnp.zeros((0,)) * x)(hnp.inf)[0]) is None
    assert "made" in said(nan_origin(lambda x: (x * 1j) * hnp.inf)(hnp.float32(0.0))[0])


def test_results_are_those_without_it():
    g = lambda x: lax.scan(lambda c, y: (c * hnp.cos(y), c), 1.0, x)
    x = hnp.arange(4.0)
    for a, b in zip(hx.tree.leaves(nan_origin(g)(x)[1]), hx.tree.leaves(g(x))):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("lengths", [(2, 1), hnp.array([2, 1])], ids=["known", "values"])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_spare_rows_of_a_ragged_argument_belong_to_no_lane(wrap, lengths):
    def found(f, *rows):
        rows = hnp.concatenate([hnp.array(rows), hnp.full(2, hnp.nan)])
        return said(wrap(nan_origin(hx.vmap(f, hx.ragged_axis)))(hx.Ragged(rows, lengths, 2))[0])

    assert found(lambda row: hnp.log(row).sum(), 1.0, 2.0, 3.0) is None
    assert found(lambda row: hnp.log(row - 2).sum(), 1.0, 2.0, 3.0).startswith("log made the first NaN")
    assert "at index [1]" in found(lambda row: row.sum(), 1.0, hnp.nan, 3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, lambda f: hx.jit(hx.checkpoint(f))])
def test_the_scopes_are_named_of_equal_loops_too(wrap):
    def step(x):
        with hx.named_scope("root"):
            return lax.scan(lambda c, _: (hnp.sqrt(c - 1.0), None), x, None, length=1)[0]

    def network(x):
        for name in ("first", "second", "third"):
            with hx.named_scope(name):
                x = step(x)
        return x

    for x, name in ((3.0, "third"), (1.5, "second"), (0.0, "first")):
        assert f", in {name}/root" in nan_origin(wrap(network))(x)[0].get()


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op):
        return {"mean": hx.ArrayType((), hnp.float32), "scale": hx.ArrayType((2,), hnp.float32)}


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_the_answer_of_an_effect_can_be_the_first_nan(wrap):
    answer = hx.handle(hx.handler({Ask: lambda op: {"mean": 0.0, "scale": hnp.array([1.0, hnp.nan])}}))
    asking = lambda x: hx.perform(Ask())["scale"] * x
    assert said(answer(wrap(nan_origin(asking)))(2.0)[0]) == "ask answered with the first NaN, in f32[2] at index [1]."
    assert said(answer(hx.vmap(nan_origin(asking)))(hnp.ones(3))[0]).endswith("at index [1] in lane 0.")
    assert said(answer(nan_origin(hx.vmap(asking)))(hnp.ones(3))[0]).endswith("at index [1] in lane 0.")
    reading = lambda x: hx.library.get("mean") * x
    _, (origin, _) = hx.handle(hx.library.state, {"mean": hnp.float32(hnp.nan)})(wrap(nan_origin(reading)))(2.0)
    assert said(origin) == "get answered with the first NaN, in f32[]."


def test_an_answer_that_is_a_python_object_is_passed_on():
    @hx.effect
    class Name:
        def result_type(op):
            return object

    answer = hx.handle(hx.handler({Name: lambda op: {"a", "b"}}))
    assert answer(lambda: nan_origin(lambda: hx.perform(Name()))()[1])() == {"a", "b"}


def test_sizes_that_the_execution_knows_are_those_of_the_index():
    a, b = hx.export.symbolic_shape("a, b")
    searched = hx.jit(lambda x: nan_origin(lambda x: hnp.log(x).T)(x)[0])
    exported = hx.export.export(searched)(hx.ShapeDtypeStruct((a, b), hnp.float32))
    assert said(exported.call(hnp.array([[1.0, 2.0, 3.0], [1.0, 1.0, -1.0]]))).endswith("f32[a,b] at index [1, 2].")


def test_an_equation_adds_one_reduction_and_scalars_to_the_program():
    """What XLA compiles slowly, branches and vectors that depend on each equation, is not there."""
    chain = lambda x: hnp.log(hnp.sqrt(hnp.log(x)))
    ops = hx.make_program(lambda x: nan_origin(chain)(x)[0].number)(hnp.ones((3, 4))).ops
    names = [op.name for op in ops]
    assert names.count("reduce_min") == 4 and names.count("concatenate") == 1 and "cond" not in names
