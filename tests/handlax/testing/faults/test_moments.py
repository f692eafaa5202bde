"""Interrupts come at each moment once, and what is not put back after one is found."""

import sys
import threading

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.wrapping import context_variable
from handlax.testing.faults import exits, interrupts

VARIABLE = context_variable("test_moments", 0)


def program():
    return hx.jvp(lambda x: hnp.sin(x) * x, (1.0,), (1.0,))


def test_later_moments_are_more_and_each_comes_once():
    counts = []
    for at in ("blocks", "calls", "lines"):
        seen = list(interrupts(program, at=at, every=1 if at == "blocks" else 7))
        assert all(type(fault.left) is KeyboardInterrupt for fault in seen)
        assert [fault.number for fault in seen] == [*range(0, 10**6, 1 if at == "blocks" else 7)][: len(seen)]
        counts.append(seen[-1].number)
    assert 1 < counts[0] < counts[1] < counts[2]


def test_a_fault_says_where_it_was():
    places = [str(fault) for fault in interrupts(program, at="calls")]
    assert places[0].startswith("fault 0, ") and any("jvp.py:" in place for place in places)


class Badly:
    """A block that puts its variable back only where nothing interrupts it."""

    def __enter__(self):
        VARIABLE.set(VARIABLE.get() + 1)

    def __exit__(self, kind, error, traceback):
        if kind is None:
            VARIABLE.set(VARIABLE.get() - 1)


def badly():
    with Badly():
        program()


def test_what_is_not_put_back_is_found_and_then_put_back():
    with pytest.raises(AssertionError, match=r"fault \d+, .*: the library .*, changed:\n  the context test_moments"):
        list(interrupts(badly))
    assert VARIABLE.get() == 0


def test_an_error_of_the_function_itself_comes_out():
    calls = iter(range(10**6))
    with pytest.raises(ZeroDivisionError):
        list(interrupts(lambda: 1 / (1 - next(calls)) and program()))


@pytest.mark.parametrize("at", ["blocks", "lines"])
def test_a_function_that_is_never_interrupted_is_an_error(at):
    def in_another_thread():
        thread = threading.Thread(target=program)
        thread.start()
        thread.join(60)

    with pytest.raises(AssertionError, match="in its own thread"):
        list(interrupts(in_another_thread, at=at))


@pytest.mark.parametrize("injector", [interrupts, lambda f, every: exits("pass", every=every)])
@pytest.mark.parametrize("every", [0, -1])
def test_faults_go_on_from_one_to_a_later_one(injector, every):
    with pytest.raises(hx.errors.BadArgument, match="every must be at least 1"):
        next(injector(program, every=every))


def test_moments_of_an_unknown_name_are_refused():
    with pytest.raises(hx.errors.BadArgument, match="at must be 'blocks', 'calls', 'lines' or 'instructions', got 'ca"):
        interrupts(program, at="call")


@pytest.mark.parametrize(("at", "listen", "listening"), [
    ("calls", sys.setprofile, sys.getprofile), ("lines", sys.settrace, sys.gettrace),
])
def test_who_listens_outside_listens_again(at, listen, listening):
    before, outside = listening(), lambda frame, event, argument: None
    try:
        listen(outside)
        next(interrupts(program, at=at))
        after = listening()
    finally:
        listen(before)
    assert after is outside


def test_memory_that_is_used_up_leaves_the_library_whole():
    endings = {type(fault.left) for fault in interrupts(program, at="calls", every=3, error=MemoryError)}
    assert MemoryError in endings and endings <= {MemoryError, hx.errors.OutOfMemory, type(None)}
