"""The stack after a transformation is what it was before, also where references were made inside, or an error left."""

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.extend import STACK, Run, installed


@hx.effect
class Ask:
    """A number."""

    def result_type(op):
        return hx.typeof(hnp.float32(0))


class Left(Exception):
    """Leaves the function that is transformed."""


X, XS = hnp.float32(2.0), hnp.arange(1.0, 4.0)
HANDLER = hx.handler({Ask: lambda op: hnp.float32(1.0)})


def looped(f):
    return lambda x: lax.scan(lambda c, a: (c + f(a), None), x, XS)[0]


def in_block(f):
    def entered(x):
        with hx.handle(HANDLER):
            return f(x)

    return entered


TRANSFORMED = {
    "grad": hx.grad,
    "value_and_grad": hx.value_and_grad,
    "jvp": lambda f: lambda x: hx.jvp(f, (x,), (X,)),
    "vjp": lambda f: lambda x: hx.vjp(f, x)[1](X),
    "linearize": lambda f: lambda x: hx.linearize(f, x)[1](X),
    "linear_transpose": lambda f: lambda x: hx.linear_transpose(f, x)(X),
    "hessian": hx.hessian,
    "vmap": lambda f: lambda x: hx.vmap(f)(XS),
    "jit": hx.jit,
    "make_program": hx.make_program,
    "eval_shape": lambda f: lambda x: hx.eval_shape(f, x),
    "checkpoint": hx.checkpoint,
    "grad of checkpoint": lambda f: hx.grad(hx.checkpoint(f)),
    "handle": hx.handle(HANDLER),
    "scan": looped,
    "while_loop": lambda f: lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c + f(c), x),
    "cond": lambda f: lambda x: lax.cond(x > 1.0, f, lambda x: x, x),
    "saved_residuals": lambda f: lambda x: hx.ad_checkpoint.saved_residuals(f, x),
}


def plain(x):
    return 3.0 * x


def with_references(x):
    ref, other = hx.new_ref(x), hx.new_ref(XS)
    ref[...] = ref[...] * 3.0
    other[0] = 1.0
    return ref[...]


def left(x):
    hx.new_ref(x)
    raise Left


def performed(f, x, expected):
    """Call ``f`` on a stack with references; whether it is left as it was found."""
    with installed(Run(STACK.get(), "outside")):
        hx.new_ref(X)
        before = STACK.get()
        if expected is None:
            f(x)
        else:
            with pytest.raises(expected):
                f(x)
        return STACK.get() is before


FUNCTIONS = {"plain": (plain, None), "with references": (with_references, None), "left": (left, Left)}


@pytest.mark.parametrize(("f", "error"), FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("outer", [lambda f: f, hx.grad, hx.jit], ids=["alone", "in grad", "in jit"])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_stack_is_restored(name, outer, f, error):
    seen = []

    def inside(x):
        hx.new_ref(x)  # so that the level of the references of this function is on the stack
        before = STACK.get()
        try:
            TRANSFORMED[name](f)(x)
        finally:
            seen.append(STACK.get() is before)
        return x * x

    assert performed(outer(inside), X, error)
    assert seen and all(seen)


@pytest.mark.parametrize(("f", "error"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_block_restores_the_stack(f, error):
    assert performed(in_block(f), X, error)
