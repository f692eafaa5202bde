"""The laws of transformations and interpreters find what breaks them, and hold of ours."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.operations import Exp, Sin, Tanh
from handlax.testing import LawFails, check_interpreter, check_transformation


def held(report):
    return {law.name for law, *_ in report.held}


def in_lanes(f):
    """Of one lane, which is taken out again."""
    return lambda *xs: hx.tree.map(lambda y: y[0], hx.vmap(f)(*[hnp.asarray(x)[None] for x in xs]))


@pytest.mark.parametrize("identity", [hx.jit, hx.checkpoint, in_lanes], ids=["jit", "checkpoint", "one lane"])
def test_transformations_that_keep_values_pass(identity):
    report = check_transformation(identity, meaning=lambda f: f, examples=2)
    assert {"meaning", "jit", "lanes", "again", "tangent"} <= held(report)


def test_a_derivative_passes():
    def tangents(f):
        ones = lambda xs: tuple([hnp.ones_like(x) for x in xs])
        return lambda x, v, w, k, p: hx.jvp(lambda *xs: f(*xs, k, p)[:1], (x, v, w), ones((x, v, w)))

    report = check_transformation(tangents, examples=2)
    assert {"unrolled", "effects", "tangent"} <= held(report)


def test_a_transformation_that_changes_values_is_found_and_the_program_is_shown():
    wrong = hx.handle(hx.handler(dict.fromkeys((Exp, Sin, Tanh), lambda op, x: hx.perform(op, x) * 1.5)))
    with pytest.raises(LawFails, match=r"equals its meaning(?s:.*)def program"):
        check_transformation(wrong, meaning=lambda f: f, seconds=60.0)


def test_a_transformation_with_a_memory_is_found():
    seen = []

    def growing(f):
        def call(*xs):
            seen.append(0)
            return hx.tree.map(lambda y: y * len(seen) if y.dtype == np.float64 else y, f(*xs))

        return call

    with pytest.raises(LawFails, match=r"called again|Python|meaning"):
        check_transformation(growing, meaning=lambda f: f, examples=1)


def test_an_interpreter_that_only_passes_on_is_checked_as_a_transformation():
    report = check_interpreter(lambda f: f, related=lambda found, y: hx.tree.structure(found) == hx.tree.structure(y),
                               examples=1)
    assert "related" in held(report) and "no run with boxes" in report.left_out["parts"]
