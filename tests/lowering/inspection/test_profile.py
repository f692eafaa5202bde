"""Where the time of a block went: steps and instructions are counted for the function that they are of."""

import logging
import threading

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.watching import FunctionLabel
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
    found.of(FunctionLabel("jit(f)")).add("tracing", 0.5)
    found.of(FunctionLabel("jit(f)")).add("executing", 0.0125)
    found.of(FunctionLabel("jit(g)")).add("compiling", 25e-6)
    found.of(FunctionLabel("jit(g)")).reasons.append("  2: x: f32[3] (x: dtype from int32 to float32)")
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


def test_functions_of_one_name_have_a_row_each():
    f, g = hx.jit(lambda x: x @ x.T), hx.jit(lambda x: x + 17)
    line = test_functions_of_one_name_have_a_row_each.__code__.co_firstlineno + 1
    with hx.profile() as found:
        for size in (4, 5, 6):
            f(np.ones((size, size), "float32")).block_until_ready()
            g(np.ones((size + 10, size + 10), "float32")).block_until_ready()
    named = f"jit(<lambda>) at test_profile.py:{line}"
    assert set(found.functions) == {named, f"{named} (2)"}
    first, second = found.functions[named], found.functions[f"{named} (2)"]
    for times, sizes in ((first, (4, 5, 6)), (second, (14, 15, 16))):
        assert [times.times[step] for step in ("tracing", "lowering", "compiling")] == [3, 3, 3]
        assert times.reasons == [
            f"  {i + 1}: x: f32[{sizes[i]},{sizes[i]}] "
            f"(x: shape from {(sizes[i - 1],) * 2} to {(sizes[i],) * 2})" for i in (1, 2)
        ]
    executed = [dict(event.stats).get("hlo_op", "") for plane in found.data.planes for line in plane.lines
                for event in line.events if dict(event.stats).get("hlo_module") == "jit__lambda"]
    assert first.times["executing"] == len([op for op in executed if "dot" in op]) == 3
    assert second.times["executing"] == len(executed) - 3 > 0


def test_a_function_and_its_gradient_have_a_row_each():
    def cube(x):
        return x**3

    with hx.profile() as found:
        for each in (cube, hx.grad(cube)):
            hx.jit(each)(3.0).block_until_ready()
    assert len(found.functions) == 2
    assert all([times.times["compiling"] == 1 and times.times["executing"] for times in found.functions.values()])


def test_a_function_that_is_made_anew_has_one_row():
    def made():
        return hx.jit(lambda x: x * 19)

    with hx.profile() as found:
        for _ in range(3):
            made()(1.0).block_until_ready()
    ((name, times),) = found.functions.items()
    assert (name, times.times["tracing"], times.times["compiling"]) == ("jit(<lambda>)", 3, 1)


@pytest.mark.parametrize("name", ["<genexpr>", "f(x)", 'a"b', "a b", "a_b", "_", "größe"])
def test_a_name_of_any_characters_has_one_row(name):
    def f(x):
        return x * x - len(name)

    f.__name__ = name
    with hx.profile() as found:
        hx.jit(f)(5.0).block_until_ready()
    assert [*found.functions] == [f"jit({name})"] and found.functions[f"jit({name})"].seconds["executing"] > 0


def test_a_dropped_program_of_a_shared_name_has_its_own_row():
    f, g = hx.jit(lambda x: x / 23), hx.jit(lambda x: x - 23)
    with hx.profile() as found:
        y = f(1.0).block_until_ready()
        hx.clear_caches()
        g(y).block_until_ready()
    kinds = [sorted(times.times) for times in found.functions.values()]
    assert sorted(kinds) == [["compiling", "executing", "lowering", "tracing"], ["compiling", "lowering", "tracing"],
                             ["executing"]]
    assert [*found.functions["jit(<lambda>)"].times] == ["executing"]


def test_equal_programs_are_executed_for_the_last_function():
    first, last = hx.jit(lambda x: x * 29), hx.jit(lambda x: x * 29)
    first(1.0)
    with hx.profile() as found:
        last(1.0).block_until_ready()
    ((name, times),) = found.functions.items()
    assert name == "jit(<lambda>)" and times.times["tracing"] == 1 and times.times["executing"]
