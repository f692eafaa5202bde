"""The stacks on which resumptions are executed."""

from __future__ import annotations

import contextvars
import gc
import subprocess
import sys
import weakref
from types import SimpleNamespace

import pytest
from helpers.other_threads import in_thread, together

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.direct import stacks

LABEL = contextvars.ContextVar("label", default="none")


@hx.effect(vmap="per_lane")
class Ask:
    def result_type(op):
        return hx.ArrayType((), "float32")


def test_without_greenlets_functions_are_executed_again():
    code = """
import sys
sys.modules["greenlet"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "greenlet" else find(name, *rest)
import handlax as hx
@hx.effect
class Flip:
    def result_type(op): return hx.ArrayType((), "bool")
both = hx.handler({Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: [y])
print(hx.direct(both)(lambda: 1 if hx.perform(Flip()) else 2)())
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True, timeout=300).strip() == "[1, 2]"


def test_the_context_of_the_caller_is_in_force():
    LABEL.set("caller")
    seen = []

    def f():
        seen.append(LABEL.get())
        return hx.perform(Ask())

    handler = hx.handler({Ask: hx.ctl(lambda resume, op: (seen.append(LABEL.get()), resume(1.0))[1])})
    hx.direct(handler)(f)()
    assert seen == ["caller", "caller"]


def test_stacks_that_are_left_are_freed():
    class Held:
        pass

    kept = []

    def f():
        held = Held()
        kept.append(weakref.ref(held))
        hx.perform(Ask())
        return held

    never = hx.handler({Ask: hx.ctl(lambda resume, op: hnp.float32(0))})
    for _ in range(100):
        hx.direct(never)(f)()
    gc.collect()
    assert [ref for ref in kept if ref() is not None] == []


def test_rests_within_each_other_link_their_stacks_once(monkeypatch):
    greenlet = pytest.importorskip("greenlet")
    links = []

    class Counted(greenlet.greenlet):
        """Setting the parent of a greenlet takes time for each of the parent's ancestors."""

        @property
        def parent(self):
            return super().parent

        @parent.setter
        def parent(self, other):
            links.append(other)
            greenlet.greenlet.parent.__set__(self, other)

    monkeypatch.setattr(stacks, "greenlet", SimpleNamespace(greenlet=Counted, getcurrent=greenlet.getcurrent))
    nested = hx.handler({Ask: hx.once(lambda resume, op: 1 + resume(1.0))})

    def f():
        for _ in range(10 * stacks.NESTED):
            hx.perform(Ask())
        return 0

    assert hx.direct(nested)(f)() == 10 * stacks.NESTED
    assert len(links) <= 2 * 10


@pytest.mark.parametrize("depth", [1, 40])
def test_a_rest_is_resumed_in_the_thread_that_executes_it(depth):
    errors = []

    def elsewhere(resume):
        def run():
            try:
                resume(1.0)
            except hx.errors.CannotCross as error:
                errors.append(str(error))

        in_thread(run)
        return hnp.float32(0)

    counts = []

    def clause(resume, op):
        counts.append(1)
        return elsewhere(resume) if len(counts) == depth else resume(1.0)

    hx.direct(hx.handler({Ask: hx.ctl(clause)}))(lambda: sum([hx.perform(Ask()) for _ in range(depth)]))()
    assert len(errors) == 1
    assert "executed in another thread" in errors[0]


def test_threads_have_stacks_of_their_own():
    summed = hx.handler({Ask: hx.ctl(lambda resume, s, op: resume(s + 1, s))})
    def run(i):
        def f():
            return sum([hx.perform(Ask()) for _ in range(100)])

        return float(hx.direct(summed, hnp.float32(i))(f)()[1])

    assert together(8, run) == [100 * i + 4950 for i in range(8)]
