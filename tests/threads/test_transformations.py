"""Threads and tasks that trace, transform, compile and run at once give what they give one after another."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.other_threads import LIMIT, OtherThread, in_thread, together

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.types.array_type import array_type


@hx.effect(vmap="per_lane", diff="stop")
class Tally:
    """Counts."""

    by: int = 1

    def result_type(op):
        return None


COUNTER = hx.handler({Tally: lambda n, op: (n + op.by, None)})
SIN = hx.make_program(lax.sin)(1.0).ops[0].__class__


def transforming(i):
    def f(x):
        return hnp.sum(hnp.sin(x * (i + 1)) * x)

    x = hnp.arange(3.0) + i
    return [
        hx.grad(f)(x),
        hx.jit(hx.grad(f))(x),
        hx.vmap(hx.jit(lambda y: y * i))(x),
        hx.jvp(f, (x,), (x,))[1],
        hx.hessian(f)(x),
        hx.linearize(f, x)[1](x),
    ]


def ragged(i):
    """Lanes of different lengths, which are known, or values."""

    def lane(row):
        return lax.scan(lambda c, y: (c + y, c), row.shape[0] * 1.0, hx.nn.softmax(hnp.outer(row, row)) @ row)[1]

    rows = hnp.arange(8.0) / (i + 1)
    results = []
    for x in (hx.Ragged(rows, (3, 1, 4)), hx.Ragged(rows, np.array([i % 4, 4 - i % 4, 2]), 5)):
        over = lambda x: hx.vmap(lane, hx.ragged_axis, hx.ragged_axis)(x).data
        results += [over(x), hx.jit(over)(x)]
    return results


def handling(i):
    def f(x):
        for _ in range(i):
            hx.perform(Tally(2))
        return x + i

    n, y = hx.handle(COUNTER, 0)(hx.jit(f))(1.0)
    ns, grad = hx.handle(COUNTER, 0)(hx.grad(f))(1.0)
    return [n, y, ns, grad]


def configuring(i):
    made = []
    for k in range(5):
        with hx.configure(default_float="float64" if (i + k) % 2 else "float32"):
            made.append(hnp.zeros(2) + hx.jit(lambda: hnp.ones(2))())
    return made


def ruling(i):
    f = hx.jit(lax.sin)

    def jvp(op, primals, tangents):
        return hx.perform(op, *primals), tangents[0] * float(i)

    outside = hx.grad(f)(0.0)
    with hx.rules(jvp={SIN: jvp}):
        inside = hx.grad(f)(0.0), hx.grad(lax.sin)(0.0)
    return [outside, *inside, hx.grad(f)(0.0)]


def recording(i):
    program = hx.make_program(lambda x: hnp.sin(x) + i)(hnp.ones(2))
    assert hx.parse_program(str(program)).unwrap() == program
    again = hx.make_program(lambda x: hnp.sin(x) + i)(hnp.ones(2))
    return [program(hnp.ones(2)), hnp.asarray(hash(program) == hash(again))]


WORK = {f.__name__: f for f in (transforming, ragged, handling, configuring, ruling, recording)}


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WORK)
def test_eight_threads_give_what_one_after_another_gives(name):
    work = WORK[name]
    found = together(8, work)
    same(found, [work(i) for i in range(8)])


def test_threads_that_do_different_things():
    kinds = [*WORK.values(), *WORK.values()][:8]
    found = together(8, lambda i: kinds[i](i))
    same(found, [kinds[i](i) for i in range(8)])


def test_clearing_caches_while_others_run_changes_no_result():
    def work(i):
        if i == 0:
            for _ in range(20):
                hx.clear_caches()
            return []
        return transforming(i)

    found = together(4, work)
    same(found[1:], [transforming(i) for i in range(1, 4)])


def test_types_are_interned_once_for_all_threads():
    shapes = [(n, 1234567 + n) for n in range(200)]
    made = together(8, lambda i: [array_type(shape, "float32") for shape in shapes])
    for others in zip(*made):
        assert len({id(t) for t in others}) == 1


def test_a_stack_belongs_to_its_thread():
    seen = {}

    def f(x):
        def elsewhere():
            seen["handlers"] = hx.handlers()
            seen["value"] = float(hx.grad(lambda y: y * y)(3.0))

        in_thread(elsewhere)
        return x * x

    assert float(hx.grad(f)(2.0)) == 4.0
    assert seen == {"handlers": (), "value": 6.0}


def test_tasks_have_a_stack_of_their_own():
    async def task(i):
        out = []
        for _ in range(5):
            with hx.configure(default_float="float64" if i % 2 else "float32"):
                await asyncio.sleep(0)
                out.append(hnp.ones(2))
            await asyncio.sleep(0)
            out.append(hx.grad(lambda x: x * x * i)(3.0))
        return out

    async def main():
        return await asyncio.gather(*[task(i) for i in range(8)])

    for i, found in enumerate(asyncio.run(main())):
        assert {y.dtype.name for y in found[::2]} == {"float64" if i % 2 else "float32"}
        assert [float(y) for y in found[1::2]] == [6.0 * i] * 5


def test_a_task_inherits_the_handlers_where_it_was_made():
    async def tick(n):
        await asyncio.sleep(0)
        return hx.config.default_float

    async def main():
        with hx.configure(default_float="float64"):
            inner = asyncio.create_task(tick(1))
        return await inner, hx.config.default_float

    assert asyncio.run(main()) == (np.float64, np.float32)


def test_a_copied_context_carries_the_scope_into_a_thread():
    with hx.configure(default_float="float64"):
        context = contextvars.copy_context()
    assert in_thread(context.run, lambda: hnp.ones(1).dtype) == np.float64
    assert in_thread(lambda: hnp.ones(1).dtype) == np.float32


def tick():
    hx.perform(Tally())


def tick_in_a_loop():
    lax.fori_loop(0, 1, lambda i, c: (hx.perform(Tally()), c)[1], 0)


MOVEMENTS = {
    "carry": (hx.carry, lambda n: n + 1, 0),
    "append": (hx.append, lambda log: (*log, 0), ()),
    "merge": (hx.merge(hnp.add, 0), lambda n: n + 1, 0),
    "split": (hx.split(lambda n, count: hnp.arange(count) + n), lambda n: n + 1, 0),
}


@pytest.mark.parametrize("perform", [tick, tick_in_a_loop])
@pytest.mark.parametrize("moves", MOVEMENTS)
def test_threads_that_share_a_state_lose_nothing_in_silence(moves, perform):
    movement, after, start = MOVEMENTS[moves]
    asked, answered = threading.Event(), threading.Event()

    def clause(state, op):
        asked.set()
        assert answered.wait(LIMIT)
        return after(state), None

    waiting = hx.handler({Tally: clause}, moves=movement)
    with hx.handle(waiting, start) as run:
        first = OtherThread(contextvars.copy_context().run, perform)
        assert asked.wait(LIMIT)
        try:
            with pytest.raises(hx.errors.BadCall, match="two threads at once perform under handler"):
                perform()
        finally:
            answered.set()
        first.result()
        counted = lambda: len(run.current) if moves == "append" else int(run.current)
        assert counted() == 1
        perform()
        assert counted() == 2


def test_threads_that_take_turns_share_a_state():
    lock = threading.Lock()

    def work():
        for _ in range(50):
            with lock:
                hx.perform(Tally())

    counter = hx.handler({Tally: lambda n, op: (n + 1, None)})
    with hx.handle(counter, 0) as run:
        for thread in [OtherThread(contextvars.copy_context().run, work) for _ in range(4)]:
            thread.result()
        assert run.current == 200


FIRST_USE = """
import threading
import handlax as hx
from handlax import numpy as hnp
barrier, found = threading.Barrier(8, timeout=60), [None] * 8
def work(i):
    barrier.wait()
    found[i] = (float(hx.jit(lambda x: hnp.sin(x) * 0 + x + i)(1.0)), float(hnp.sum(hnp.ones(i))), str(hx.devices()[0]))
threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
[t.start() for t in threads]
[t.join(100) for t in threads]
assert [f[:2] for f in found] == [(i + 1.0, float(i)) for i in range(8)], found
assert len({f[2] for f in found}) == 1
print("done")
"""


def test_the_runtime_is_first_loaded_by_eight_threads_at_once():
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "done\n", done.stderr
