"""Settings that are asked for where they are needed."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import reader


def power(n=3):
    """The setting ``t`` to the third, in a loop."""
    return lax.scan(lambda c, _: (c * hx.ask("t"), None), 1.0, None, n)[0]


def test_a_setting_is_the_same_everywhere():
    def f(x):
        return x * hx.ask("t") + hx.ask("b")["u"]

    around = hx.handle(reader(t=2.0, b={"u": hnp.arange(2.0)}))
    for g in (around(f), around(hx.jit(f)), hx.jit(around(f)), around(hx.checkpoint(f))):
        assert g(3.0).tolist() == [6.0, 7.0]


def test_a_program_can_be_differentiated_and_mapped_by_a_setting():
    f = lambda t: hx.handle(reader(t=t))(power)()
    assert float(hx.grad(f)(2.0)) == 12.0
    assert hx.vmap(f)(hnp.array([1.0, 2.0])).tolist() == [1.0, 8.0]


def test_loops_branches_and_lanes_ask():
    around = hx.handle(reader(t=2.0))
    assert float(around(power)()) == 8.0
    assert around(hx.vmap(lambda x: x * hx.ask("t")))(hnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    mapped = lambda x: lax.cond(x > 0, lambda: hx.ask("t"), lambda: x)
    assert around(hx.vmap(mapped))(hnp.array([1.0, -1.0])).tolist() == [2.0, -1.0]
    assert float(around(lambda: lax.while_loop(lambda c: c < hx.ask("t") * 4, lambda c: c * hx.ask("t"), 1.0))()) == 8.0
    assert float(around(hx.grad(lambda x: x * power()))(1.0)) == 8.0


def test_the_innermost_setting_is_given():
    f = hx.handle(reader(t=2.0, u=1.0))(hx.handle(reader(t=5.0))(lambda: (hx.ask("t"), hx.ask("u"))))
    assert tuple(map(float, f())) == (5.0, 1.0)


def test_local_changes_a_setting_for_one_function():
    def f():
        inner = hx.local("t", lambda t: t * 10.0)(lambda: hx.ask("t") + hx.ask("u"))
        return inner(), hx.ask("t")

    around = hx.handle(reader(t=2.0, u=1.0))
    for g in (around(f), around(hx.jit(f))):
        assert tuple(map(float, g())) == (21.0, 2.0)


def test_local_in_a_loop_may_use_what_the_loop_carries():
    def body(c, _):
        return hx.local("t", lambda t: t * c)(lambda: hx.ask("t"))(), None

    assert float(hx.handle(reader(t=2.0))(lambda: lax.scan(body, 3.0, None, 3)[0])()) == 24.0


def test_nested_locals_change_one_after_the_other():
    f = hx.local("t", lambda t: t + 1.0)(hx.local("t", lambda t: t * 2.0)(lambda: hx.ask("t")))
    assert float(hx.handle(reader(t=3.0))(f)()) == 8.0


def test_a_setting_that_nobody_gives_is_named():
    for f in (lambda: hx.ask("t"), hx.handle(reader(u=1.0))(lambda: hx.ask("t"))):
        with pytest.raises(errors.UnhandledEffect, match="'t'"):
            f()
    with pytest.raises(errors.NotAFunction):
        hx.local("t", 3.0)
