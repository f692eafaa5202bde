"""A log of values."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import writer


def written(f):
    return hx.handle(writer, ())(f)


def test_what_is_told_stands_in_the_log_in_order():
    log, y = written(lambda x: (hx.tell(x), hx.tell({"y": x * 2}), x)[2])(3.0)
    assert float(log[0]) == 3.0 and float(log[1]["y"]) == 6.0 and float(y) == 3.0


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_loops_stack_what_they_tell(wrap):
    def f(x):
        return lax.scan(lambda c, y: ((hx.tell(c), c + y)[1], None), x, hnp.arange(3.0))[0]

    for g in (written(wrap(f)), wrap(written(f))):
        log, y = g(1.0)
        assert log[0].tolist() == [1.0, 1.0, 2.0] and float(y) == 4.0


def test_lanes_stack_what_they_tell():
    log, _ = written(hx.vmap(lambda x: hx.tell(x * 2)))(hnp.arange(3))
    assert log[0].tolist() == [0, 2, 4]
    log, _ = hx.vmap(written(lambda x: hx.tell(x * 2)))(hnp.arange(3))
    assert log[0].tolist() == [0, 2, 4]


def test_a_branch_says_whether_it_was_taken():
    f = lambda x: lax.cond(x > 0, lambda: hx.tell(x), lambda: None)
    (entry,), _ = written(f)(2.0)
    assert bool(entry.taken) and float(entry.value) == 2.0
    (entry,), _ = written(f)(-2.0)
    assert not bool(entry.taken)


def test_a_gradient_tells_the_primal_value_once():
    f = lambda x: (hx.tell(x * x), x**3)[1]
    for g in (hx.grad(f), hx.grad(hx.checkpoint(f)), hx.jit(hx.grad(f))):
        log, slope = written(g)(2.0)
        assert [float(entry) for entry in log] == [4.0] and float(slope) == 12.0


def test_a_loop_of_unknown_length_is_refused_with_the_remedy():
    with pytest.raises(errors.CannotCross, match="scan or fori_loop"):
        written(lambda: lax.while_loop(lambda c: c < 3.0, lambda c: (hx.tell(c), c + 1.0)[1], 0.0))()


def test_without_a_log_it_is_unhandled():
    with pytest.raises(errors.UnhandledEffect, match="tell"):
        hx.tell(1.0)
