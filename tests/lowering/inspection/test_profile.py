"""Where the time of a block went: steps and instructions are counted for the function that they are of."""

import logging
import threading

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import ProfilerMisuse
from handlax.lowering.inspection.profile import Profile, _Steps


def test_each_step_counts_for_its_function():
    inner = hx.jit(lambda x: x * 2.0)
    inner.__name__ = "inner"

    @hx.jit
    def outer(x):
        return inner(hnp.sin(x @ x).sum())

    with hx.profile() as found:
        for size in (20, 20, 30):
            outer(np.ones((size, size), "float32")).block_until_ready()
    times = found.functions["jit(outer)"]
    assert {step: times.times[step] for step in ("tracing", "lowering", "compiling")} == dict(
        tracing=2, lowering=2, compiling=2
    )
    assert times.reasons == ["  2: x: f32[30,30] (x: shape from (20, 20) to (30, 30))"]
    assert times.seconds["executing"] > 0 and found.total("compiling") < found.seconds
    assert next(iter(found.functions)) == "jit(outer)"  # the slowest is the first


def test_what_was_compiled_before_is_executed_alone():
    @hx.jit
    def known(x):
        return lax.fori_loop(0, 3, lambda i, x: x @ x, x)

    x = hnp.eye(50)
    known(x).block_until_ready()
    with hx.profile() as found:
        known(x).block_until_ready()
    times = found.functions["jit(known)"]
    assert dict(times.times).keys() == {"executing"}
    own = [event.duration_ns * 1e-9 for plane in found.data.planes for line in plane.lines for event in line.events
           if dict(event.stats).get("hlo_module") == "jit_known" and not event.name.startswith("while")]
    assert own and times.seconds["executing"] == pytest.approx(sum(own))  # the loop's own time is that of its body


def test_a_step_within_another_counts_for_itself(monkeypatch):
    found, clock = Profile(), iter((10.0, 12.0, 13.0, 20.0))
    monkeypatch.setattr("handlax.lowering.inspection.profile.time.perf_counter", lambda: next(clock))
    steps = _Steps(found)
    event = "/jax/core/compile/jaxpr_trace_duration"
    steps(event, 1.0, fun_name="before")  # 9 to 10
    steps(event, 1.0, fun_name="inner")   # 11 to 12
    steps(event, 2.5, fun_name="middle")  # 10.5 to 13
    steps(event, 9.75, fun_name="outer")  # 10.25 to 20
    seconds = {name: times.seconds["tracing"] for name, times in found.functions.items()}
    assert seconds == {"before": 1.0, "inner": 1.0, "middle": 1.5, "outer": 7.25}


def test_the_table_has_a_row_for_each_function_and_says_why():
    found = Profile()
    found.seconds = 2.0
    found.of("jit(f)").add("tracing", 0.5)
    found.of("jit(f)").add("executing", 0.0125)
    found.of("jit(g)").add("compiling", 25e-6)
    found.of("jit(g)").reasons.append("  2: x: f32[3] (x: dtype from int32 to float32)")
    assert str(found).splitlines() == [
        "2 s: tracing 500 ms, lowering 0 s, compiling 25 us, and 1.5 s else",
        "on devices: 12.5 ms",
        "",
        "function          tracing         lowering        compiling        executing",
        "jit(f)         500 ms (1)                                            12.5 ms",
        "jit(g)                                            25 us (1)",
        "",
        "jit(g) was compiled anew:",
        "  2: x: f32[3] (x: dtype from int32 to float32)",
    ]


def test_threads_are_counted_and_what_ends_leaves_nothing():
    handlers, f = list(logging.getLogger("handlax").handlers), hx.jit(lambda x: x + 5)

    thread = threading.Thread(target=f, args=(1,))

    def fail():
        thread.start()
        thread.join(60)
        with pytest.raises(ProfilerMisuse), hx.profile():
            pass
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), hx.profile() as found:
        fail()
    assert found.functions["jit(<lambda>)"].times["compiling"] == 1
    assert logging.getLogger("handlax").handlers == handlers
    with hx.profile() as again:
        pass
    assert not again.functions


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
def test_a_block_that_fails_has_all_that_was_recorded(error):
    f = hx.jit(lambda x: x @ x)

    def fail():
        f(np.ones((50, 50), "float32")).block_until_ready()
        raise error

    with pytest.raises(error), hx.profile() as found:
        fail()
    assert found.data is not None and found.functions["jit(<lambda>)"].seconds["executing"] > 0


def test_the_profile_is_written(tmp_path):
    with hx.profile(tmp_path):
        hx.jit(lambda x: x + 6)(1.0).block_until_ready()
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))


def test_a_profile_of_nothing_has_no_table():
    times = Profile()
    assert str(times) == repr(times) == "0 s: tracing 0 s, lowering 0 s, compiling 0 s, and 0 s else\non devices: 0 s"
