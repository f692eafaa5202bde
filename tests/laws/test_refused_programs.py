"""What random programs with effects may be refused for stands on a page, and the remedies of the errors work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.effect_refusals import REFUSED

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

PAGE = (Path(__file__).parents[2] / "docs/tutorial/effect.md").read_text()
XS = hnp.array([2.0, 9.0])


@hx.effect(vmap="per_lane")
class Flip:
    def result_type(op):
        return hx.ArrayType((), hnp.bool_)


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


@hx.effect(vmap="once", diff="stop")
class Share:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect(scopes=1, vmap="per_lane", diff="bodies")
class Region:
    """A function."""


mean = hx.handler({Flip: hx.ctl(lambda resume, op: 0.5 * resume(True) + 0.5 * resume(False))})
mean_of_two = hx.handler(
    {Flip: hx.ctl(lambda resume, op: 0.5 * resume(True) + 0.5 * resume(False), support=2)}
)
counting = hx.handler(
    {Flip: hx.ctl(lambda resume, n, op: 0.5 * resume(n + 1, True) + 0.5 * resume(n + 1, False))},
    returns=lambda n, y: n + y,
)
half = hx.handler({Flip: lambda op: True})
logging = hx.handler({Ask: lambda log, op, x: ((*log, x), x)}, moves=hx.append)
last = hx.handler({Ask: lambda s, op, x: ((s[0] + 1, s[1].at[s[0]].set(x)), x)})
asked = hx.handler({Ask: lambda op, x: 2.0 * x})
shared = hx.handler({Share: lambda op: 3.0})
calling = hx.handler({Region: lambda op, body, *xs: body(*xs)})


def flip(c):
    return c + hnp.where(hx.perform(Flip()), 1.0, 0.0)


def flip_in_region(x):
    return hx.perform(Region(), flip, x)


def repeated(step, n=2):
    return lambda c: lax.fori_loop(0, n, lambda i, c: step(c), c)


def unrolled(c):
    for _ in range(2):
        c = flip(c)
    return c


def doubled(x, max_steps=None):
    return lax.while_loop(lambda c: c < 20.0, lambda c: c + hx.perform(Ask(), c), x, max_steps=max_steps)


def doubled_thrice(x):
    return lax.scan(lambda c, _: (c + hx.perform(Ask(), c), None), x, None, length=3)[0]


def sharing(x):
    return lax.cond(x > 5.0, lambda x: x * hx.perform(Share()), lambda x: x, x)


@hx.effect(vmap="per_lane", diff="stop")
class ShareOfLane:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


def sharing_of_lane(x):
    return lax.cond(x > 5.0, lambda x: x * hx.perform(ShareOfLane()), lambda x: x, x)


@hx.custom_jvp
def cube(x):
    return flip(x) ** 3


cube.defjvp(lambda xs, ts: (cube(*xs), 3.0 * xs[0] ** 2 * ts[0]))
plain_cube = hx.custom_jvp(lambda x: x**3)
plain_cube.defjvp(lambda xs, ts: (plain_cube(*xs), 3.0 * xs[0] ** 2 * ts[0]))


# what is refused; and what its remedies give
CASES = {
    "the rest after an iteration": (
        lambda: hx.handle(mean)(hx.vmap(flip))(XS),
        {
            "a length": (lambda: hx.handle(mean, unroll=True)(repeated(flip))(0.0), 1.0),
            "unrolled": (lambda: hx.handle(mean)(unrolled)(0.0), 1.0),
            "a clause that answers once": (lambda: hx.handle(half)(hx.vmap(flip))(XS), XS + 1.0),
            "inside vmap": (lambda: hx.vmap(hx.handle(mean)(flip))(XS), XS + 0.5),
        },
    ),
    "an iteration without support": (
        lambda: hx.handle(mean)(repeated(flip))(0.0),
        {
            "support": (lambda: hx.handle(mean_of_two)(repeated(lambda c: flip(0.0)))(0.0), 0.5),
            "unroll": (lambda: hx.handle(mean, unroll=True)(repeated(flip))(0.0), 1.0),
            "a clause that answers once": (lambda: hx.handle(half)(repeated(flip))(0.0), 2.0),
        },
    ),
    "a state through a table": (
        lambda: hx.handle(counting, 0)(repeated(flip))(0.0),
        {
            "unroll": (lambda: hx.handle(counting, 0, unroll=True)(repeated(flip))(0.0), 3.0),
            "a clause that answers once": (lambda: hx.handle(half)(repeated(flip))(0.0), 2.0),
        },
    ),
    "the rest after a function of a scoped effect": (
        lambda: hx.handle(calling)(hx.handle(mean)(flip_in_region))(1.0),
        {"further out": (lambda: hx.handle(mean)(hx.handle(calling)(flip_in_region))(1.0), 1.5)},
    ),
    "a log in a while loop": (
        lambda: hx.handle(logging, ())(doubled)(1.0),
        {
            "scan": (lambda: hx.handle(logging, ())(doubled_thrice)(1.0)[0][0], [1.0, 2.0, 4.0]),
            "an array": (lambda: hx.handle(last, (0, hnp.zeros(5)))(doubled)(1.0)[0][1], [1.0, 2.0, 4.0, 8.0, 16.0]),
        },
    ),
    "some lanes alone": (
        lambda: hx.handle(shared)(hx.vmap(sharing))(XS),
        {
            "inside": (lambda: hx.vmap(hx.handle(shared)(sharing))(XS), [2.0, 27.0]),
            "per_lane": (
                lambda: hx.handle(hx.handler({ShareOfLane: lambda op: 3.0}))(hx.vmap(sharing_of_lane))(XS), [2.0, 27.0]
            ),
        },
    ),
    "a while loop in reverse mode": (
        lambda: hx.handle(asked)(hx.grad(doubled))(1.0),
        {
            "inside": (lambda: hx.grad(hx.handle(asked)(lambda x: doubled(x, max_steps=5)))(1.0), 27.0),
            "scan": (lambda: hx.handle(asked)(hx.grad(doubled_thrice))(1.0), 1.0),
        },
    ),
    "a rule that a clause takes apart": (
        lambda: hx.grad(hx.handle(mean)(cube))(1.0),
        {
            "before": (lambda: hx.grad(hx.handle(mean)(lambda x: plain_cube(flip(x))))(1.0), 7.5),
            "after": (lambda: hx.grad(hx.handle(mean)(lambda x: flip(plain_cube(x))))(1.0), 3.0),
            "a clause that answers once": (lambda: hx.grad(hx.handle(half)(cube))(1.0), 3.0),
        },
    ),
    "a body in direct style": (
        lambda: hx.direct(mean)(hx.vmap(flip))(XS),
        {
            "a loop of Python": (lambda: hx.direct(mean)(unrolled)(0.0), 1.0),
            "hx.loop": (lambda: hx.direct(mean)(lambda c: hx.loop(0, 2, lambda i, c: flip(c), c))(0.0), 1.0),
            "recorded": (lambda: hx.handle(mean)(unrolled)(0.0), 1.0),
        },
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_on_the_page_and_says_its_remedy(name):
    assert REFUSED[name].row in PAGE
    with pytest.raises(hx.errors.CannotCross) as refused:
        CASES[name][0]()
    found, _, hint = str(refused.value).splitlines()
    assert re.search(REFUSED[name].says, found)
    assert re.search(REFUSED[name].remedy, hint)


@pytest.mark.parametrize(("name", "remedy"), [(name, remedy) for name in CASES for remedy in CASES[name][1]])
def test_a_remedy_works(name, remedy):
    run, wanted = CASES[name][1][remedy]
    assert hnp.allclose(run(), hnp.asarray(wanted))
