"""``debug.print``, ``debug.callback`` and ``debug.log``: formats, options, users' handlers."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import handlax as hx
from handlax import debug, errors, lax
from handlax import numpy as hnp
from handlax.debug import DebugPrint

x = hnp.arange(3.0)


def printed(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("ordered", [False, True])
def test_a_look_is_once_for_each_lane_and_once_where_all_are_the_same(capsys, ordered):
    hx.vmap(lambda a: debug.print("{}", a, ordered=ordered))(x)
    assert printed(capsys) == ["0.0", "1.0", "2.0"]
    hx.vmap(lambda a: debug.print("{}", 7, ordered=ordered))(x)
    assert printed(capsys) == ["7"]


def test_only_the_lanes_that_take_a_branch_print(capsys):
    def f(a):
        return lax.cond(a > 0, lambda: (debug.print("{}", a), a)[1], lambda: -a)

    np.testing.assert_array_equal(hx.vmap(f)(x), [0, 1, 2])
    assert printed(capsys) == ["1.0", "2.0"]


def test_a_derivative_looks_once_at_the_primal(capsys):
    def f(a):
        debug.print("{}", a)
        return a * a

    assert hx.grad(f)(3.0) == 6.0
    assert printed(capsys) == ["3.0"]
    hx.hessian(f)(3.0)
    assert printed(capsys) == ["3.0"]
    hx.grad(hx.checkpoint(f))(3.0)
    assert printed(capsys) == ["3.0"]


def test_a_format_is_that_of_python(capsys):
    debug.print("{} {y:.2f} {a.shape} {a[1]} {{}} {s!r}", x, y=1.0, a=x, s="text")
    assert printed(capsys) == ["[0. 1. 2.] 1.00 (3,) 1.0 {} 'text'"]


def test_options_may_come_first(capsys):
    debug.print(ordered=True)("{x}", x=1)
    debug.callback(ordered=True)(print, 2)
    assert printed(capsys) == ["1", "2"]
    with pytest.raises(errors.BadArgument, match="takes only options"):
        debug.print(order=True)("{x}", x=1)
    with pytest.raises(errors.BadArgument, match="the format must be a string, got int"):
        debug.print(3)


@pytest.mark.parametrize(
    ("fmt", "args"),
    [("{}", (1, 2)), ("{} {}", (1,)), ("{x}", (1,)), ("{", ()), ("{!q}", (1,)), ("{} {0[0]}", (1,))],
)
def test_a_format_that_does_not_fit_is_refused_while_tracing(fmt, args):
    with pytest.raises(errors.BadArgument, match="a field for each argument"):
        hx.make_program(lambda: debug.print(fmt, *args))()


def test_a_format_that_is_not_checked_may_leave_arguments_out(capsys):
    debug.print("all", 1, skip_format_check=True)
    assert printed(capsys) == ["all"]


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_are_printed_as_numpy_prints_them_where_the_program_is_traced(capsys, compiled):
    for options in ({"precision": 2}, {"formatter": {"float": "<{:.1f}>".format}}):
        f = lambda a: debug.print("{}", a)
        with np.printoptions(**options):
            (hx.jit(f) if compiled else f)(x / 3)
    hx.effects_barrier()
    assert printed(capsys) == ["[0.   0.33 0.67]", "[<0.0> <0.3> <0.7>]"]


def test_a_log_goes_to_the_logger(caplog):
    with caplog.at_level(logging.INFO, "handlax"):
        debug.log("x = {}", 3)
    assert caplog.messages == ["x = 3"]


def test_a_handler_may_answer_a_look_before_anybody_else(capsys):
    def f(a):
        def step(c, v):
            debug.print("c = {}", c, ordered=True)
            return c + v, None

        return lax.scan(step, 0.0, a)[0]

    silent = hx.handler({DebugPrint: lambda op, *xs: ()})
    assert hx.jit(hx.handle(silent)(f))(x) == 3.0
    log = hx.handler({DebugPrint: lambda log, op, c: ((*log, c), ())}, moves=hx.append)
    (seen,), total = hx.handle(log, ())(f)(x)
    np.testing.assert_array_equal(seen, [0, 0, 1])
    assert total == 3.0
    assert printed(capsys) == []


def test_a_handler_has_the_text_of_what_would_be_printed():
    texts = []
    keep = hx.handler({DebugPrint: lambda op, *xs: texts.append(op.text(*xs)) or ()})
    hx.handle(keep)(lambda: debug.print("{} {k}", 1, k="z"))()
    assert texts == ["1 z"]
