"""Under ``disable_jit`` Python executes loops and branches: bodies see concrete values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.control.loops import Scan, While

XS = hnp.asarray([1.0, 2.0, 3.0])


@hx.effect(vmap="per_lane", diff="stop")
class LoopBeat:
    by: int = 1

    def result_type(op):
        return None


COUNTER = hx.handler({LoopBeat: lambda n, op: (n + op.by, None)})


def numbers(make: Any) -> list[float]:
    """The values that a body saw: ``make`` is called with the function that records a value."""
    seen: list[float] = []

    def look(x: Any) -> Any:
        seen.append(float(lax.stop_gradient(x)))
        return x

    with hx.disable_jit():
        make(look)
    return seen


def test_the_body_of_a_scan_sees_numbers_in_order() -> None:
    def run(look: Any) -> None:
        c, ys = lax.scan(lambda c, x: (look(c) + x, 10 * c), 0.0, XS)
        assert (float(c), ys.tolist()) == (6.0, [0.0, 10.0, 30.0])
        c, ys = lax.scan(lambda c, x: (look(c) + x, c), 0.0, XS, reverse=True)
        assert (float(c), ys.tolist()) == (6.0, [5.0, 3.0, 0.0])

    assert numbers(run) == [0.0, 1.0, 3.0, 0.0, 3.0, 5.0]


def test_the_body_and_the_test_of_a_while_loop_see_numbers() -> None:
    run = lambda look: lax.while_loop(lambda c: look(c) < 3, lambda c: 2 * look(c), 1)
    assert numbers(run) == [1, 1, 2, 2, 4]
    assert numbers(lambda look: lax.fori_loop(2, 4, lambda i, c: c + look(i), 0)) == [2, 3]
    assert numbers(lambda look: lax.map(look, XS)) == [1, 2, 3]


def test_the_branch_that_is_chosen_runs_alone() -> None:
    def run(look: Any) -> None:
        assert float(lax.cond(XS[0] > 0, look, lambda x: 1 / 0, XS[1])) == 2.0
        assert float(lax.switch(7, [lambda x: 1 / 0, lambda x: -look(x)], XS[2])) == -3.0

    assert numbers(run) == [2, 3]


def test_a_bounded_loop_ends_at_its_bound() -> None:
    run = lambda look: lax.while_loop(lambda c: True, lambda c: look(c) + 1, 0, max_steps=3)
    assert numbers(run) == [0, 1, 2]


def test_derivatives_go_through_python_loops() -> None:
    def f(look: Any, x: Any) -> Any:
        y = lax.while_loop(lambda y: look(y) < 20, lambda y: y * x, x)
        y = lax.cond(y > 20, lambda: y + look(x), lambda: 1 / 0)
        return lax.scan(lambda c, a: (c + a * x, None), y, XS)[0]

    assert numbers(lambda look: check(hx.grad(lambda x: f(look, x))(3.0), 3 * 3**2 + 1 + 6)) == [3, 9, 27, 3]
    assert numbers(lambda look: check(hx.grad(hx.grad(lambda x: f(look, x)))(3.0), 6 * 3)) == [3, 9, 27, 3]


def check(found: Any, wanted: float) -> None:
    assert float(found) == wanted


def test_lanes_that_share_what_chooses_run_in_python() -> None:
    def f(look: Any, x: Any) -> Any:
        y = lax.while_loop(lambda s: look(s[0]) < 2, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]
        return lax.scan(lambda c, a: (c + a * x, look(a)), y, XS)

    def run(look: Any) -> None:
        c, ys = hx.vmap(lambda x: f(look, x))(XS)
        np.testing.assert_array_equal(c, XS**3 + 6 * XS)
        assert ys.shape == (3, 3)

    assert numbers(run) == [0, 1, 2, 1, 2, 3]


def test_lanes_that_choose_differently_run_as_one_operation_from_there_on() -> None:
    tests = []

    def more(s: Any) -> Any:
        tests.append(s)
        return s[0] < s[1]

    f = lambda n, x: lax.while_loop(more, lambda s: (s[0] + 1, s[1], s[2] * x), (0, n, x))[2]
    g = lambda x: lax.cond(x > 1.5, lambda: x, lambda: -x)
    with hx.disable_jit():
        assert hx.vmap(f)(hnp.arange(3), XS).tolist() == [1.0, 4.0, 27.0]
        assert hx.vmap(g)(XS).tolist() == [-1.0, 2.0, 3.0]
    assert len(tests) == 2  # as it is written, and recorded


def test_a_test_that_becomes_one_of_lanes_goes_on_where_it_is() -> None:
    """Python executes two iterations; then the lanes differ. No effect is performed twice."""

    def f(x: Any) -> Any:
        def step(s: Any) -> Any:
            hx.perform(LoopBeat())
            return s[0] + 1, hnp.where(s[0] == 1, x, 0.0) + s[1]

        return lax.while_loop(lambda s: s[0] + s[1] < 4, step, (0, 0.0))[0]

    with hx.disable_jit():
        ticks, made = hx.handle(COUNTER, 0)(hx.vmap(f))(XS)
    assert made.tolist() == [3, 2, 2]
    assert int(ticks) == 7


def test_a_state_outside_moves_with_the_effects_of_bodies() -> None:
    seen: list[int] = []

    def clause(n: Any, op: LoopBeat) -> Any:
        seen.append(int(n))
        return n + op.by, None

    def f(x: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            hx.perform(LoopBeat())
            return c + lax.cond(a > 1, lambda: (hx.perform(LoopBeat(10)), a)[1], lambda: a), None

        return lax.scan(step, x, XS)[0]

    with hx.disable_jit():
        n, y = hx.handle(hx.handler({LoopBeat: clause}), 0)(f)(0.0)
        assert (int(n), float(y), seen) == (23, 6.0, [0, 1, 2, 12, 13])
        assert float(hx.grad(lambda x: hx.handle(COUNTER, 0)(f)(x)[1])(0.0)) == 1.0


def test_an_exception_of_a_handler_leaves_a_python_loop() -> None:
    stop = hx.handler({LoopBeat: hx.final(lambda op: hnp.asarray(-1.0))})

    def f(x: Any) -> Any:
        added = lambda c, a: lax.cond(a > 1, lambda: (hx.perform(LoopBeat()), c)[1], lambda: c + a)
        return lax.scan(lambda c, a: (added(c, a), None), x, XS)[0]

    assert float(hx.handle(stop)(f)(0.0)) == -1.0
    with hx.disable_jit():
        assert float(hx.handle(stop)(f)(0.0)) == -1.0


def test_a_program_keeps_its_loops() -> None:
    f = lambda x: lax.while_loop(lambda c: c < 9, lambda c: c + x, lax.scan(lambda c, a: (c + a, c), x, XS)[0])
    with hx.disable_jit():
        program = hx.make_program(f)(1.0)
    assert {Scan, While} <= {type(op) for op in program.ops}


@pytest.mark.parametrize("start", [0, 0.0, hnp.asarray(0.0), hnp.asarray(0, "float16")])
@pytest.mark.parametrize("step", [lambda c, a: (c + 1, c), lambda c, a: (c + 0.5, c * 2), lambda c, a: (7.0, (c, 1))])
def test_types_are_those_of_the_operation(start: Any, step: Any) -> None:
    def types() -> list[Any]:
        try:
            scanned = lax.scan(step, start, XS)
            looped = lax.while_loop(lambda c: c < 3, lambda c: step(c, 1)[0], start)
        except errors.StateTypeError as error:
            return [error.what]
        return [x.type for x in hx.tree.leaves((scanned, looped))]

    wanted = types()
    with hx.disable_jit():
        assert types() == wanted


def test_a_loop_of_no_runs_has_the_types_of_its_body() -> None:
    with hx.disable_jit():
        c, ys = lax.scan(lambda c, x: (c + 0.5, (c, 1)), 0, XS[:0])
    assert (c.dtype, ys[0].shape, ys[1].dtype) == (np.float32, (0,), np.int32)


WRONG: dict[str, tuple[Any, Any]] = {
    "the carry must keep its type, got f32[]~ at the start and f32[3] after": (
        errors.StateTypeError, lambda: lax.scan(lambda c, x: (c + XS, None), 0.0, XS)),
    "the carry must keep its structure, got a leaf at the start and a tuple of 2": (
        errors.TreeMismatch, lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 0)),
    "all iterations must give the same types, got f32[] and i32[]": (
        errors.StateTypeError, lambda: lax.map(lambda x: x if x < 2 else x.astype("int32"), XS)),
    "all iterations must give trees of one structure": (
        errors.TreeMismatch, lambda: lax.map(lambda x: x if x > 1 else (x, x), XS)),
}


@pytest.mark.parametrize(("what", "case"), WRONG.items(), ids=WRONG)
def test_mistakes_are_found_as_in_a_recorded_body(what: str, case: tuple[Any, Any]) -> None:
    kind, run = case
    with hx.disable_jit(), pytest.raises(kind) as found:
        run()
    assert what in found.value.what
