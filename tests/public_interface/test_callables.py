"""Callables without a name, or with one that is no string, wherever a function is taken; and the names of bodies."""

import functools
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

X, XS = hnp.float32(0.5), hnp.arange(1.0, 4.0)


def f(x):
    return hnp.sin(x) * x


class Plain:
    def __call__(self, x):
        return f(x)


class Numbered(Plain):
    __name__ = 3


class Nameless(Plain):
    @property
    def __name__(self):
        raise AttributeError("__name__")


class Method:
    def method(self, x):
        return f(x)

    @classmethod
    def of_class(cls, x):
        return f(x)


CALLABLES = {
    "plain": (Plain(), "Plain"),
    "numbered": (Numbered(), "Numbered"),
    "nameless": (Nameless(), "Nameless"),
    "mock": (Mock(side_effect=f), "Mock"),
    "magic mock": (MagicMock(side_effect=f), "MagicMock"),
    "named mock": (Mock(side_effect=f, __name__="its_own"), "its_own"),
    "partial": (functools.partial(f), "f"),
    "partial of an object": (functools.partial(Plain()), "Plain"),
    "partial of a partial": (functools.partial(functools.partial(lambda a, x: f(x), 1.0)), "<lambda>"),
    "method": (Method().method, "method"),
    "class method": (Method.of_class, "of_class"),
    "jitted": (hx.jit(Plain()), "Plain"),
    "lambda": (lambda x: f(x), "<lambda>"),
}


def custom_jvp(g):
    function = hx.custom_jvp(g)
    function.defjvp(lambda xs, dxs: (function(*xs), dxs[0] * hx.grad(f)(*xs)))
    return function


def custom_vjp(g):
    function = hx.custom_vjp(g)
    function.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * hx.grad(f)(x),))
    return function


def custom_vmap(g):
    function = hx.custom_batching.custom_vmap(g)
    function.def_vmap(lambda size, mapped, x: (hx.vmap(f)(x), True))
    return function


TAKERS = {
    "jit": lambda g: hx.jit(g)(X),
    "grad": lambda g: hx.grad(g)(X),
    "value_and_grad": lambda g: hx.value_and_grad(g)(X),
    "vmap": lambda g: hx.vmap(g)(XS),
    "jvp": lambda g: hx.jvp(g, (X,), (X,)),
    "vjp": lambda g: hx.vjp(g, X)[1](X),
    "linearize": lambda g: hx.linearize(g, X)[1](X),
    "jacfwd": lambda g: hx.jacfwd(g)(X),
    "jacrev": lambda g: hx.jacrev(g)(X),
    "hessian": lambda g: hx.hessian(g)(X),
    "make_program": lambda g: hx.parse_program(str(hx.make_program(hx.jit(g))(X))).unwrap()(X),
    "eval_shape": lambda g: np.zeros(hx.eval_shape(g, X).shape),
    "checkpoint": lambda g: hx.grad(hx.checkpoint(g))(X),
    "custom_jvp": lambda g: hx.grad(custom_jvp(g))(X),
    "custom_vjp": lambda g: hx.grad(custom_vjp(g))(X),
    "custom_vmap": lambda g: hx.vmap(custom_vmap(g))(XS),
    "custom_gradient": lambda g: hx.custom_gradient(lambda x: (g(x), lambda ct: ct))(X),
    "cond": lambda g: lax.cond(X > 0, g, g, X),
    "switch": lambda g: lax.switch(1, [g, g], X),
    "fori_loop": lambda g: lax.fori_loop(0, 2, lambda i, c: g(c), X),
    "while_loop": lambda g: lax.while_loop(lambda c: c > 0.1, g, X),
    "map": lambda g: lax.map(g, XS),
    "named_call": lambda g: hx.named_call(g)(X),
    "handle": lambda g: hx.handle(hx.handler({}))(g)(X),
    "reified": lambda g: hx.handle(hx.handler({hx.operations.Cos: hx.ctl(lambda resume, op, x: resume(x))}))(g)(X),
    "stages": lambda g: hx.jit(g).lower(X).compile()(X),
    "closure_convert": lambda g: hx.closure_convert(g, X)[0](X),
    "vectorize": lambda g: hnp.vectorize(g)(XS),
    "pure_callback": lambda g: hx.pure_callback(lambda x: np.asarray(g(x)), hx.ShapeDtypeStruct((), "float32"), X),
}


# Every function takes what has no name, and every kind is taken by some; the other pairs are in a sweep.
PAIRS = [
    pytest.param(taker, kind, marks=() if taker in ("jit", "grad") or kind == "nameless" else pytest.mark.sweep)
    for kind in CALLABLES for taker in TAKERS
]


@pytest.mark.parametrize(("taker", "kind"), PAIRS)
def test_any_callable_is_taken(taker, kind):
    result, expected = TAKERS[taker](CALLABLES[kind][0]), TAKERS[taker](f)
    for x, y in zip(hx.tree.leaves(result), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("kind", CALLABLES)
def test_a_recorded_callable_has_its_own_name(kind):
    g, name = CALLABLES[kind]
    assert hx.make_program(g)(X).name == name
    assert hx.jit(g).trace(X).jaxpr.name == name
    assert hx.jit(g).__name__ == hx.grad(g).__name__ == hx.vmap(g).__name__ == name


def body(*args):
    return args[-1] * 2.0


def carried(c, x):
    return body(c), x


def small(c):
    return c < 3.0


@pytest.mark.parametrize(("perform", "names"), [
    (lambda x: hx.jit(body)(x), ["body"]),
    (lambda x: hx.checkpoint(body)(x), ["body"]),
    (lambda x: lax.cond(x > 0, body, f, x), ["f", "body"]),
    (lambda x: lax.switch(1, [body, functools.partial(f)], x), ["body", "f"]),
    (lambda x: lax.scan(carried, x, XS), ["carried"]),
    (lambda x: lax.map(body, XS), ["body"]),
    (lambda x: lax.map(body, XS, batch_size=3), ["body"]),
    (lambda x: lax.while_loop(small, body, x), ["small", "body"]),
    (lambda x: lax.fori_loop(0, 3, body, x), ["body"]),
    (lambda x: lax.fori_loop(0, lax.convert_element_type(x, int), body, x), ["more", "body"]),
    (lambda x: custom_jvp(body)(x), ["body"]),
    (lambda x: custom_vjp(body)(x), ["body"]),
])
def test_a_body_has_the_name_of_the_function(perform, names):
    (op,) = (op for op in hx.make_program(perform)(1.0).ops if op.bodied)
    assert [program.name for program in op.bodies] == names
