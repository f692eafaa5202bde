"""Handlers as an algebra: installations and transformations compose, and compositions are values."""

from __future__ import annotations

import copy
import pickle
from functools import partial, reduce
from itertools import product

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.operations import Cos, Mul, Sin
from handlax.testing import counted


@hx.effect(vmap="per_lane")
class Pulse:
    by: int = 1

    def result_type(op):
        return None


def doubled(op, *xs):
    return 2 * hx.perform(op, *xs)


def forwarded_by(n, op, *xs):
    return n + 1, hx.perform(op, *xs)


TWICE = hx.handle(hx.handler({Sin: doubled}))
AS_COS = hx.handle(hx.handler({Sin: lambda op, x: hnp.cos(x), Cos: doubled}))
SINES = hx.handle(hx.handler({Sin: forwarded_by}), 0)
PRODUCTS = hx.handle(hx.handler({Mul: forwarded_by}), hnp.int32(0))
ENDING = hx.handle(hx.handler({Cos: hx.final(lambda op, x: x)}, returns=lambda y: y))
MEMBERS = [TWICE, AS_COS, SINES, PRODUCTS, hx.direct(TWICE.handler), hx.jit]


def f(x):
    return hnp.sin(x) * hnp.cos(x)


def same(x, y):
    assert hx.tree.structure(x) == hx.tree.structure(y)
    for a, b in zip(hx.tree.leaves(x), hx.tree.leaves(y)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(("a", "b"), [*product(MEMBERS[:5], MEMBERS)])
def test_a_composition_applies_the_inner_member_first(a, b):
    same((a @ b)(f)(0.5), a(b(f))(0.5))


def test_composition_is_associative_as_values():
    for a, b, c in product(MEMBERS, repeat=3):
        left, right = hx.compose(hx.compose(a, b), c), hx.compose(a, hx.compose(b, c))
        assert left == right == hx.compose(a, b, c)
        assert hash(left) == hash(right) and repr(left) == repr(right)


@pytest.mark.parametrize("a", [*MEMBERS[:5], TWICE @ SINES])
def test_the_empty_composition_is_its_identity(a):
    identity = hx.compose()
    assert a @ identity == a == identity @ a
    assert hash(a @ identity) == hash(a)
    assert identity(f) is f and identity @ identity == identity and repr(identity) == "compose()"


def test_operators_compose_installations_with_transformations_on_either_side():
    stack = hx.jit @ SINES @ hx.vmap @ TWICE
    assert stack == hx.compose(hx.jit, SINES, hx.vmap, TWICE)
    xs = hnp.arange(3.0)
    same(stack(f)(xs), hx.jit(SINES(hx.vmap(TWICE(f))))(xs))
    lanes = hx.compose(partial(hx.vmap, in_axes=1), TWICE)
    same(lanes(hnp.sum)(hnp.ones((2, 3))), hx.vmap(TWICE(hnp.sum), in_axes=1)(hnp.ones((2, 3))))


def test_order_is_meaning():
    assert TWICE @ AS_COS != AS_COS @ TWICE
    assert float((TWICE @ AS_COS)(hnp.sin)(0.0)) == 1.0  # cos, which none outside answers
    assert float((AS_COS @ TWICE)(hnp.sin)(0.0)) == 2.0  # twice the sine, which is a cosine outside


def test_equal_installations_are_made_of_equal_handlers_and_states():
    handler = SINES.handler
    assert hx.handle(handler, 0) == SINES and hash(hx.handle(handler, 0)) == hash(SINES)
    different = [0.0, 0, True, None, hnp.int32(0), hnp.float32(0), np.zeros(2), np.ones(2), {"a": 0}, [0], (0,), -0.0]
    installations = [hx.handle(handler), *[hx.handle(handler, s) for s in different]]
    assert len({*installations}) == len(installations)
    assert hx.handle(handler, np.ones(2)) == hx.handle(handler, hnp.ones(2, np.float64))
    assert hx.direct(handler, 0) != hx.handle(handler, 0) and hx.direct(handler, 0) == hx.direct(handler, 0)
    assert hx.direct(handler, 0, replay=True) != hx.direct(handler, 0)
    assert copy.copy(SINES @ TWICE) == SINES @ TWICE == copy.deepcopy(SINES @ TWICE)
    assert repr(pickle.loads(pickle.dumps(SINES @ TWICE))) == repr(SINES @ TWICE)


def test_it_prints_from_outside_in():
    assert repr(hx.jit @ SINES @ hx.direct(TWICE.handler, replay=True)) == (
        "jit @ handle(handler(Sin), 0) @ direct(handler(Sin), replay=True)"
    )
    assert repr(hx.compose(hx.jit)) == "compose(jit)"


def test_equal_compositions_share_compiled_programs():
    handler, xs = SINES.handler, hnp.arange(7.0)
    run = lambda: (hx.jit @ hx.handle(handler, 0) @ hx.handle(TWICE.handler))(f)(xs)
    assert counted(run).compiles == 1
    assert counted(run).compiles == 0
    assert counted(lambda: hx.jit(SINES(TWICE(f)))(xs)).compiles == 0


def test_a_block_enters_the_outermost_first_and_leaves_in_reverse():
    outside = hx.handlers()
    with SINES @ PRODUCTS as (sines, products):
        assert hx.handlers() == ("handler(Mul)", "handler(Sin)", *outside)
        f(hnp.float32(1.0))
        f(hnp.float32(1.0))
    assert (sines.current, int(products.current)) == (2, 2) and hx.handlers() == outside
    with hx.compose() as none:
        assert none == () and hx.handlers() == outside


def test_a_block_is_left_whole_after_an_error():
    outside = hx.handlers()
    with pytest.raises(ZeroDivisionError), SINES @ TWICE @ SINES:
        raise ZeroDivisionError
    assert hx.handlers() == outside
    with pytest.raises(errors.CannotCross, match="with block cannot be resumed"), SINES @ ENDING:
        pass
    assert hx.handlers() == outside
    with pytest.raises(errors.CannotCross, match="a with block is no function, which jit needs"), SINES @ hx.jit:
        pass
    assert hx.handlers() == outside


def test_a_composition_is_no_state_so_that_blocks_of_one_may_nest():
    both = SINES @ PRODUCTS
    with both as (outer, _):
        f(hnp.float32(1.0))
        with both as (inner, _):
            f(hnp.float32(1.0))
    assert (outer.current, inner.current) == (2, 1)


@pytest.mark.parametrize("member", [1, TWICE.handler, None, hnp.ones(2)])
def test_what_cannot_be_called_on_a_function_is_no_member(member):
    with pytest.raises(errors.BadArgument, match=r"(?s)a member must be callable.*hx.handle\(h, state\)"):
        hx.compose(TWICE, member)
    with pytest.raises((TypeError, errors.HandlaxError)):
        TWICE @ member


def test_compositions_cross_what_each_member_crosses():
    def loop(x):
        def step(c, _):
            hx.perform(Pulse(2))
            return hnp.sin(c), None

        return lax.scan(step, x, None, length=3)[0]

    pulses = hx.handle(hx.handler({Pulse: lambda n, op: (n + op.by, None)}), 0)
    stack = reduce(lambda a, b: a @ b, [pulses, SINES, hx.jit])
    n, (sines, _) = stack(loop)(1.0)
    assert (int(n), int(sines)) == (6, 3)
    value, slope = hx.compose(hx.value_and_grad, lambda f: lambda x: f(x)[1][1], stack)(loop)(1.0)
    same((value, slope), hx.value_and_grad(lambda x: hnp.sin(hnp.sin(hnp.sin(x))))(1.0))
