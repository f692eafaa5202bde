"""The interpreter ends while a thread traces, compiles, runs and performs."""

import itertools

import pytest

from handlax.testing.faults import exits

PROGRAM = """
import handlax as hx
from handlax import lax, numpy as hnp

@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None

def ticking(c, x):
    hx.perform(Tick())
    return c + hnp.sin(x), c

count = hx.handler({Tick: lambda n, op: (n + 1, None)})
for n in range(4):
    f = hx.jit(lambda xs: hx.handle(count, 0)(lambda xs: lax.scan(ticking, float(n), xs)[0])(xs))
    f(hnp.ones(3))
    hx.jit(lambda x: hx.debug.callback(lambda x: None, x) or x)(float(n))
"""


@pytest.mark.parametrize("daemon", [False, True])
def test_a_process_ends_while_a_thread_works(daemon):
    places = [fault.place for fault in itertools.islice(exits(PROGRAM, daemon=daemon, every=5_000), 2)]
    assert len(places) == 2 and all(place.startswith("the interpreter ends while at ") for place in places)


@pytest.mark.sweep
@pytest.mark.parametrize("daemon", [False, True])
def test_a_process_ends_at_any_moment_of_a_thread(daemon):
    assert len([*exits(PROGRAM, daemon=daemon, every=300)]) > 10


@pytest.mark.parametrize(("program", "said"), [
    ("import os, handlax as hx\nhx.jit(lambda x: os.abort())(1.0)", "got the status -6"),
    ("1 / 0", "ZeroDivisionError"),
])
def test_a_process_that_crashes_or_fails_is_found(program, said):
    with pytest.raises(AssertionError, match=said):
        [*exits(program, daemon=False, every=5)]


def test_a_process_that_hangs_is_found():
    with pytest.raises(AssertionError, match="goes on after"):
        next(exits("", patience=0.1))
