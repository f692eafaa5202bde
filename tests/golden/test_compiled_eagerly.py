"""Eager programs that are compiled at their first call give what is recorded, whatever their estimates say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax.effects.base.later_layers import LaterLayers
from handlax.effects.programs import closure_conversion
from handlax.effects.programs.program import Program
from handlax.interpreters.core import eager_programs, evaluate
from handlax.lowering.compile.eager_compilation import _compiled_here, plan
from handlax.lowering.compile.estimate import estimate

from .call_modes import MODES
from .compare_with_record import compare, recorded
from .labelled_cases import CASES

RECORDED = recorded("values.json")
ROWS = hx.numpy.asarray(np.linspace(-3.0, 3.0, 1200, dtype=np.float32).reshape(4, 300))
LABELS = hx.numpy.arange(40) * 7
KEEPING: dict[str, Callable[[], Any]] = {
    "one_hot": lambda: hx.nn.one_hot(LABELS, 257),
    "dct": lambda: hx.scipy.fft.dct(ROWS),
    "pad": lambda: hx.numpy.pad(ROWS, ((300, 300), (0, 0)), mode="linear_ramp"),
    "detrend": lambda: hx.scipy.signal.detrend(ROWS),
    "resize": lambda: hx.image.resize(ROWS, (16, 20), "linear"),
}


def at_once(program: Program) -> evaluate.Plan | None:
    """The plan that compiles at the first call all programs of several operations that can be compiled."""
    compilable = len(program.ops) > 1 and estimate(program) is not None
    return evaluate.Plan(inf, 0.0, lambda: _compiled_here(program)) if compilable else plan(program)


@pytest.fixture
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every eager program is recorded and compiled at its first call, and takes what it keeps as operands."""
    monkeypatch.setattr(LaterLayers, "plan", staticmethod(at_once))
    monkeypatch.setattr(eager_programs, "_AT_ONCE", 0)
    monkeypatch.setattr(closure_conversion, "MAX_CONSTANT_BYTES", 0)
    hx.clear_caches()
    evaluate.forget_executors()
    yield
    monkeypatch.undo()
    hx.clear_caches()
    evaluate.forget_executors()


@pytest.mark.parametrize("name", KEEPING)
def test_a_compiled_program_is_given_the_arrays_that_it_keeps(name: str, request: pytest.FixtureRequest) -> None:
    wanted = np.asarray(KEEPING[name]())
    request.getfixturevalue("compiled_at_once")
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(KEEPING[name]()), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.sweep
@pytest.mark.parametrize("label", CASES)
def test_a_recorded_call_gives_the_same_compiled_at_its_first_call(label: str, compiled_at_once: None) -> None:
    compare(CASES[label], "eager", MODES["eager"](CASES[label], hx), RECORDED[label])
