"""Callbacks out of compiled programs: values, order, counts, errors, threads."""

from __future__ import annotations

import collections
import gc
import os
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest
from helpers.other_threads import in_thread, together

import handlax as hx
from handlax import NamedSharding, P, debug, errors, lax
from handlax import numpy as hnp
from handlax.experimental import io_callback
from handlax.lowering.xla import executables, host_callbacks

x = hnp.arange(3.0)


@pytest.fixture
def seen():
    found = []
    yield found
    hx.effects_barrier()


def look(seen, *values, ordered=True):
    debug.callback(lambda *vs: seen.append(tuple(float(v) for v in vs)), *values, ordered=ordered)


def slow_zero():
    """A zero that takes a while to compute: the programs that need it are started before it is there."""
    return _heavy(hnp.zeros((1200, 1200)))


_heavy = hx.jit(lambda a: (a @ a)[0, 0])


def running_sum(seen):
    def step(c, v):
        look(seen, c, v)
        return c + v, c

    return lambda xs: lax.scan(step, 0.0, xs)


# values and counts


def test_results_come_back_into_the_program():
    f = hx.jit(lambda a: hx.pure_callback(np.sin, a, a) * 2 + io_callback(np.cos, a, a))
    np.testing.assert_allclose(f(x), np.sin(x) * 2 + np.cos(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_goes_out_and_comes_back(dtype):
    a = hnp.asarray([0, 1, 1]).astype(dtype)
    y = hx.jit(lambda a: hx.pure_callback(lambda v: v.value, a, a))(a)
    assert y.type is a.type
    np.testing.assert_array_equal(y, a)


def test_what_a_callback_keeps_does_not_change(seen):
    f = hx.jit(lambda a: io_callback(lambda v: seen.append(np.asarray(v)), None, a * 2))
    for i in range(4):
        f(np.full(100, i, "float32"))
    assert [float(v[0]) for v in seen] == [0, 2, 4, 6]


@pytest.mark.parametrize("ordered", [False, True])
def test_an_effect_is_performed_exactly_once_for_each_run(seen, ordered):
    f = hx.jit(lambda a: (look(seen, a, ordered=ordered), a + 1)[1])
    for i in range(5):
        f(float(i))
    hx.effects_barrier()
    assert sorted(seen) == [(0.0,), (1.0,), (2.0,), (3.0,), (4.0,)]


@pytest.mark.parametrize("transformed", [hx.jit, lambda f: f, lambda f: hx.jit(hx.jit(f))])
def test_a_scan_calls_back_in_order(seen, transformed):
    total, sums = transformed(running_sum(seen))(x)
    assert float(total) == 3.0
    np.testing.assert_array_equal(sums, [0, 0, 1])
    assert seen == [(0, 0), (0, 1), (1, 2)]


def test_an_unrolled_and_a_backward_scan_keep_the_order_of_their_runs(seen):
    step = lambda c, v: (look(seen, v), (c, None))[1]
    hx.jit(lambda xs: lax.scan(step, 0.0, xs, unroll=2)[0])(hnp.arange(5.0))
    assert seen == [(0,), (1,), (2,), (3,), (4,)]
    seen.clear()
    hx.jit(lambda xs: lax.scan(step, 0.0, xs, reverse=True)[0])(x)
    assert seen == [(2,), (1,), (0,)]


def test_the_test_of_a_while_loop_calls_back_once_more_than_its_body(seen):
    def more(c):
        look(seen, -1, c)
        return c < 2

    def step(c):
        look(seen, c, c)
        return c + 1

    assert hx.jit(lambda c: lax.while_loop(more, step, c))(0.0) == 2.0
    assert seen == [(-1, 0), (0, 0), (-1, 1), (1, 1), (-1, 2)]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_branch_that_is_not_taken_does_not_call_back(seen, ordered):
    def f(a):
        yes = lambda: (look(seen, a, ordered=ordered), a)[1]
        return lax.cond(a > 1, yes, lambda: -a)

    g = hx.jit(f)
    assert [float(g(v)) for v in (0.0, 1.0, 2.0)] == [0, -1, 2]
    assert seen == [(2,)]
    seen.clear()
    np.testing.assert_array_equal(hx.jit(hx.vmap(f))(x), [0, -1, 2])
    assert seen == [(2,)]


def test_lanes_call_back_one_by_one(seen):
    hx.jit(hx.vmap(running_sum(seen)))(hnp.ones((2, 2)))
    assert seen == [(0, 1), (0, 1), (1, 1), (1, 1)]


def test_a_derivative_calls_back_in_its_primal_pass_alone(seen):
    loss = lambda xs: running_sum(seen)(hnp.sin(xs))[0]
    for f in (hx.jit(hx.grad(loss)), hx.grad(hx.jit(loss)), hx.jit(hx.grad(hx.checkpoint(loss)))):
        seen.clear()
        np.testing.assert_allclose(f(x), np.cos(x), rtol=1e-6)
        assert len(seen) == 3


# order


def test_ordered_effects_of_several_equations_and_calls_keep_their_order(seen):
    inner = hx.jit(lambda a: (look(seen, 1, a), a)[1])

    def f(a):
        look(seen, 0, a)
        b = inner(a)
        io_callback(lambda v: seen.append((2.0, float(v))), None, b, ordered=True)
        inner(b + 1)

    hx.jit(f)(5.0)
    assert seen == [(0, 5), (1, 5), (2, 5), (1, 6)]


def test_ordered_programs_keep_their_order_though_the_first_waits(seen):
    def wait(v):
        time.sleep(0.02 if int(v) % 2 else 0)
        seen.append(int(v))

    f = hx.jit(lambda v, zero: io_callback(wait, None, v + zero, ordered=True))
    for i in range(6):
        f(float(i), slow_zero() if i % 3 == 0 else hnp.float32(0))
    hx.effects_barrier()
    assert seen == list(range(6))


def test_eight_threads_call_back_each_in_its_own_order():
    seen = []

    def program(i):
        def step(c, j):
            debug.callback(lambda *v: seen.append(tuple(map(int, v))), i, j, ordered=True)
            return c, None

        return lax.scan(step, 0, hnp.arange(20))[0]

    f = hx.jit(program)
    together(8, lambda i: [f(i).block_until_ready() for _ in range(5)])
    hx.effects_barrier()
    assert len(seen) == 8 * 5 * 20
    for i in range(8):
        assert [j for k, j in seen if k == i] == list(range(20)) * 5


def test_a_callback_may_run_programs_itself():
    inner = hx.jit(lambda a: hnp.sin(a) @ hnp.cos(a))
    big = hnp.ones((300, 300))
    f = hx.jit(lambda a: io_callback(lambda v: np.float32(inner(big)[0, 0]), a, a, ordered=True))
    wanted = pytest.approx(300 * np.sin(1) * np.cos(1), rel=1e-4)
    assert float(f(hnp.float32(0))) == wanted
    assert float(f(slow_zero())) == wanted


# errors


def fails(v):
    raise KeyError(f"boom {float(v)}")


def test_an_error_in_a_program_has_the_line_of_the_callback_and_its_cause():
    def f(a):
        return io_callback(fails, a, a)  # the line of the message

    line = f.__code__.co_firstlineno + 1
    for call in (hx.jit(f), hx.jit(f).lower(1.0).compile(), lambda a: lax.scan(lambda c, _: (f(c), None), a, None, 2)):
        with pytest.raises(errors.CallbackError, match="fails raised KeyError") as caught:
            hx.block_until_ready(call(1.0))
        assert f"test_host_callbacks.py:{line}" in caught.value.where
        assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_that_comes_later_is_raised_when_a_result_is_read():
    f = hx.jit(lambda a: io_callback(lambda v: fails(v) if bad else np.asarray(v), a, a))
    bad = False
    f(hnp.float32(0)).block_until_ready()
    bad = True
    y = f(slow_zero())
    for read in (lambda: float(y), y.block_until_ready, lambda: hx.block_until_ready([y]), lambda: np.asarray(y + 1)):
        with pytest.raises(errors.CallbackError, match=r"boom 0\.0"):
            read()
    hx.effects_barrier()  # somebody has been told
    bad = False
    assert float(f(hnp.float32(3))) == 3.0


def test_an_error_that_comes_later_is_raised_when_a_frozen_result_is_awaited():
    f = hx.jit(lambda a: hx.tree.freeze([io_callback(lambda v: fails(v) if bad else np.asarray(v), a, a)]))
    bad = False
    hx.block_until_ready(f(hnp.float32(0)))
    bad = True
    y = f(slow_zero())
    with pytest.raises(errors.CallbackError, match=r"boom 0\.0"):
        hx.block_until_ready(y)
    hx.effects_barrier()


def test_an_error_that_is_none_of_the_runtime_s_is_itself():
    error = ZeroDivisionError("handlax callback failure 0")  # a number that no failure has
    assert host_callbacks.translated(error) is error


def test_the_latest_failures_are_kept(monkeypatch):
    monkeypatch.setattr(host_callbacks, "_FAILURES", collections.OrderedDict())
    errors = [ValueError(number) for number in range(host_callbacks._MOST_FAILURES + 2)]
    numbers = [host_callbacks._record_failure(error) for error in errors]
    assert [each.error for each in host_callbacks._FAILURES.values()] == errors[2:]
    failed = [host_callbacks.translated(RuntimeError(f"handlax callback failure {number}")) for number in numbers[2:]]
    assert failed == errors[2:]


def test_an_error_without_a_result_is_raised_at_the_barrier_once():
    f = hx.jit(lambda a: debug.callback(lambda v: fails(v) if bad else None, a, ordered=True))
    bad = False
    f(hnp.float32(0))
    hx.effects_barrier()
    bad = True
    f(slow_zero())
    with pytest.raises(errors.CallbackError, match=r"boom 0\.0"):
        hx.effects_barrier()
    hx.effects_barrier()
    bad = False
    f(hnp.float32(0))  # what failed holds nobody up
    hx.effects_barrier()


def test_an_interrupt_in_a_callback_interrupts_the_program():
    def interrupt(v):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hx.block_until_ready(hx.jit(lambda a: io_callback(interrupt, a, a))(x))


def test_a_result_of_another_shape_never_reaches_the_program():
    f = hx.jit(lambda a: hx.pure_callback(lambda v: np.zeros(7, "float32"), a, a))
    with pytest.raises(errors.CallbackError, match=r"must return f32\[3\], as declared, returned f32\[7\]"):
        hx.block_until_ready(f(x))


def test_an_effect_without_a_lowering_is_still_refused():
    @hx.effect
    class Whisper:
        def result_type(op):
            return None

    with pytest.raises(errors.UnhandledEffect, match="Whisper") as caught:
        hx.jit(lambda a: (hx.perform(Whisper()), debug.print("{}", a), a)[2])(1.0)
    assert "DebugPrint" not in caught.value.what


# the disk cache, and the lifetime of host functions


def test_a_program_that_calls_back_is_not_written_to_disk(tmp_path):
    with hx.configure(compilation_cache_dir=str(tmp_path)):
        hx.jit(lambda a: hx.pure_callback(np.sin, a, a))(x)
        assert os.listdir(tmp_path) == []
        hx.jit(lambda a: a * 3.25)(x)
        assert len(os.listdir(tmp_path)) == 1


def test_what_is_called_lives_as_long_as_the_program_and_no_longer():
    class Same:
        def __call__(self, v):
            return np.asarray(v)

    def compiled():
        same = Same()
        return hx.jit(lambda a: hx.pure_callback(same, a, a)), weakref.ref(same)

    f, alive = compiled()
    f(x)
    gc.collect()
    np.testing.assert_array_equal(f(x), x)
    assert alive() is not None
    del f
    hx.clear_caches()
    gc.collect()
    hx.jit(lambda a: hx.pure_callback(np.cos, a, a))(x)
    assert alive() is None


def test_a_function_that_calls_back_is_traced_once():
    traced = []
    f = hx.jit(lambda a: (traced.append(1), debug.print("{}", a))[1])
    f.lower(1.0)
    f(1.0)
    hx.grad(lambda a: (f(a), a)[1])(1.0)
    assert len(traced) == 1


def test_a_callback_cannot_wait_for_its_own_program():
    f = hx.jit(lambda a: io_callback(lambda v: hx.effects_barrier(), None, a))

    def run(a):
        f(a)
        hx.effects_barrier()

    for a in (hnp.float32(0), slow_zero()):
        with pytest.raises(errors.CallbackError, match="BadCall"):
            run(a)


def test_an_error_of_a_callback_within_a_callback_keeps_both_lines():
    inner = hx.jit(lambda a: io_callback(fails, a, a))
    outer = hx.jit(lambda a: io_callback(lambda v: inner(v), a, a))
    with pytest.raises(errors.CallbackError, match="raised CallbackError") as caught:
        hx.block_until_ready(outer(1.0))
    assert isinstance(caught.value.__cause__, errors.CallbackError)
    assert isinstance(caught.value.__cause__.__cause__, KeyError)


def test_a_donated_argument_gives_its_memory_to_a_result(seen):
    f = hx.jit(lambda a: (look(seen, a[0]), a + 1)[1], donate_argnums=0)
    a = hnp.ones(4) * 2
    np.testing.assert_array_equal(f(a), [3, 3, 3, 3])
    assert a.is_deleted()
    assert seen == [(2,)]


def test_a_program_on_another_device_calls_back_too(seen):
    device = hx.devices()[3]
    f = hx.jit(lambda a: (look(seen, a[1]), io_callback(np.sin, a, a))[1])
    y = f(hx.device_put(x, device))
    assert y.device == device
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-6)
    assert seen == [(1,)]


@pytest.mark.skipif(not executables._STARVES, reason="the programs do not wait for each other")
def test_a_callback_of_a_program_over_several_devices_launches_no_other_one():
    split = hx.device_put(x[:2], NamedSharding(hx.make_mesh((2,), ("i",)), P("i")))
    total = hx.jit(lambda a: a.sum() * 2)
    function = lambda _: np.float32(total(split))
    called = hx.jit(lambda a: hx.pure_callback(function, hx.ShapeDtypeStruct((), "float32"), a))
    with pytest.raises(errors.CallbackError, match=r"BadCall: .* must launch programs of one device") as caught:
        called(split)
    assert caught.value.__cause__.hint is not None
    assert called(x[:2]) == 2  # a program of one device may


def test_the_text_of_a_program_says_what_it_calls_and_chains_what_is_ordered():
    text = hx.jit(lambda a: (debug.print("{}", a), a)[1]).lower(1.0).as_text()
    assert "@handlax_host_call(%arg0)" in text
    ordered = hx.jit(lambda a: (debug.print("{}", a, ordered=True), a)[1]).lower(1.0).as_text()
    assert "@handlax_host_call(%arg1, %arg0)" in ordered


PROGRAM = """
import time
import handlax as hx, handlax.numpy as hnp
heavy = hx.jit(lambda a: (a @ a)[0, 0])
a = hnp.zeros((1500, 1500))
f = hx.jit(lambda s: hx.debug.callback(lambda v: (time.sleep(0.1), print("called", float(v), flush=True)), s))
f(hnp.float32(1))
heavy(a).block_until_ready()
f(heavy(a))
print("the end of the program", flush=True)
"""


def test_a_process_ends_when_its_callbacks_have_been_called():
    made = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert made.stdout.splitlines().count("called 0.0") == 1


def test_with_jit_disabled_callbacks_are_called_in_order(seen):
    with hx.disable_jit():
        hx.jit(running_sum(seen))(x)
    assert seen == [(0, 0), (0, 1), (1, 2)]


def test_a_wait_for_callbacks_in_another_thread_ends(seen):
    f = hx.jit(lambda a: look(seen, a))
    f(slow_zero())
    in_thread(hx.effects_barrier)
    assert seen == [(0,)]
