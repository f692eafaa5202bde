"""Fingerprints: functions defined again are equal, functions that read anything mutable equal only themselves."""

from __future__ import annotations

from helpers.count_traces import traced

import handlax as hx


def test_a_function_that_is_made_again_is_the_same_one():
    scale = 2.0
    assert traced(lambda: [hx.jit(lambda x: x * scale)(1.0) for _ in range(5)]) == 1
    assert traced(lambda: [hx.jit(lambda x, k=k: x * k)(1.0) for k in (1, 1.0, True, 1)]) == 3


def test_a_function_whose_source_is_run_again_is_the_same_one():
    def written(body):
        found = {}
        exec(f"def f(x): return {body}", found)
        return found["f"]

    assert written("x - 7.0").__code__ is not written("x - 7.0").__code__
    assert traced(lambda: [hx.jit(written("x - 7.0"))(1.0) for _ in range(3)]) == 1
    assert traced(lambda: [hx.jit(written(body))(1.0) for body in ("x - 8.0", "x - 9.0")]) == 2


def test_what_may_change_makes_a_function_its_own():
    state = [1.0]
    fs = [hx.jit(lambda x: x + state[0]) for _ in range(2)]
    assert float(fs[0](0.0)) == 1.0
    state[0] = 5.0
    assert float(fs[1](0.0)) == 5.0


GLOBAL = 1.0


def test_a_global_that_was_changed_is_another_function():
    global GLOBAL

    def make():
        return hx.jit(lambda x: next(iter([(lambda: x + GLOBAL)()])))

    try:
        assert float(make()(0.0)) == 1.0
        GLOBAL = 3.0
        assert float(make()(0.0)) == 3.0
    finally:
        GLOBAL = 1.0
