"""A handler that answers nothing of a function changes none of its derivatives and lanes, whatever state it has.

    derivative(handled(f)) == derivative(f)        f performs nothing that the handler answers

``f`` has a rule of its own, which calls functions that have rules too, or is all that is known of its derivative: the
state passes through these rules, which neither change it nor must say how it would be differentiated.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.custom_batching import custom_vmap, sequential_vmap
from handlax.custom_derivatives import linear_call
from handlax.experimental import checkify


@hx.effect(vmap="per_lane", diff="stop")
class Say:
    def result_type(op, x):
        return None


def with_state(clause, state, moves=hx.carry):
    handler = hx.handler({Say: clause}, moves=moves)
    return lambda f: lambda x: hx.handle(handler, state)(f)(x)[1]


adding = lambda s, op, x: (s + x, None)
HANDLED = {
    "carry": with_state(adding, 0.0),
    "merge": with_state(adding, 0.0, hx.merge(lambda a, b: a + b, 0.0)),
    "append": with_state(lambda s, op, x: ((*s, x), None), (), hx.append),
    "state": lambda f: lambda x: hx.handle(hx.library.state, {"n": hnp.float32(1.0)})(f)(x)[1],
    "writer": lambda f: lambda x: hx.handle(hx.library.writer, ())(f)(x)[1],
    "reap": lambda f: lambda x: hx.library.call_and_reap(f)(x)[0],
    "plant": lambda f: lambda x: hx.plant(f)({}, x),
    "harvest": lambda f: lambda x: hx.library.harvest(f)({}, x)[0],
    "seed": lambda f: hx.random.keyless.seed(f, hx.random.key(0)),
    "user_checks": lambda f: lambda x: checkify.checkify(f, errors=checkify.user_checks)(x)[1],
}


def by_jvp(f, slope):
    g = hx.custom_jvp(f)
    g.defjvp(lambda xs, dxs: (g(*xs), dxs[0] * slope(*xs)))
    return g


def by_vjp(f, slope):
    g = hx.custom_vjp(f)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * slope(x),))
    return g


def by_lanes(f, lane=None):
    g = custom_vmap(f)
    g.def_vmap(lambda n, mapped, x: (hx.vmap(lane or f)(x), True))
    return g


def from_host(x):
    result = hx.ShapeDtypeStruct((), "float32")
    return hx.pure_callback(lambda v: np.asarray(v) ** 2, result, x, vmap_method="sequential")


square, double = lambda x: x * x, lambda x: 2 * x
SQUARES = {
    "custom_jvp": by_jvp(square, double),
    "custom_vjp": by_vjp(square, double),
    "custom_vmap": by_lanes(square),
    "sequential_vmap": sequential_vmap(square),
    "linear_call": lambda x: linear_call(lambda r, x: r * x, lambda r, ct: r * ct, x, x),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(lambda y: y / x, x, *2 * [lambda f, b: b * x]),
    "jit": hx.jit(by_jvp(square, double)),
    "scan": lambda x: lax.scan(lambda c, _: (by_jvp(square, double)(c), None), x, length=1)[0],
    "cond": lambda x: lax.cond(x > 0, by_vjp(square, double), square, x),
    "of a rule": by_vjp(square, by_jvp(double, lambda x: 2.0)),
    "from the host": by_vjp(from_host, double),
    "lanes from the host": by_jvp(sequential_vmap(from_host), double),
    "compiled from the host": by_vjp(hx.jit(from_host), double),
}
third = lambda x: x**3 / 3
in_lanes = lambda f: lambda x: hx.vmap(f)(x[None])[0]
CALLED = {  # how the handled function calls another one, and what is asked of it
    "by a backward rule": (lambda f: by_vjp(third, f), hx.grad),
    "by a jvp rule": (lambda f: by_jvp(third, f), hx.grad),
    "by a rule for lanes": (lambda f: by_lanes(square, f), in_lanes),
    "itself": (lambda f: f, hx.grad),
    "in a loop": (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0], hx.grad),
    "in compiled lanes": (lambda f: f, lambda f: hx.jit(in_lanes(hx.grad(f)))),
}
CHOSEN = {("carry", "by a backward rule", square) for square in SQUARES}
CHOSEN |= {("merge", "by a rule for lanes", square) for square in ("custom_jvp", "custom_vjp", "sequential_vmap")}
CHOSEN |= {("carry", called, "from the host") for called in CALLED}
CHOSEN |= {(handled, "itself", square) for handled in HANDLED for square in ("from the host", "linear_call")}


LOOPS = ("scan", "cond", "sequential_vmap", "lanes from the host")
CASES = [
    pytest.param(*case, marks=() if case in CHOSEN else pytest.mark.sweep)
    for case in itertools.product(HANDLED, CALLED, SQUARES)
    if not (case[0] == "seed" and case[2] in LOOPS)  # it counts loops that may draw, and names their keys by that
]


@pytest.mark.parametrize(("handled", "called", "square"), CASES)
def test_a_handler_that_answers_nothing_changes_no_derivative(handled, called, square):
    (calling, derivative), x = CALLED[called], np.float32(1.5)
    f = calling(SQUARES[square])
    np.testing.assert_allclose(derivative(HANDLED[handled](f))(x), derivative(f)(x), rtol=1e-6)
