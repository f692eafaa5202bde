"""Calls that nest deeper than Python's stack."""

import gc
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.deep_calls import on_deep_stack

DEEP = 2 * sys.getrecursionlimit()


def descend(n, end):
    return end() if n == 0 else 1 + on_deep_stack(descend, n - 1, end=end)


def test_a_call_nests_deeper_than_one_stack():
    with pytest.raises(RecursionError):
        (lambda f: f(f, DEEP))(lambda f, n: f(f, n - 1) if n else 0)
    assert descend(DEEP, lambda: 0) == DEEP


def test_a_call_that_is_not_deep_stays_on_its_stack():
    assert on_deep_stack(threading.get_ident) == threading.get_ident()
    threads = set()
    descend(DEEP, lambda: threads.add(threading.get_ident()) or 0)
    assert threads.isdisjoint({threading.get_ident()})


def test_an_error_arrives_at_the_caller():
    def fail():
        raise KeyError("deep down")

    with pytest.raises(KeyError, match="deep down"):
        descend(DEEP, fail)


def test_an_error_from_another_stack_holds_nothing_once_it_is_handled():
    class Held:
        pass

    def fail(held):
        raise KeyError

    gc.disable()
    try:
        held = Held()
        alive = weakref.ref(held)
        with suppress(KeyError):
            descend(DEEP, partial(fail, held))
        del held
        assert alive() is None
    finally:
        gc.enable()


def test_a_deep_call_has_the_configuration_of_its_caller():
    with hx.configure(default_float="float64"):
        seen = []
        descend(DEEP, lambda: seen.append(hnp.zeros(()).dtype) or 0)
    assert seen == ["float64"]


def nested(wrap, n):
    f = hnp.sin
    for _ in range(n):
        f = wrap(f)
    return f


@pytest.mark.parametrize("wrap", [
    lambda f: hx.jit(lambda x: f(x) * 1.5),
    lambda f: hx.checkpoint(lambda x: hnp.sin(f(x))),
    lambda f: lambda x: hx.lax.cond(x > 0, f, lambda y: y, x * 1.5),
], ids=["jit", "checkpoint", "cond"])
def test_a_thousand_nested_bodies_are_recorded_transformed_and_hashed(wrap):
    f = nested(wrap, 1000)
    program = hx.make_program(hx.vmap(f))(hnp.ones(2))
    assert hash(program) == hash(hx.make_program(hx.vmap(f))(hnp.ones(2)))


def test_the_gradient_of_nested_jitted_functions_is_recorded_printed_and_lowered():
    f = nested(lambda f: hx.jit(lambda x: f(x) * 1.001), 300)
    assert str(hx.make_program(hx.grad(f))(1.0)).count("call[") > 300
    assert hx.jit(hx.grad(f)).lower(1.0).as_text().count("func.func") > 300


@pytest.mark.parametrize("wrap", [
    hx.jit, hx.checkpoint, lambda f: hx.jit(hx.grad(f)), lambda f: hx.jit(hx.vmap(f, None, axis_size=2)),
], ids=["jit", "checkpoint", "grad", "vmap"])
def test_a_function_that_calls_itself_without_end_raises(wrap):
    again = wrap(lambda x: again(x))
    x = hnp.float32(1.0)
    with pytest.raises(RecursionError):
        again(x)
    assert hx.jit(lambda x: x + 1)(x) == 2.0
