"""Recorded bodies: how the type of a carry may change."""

import pytest

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.effects.control.recorded_bodies import shared_results


def test_a_weak_start_takes_the_type_that_the_body_gives():
    assert lax.fori_loop(0, 2, lambda i, c: c + hnp.asarray(0.25, "float16"), 1).dtype == hnp.float16
    assert lax.scan(lambda c, _: (c + 0.5, None), 1, None, 2)[0] == 2.0


def test_a_weak_start_that_the_type_of_the_body_cannot_hold_is_refused():
    with pytest.raises(hx.errors.StateTypeError, match=r"f32\[\]~ at the start and i32\[\] after the body"):
        lax.fori_loop(0, 0, lambda i, c: hnp.asarray(1, "int32"), 0.5)
    with pytest.raises(hx.errors.StateTypeError, match="start from a value of type key"):
        lax.while_loop(lambda c: False, lambda c: random.key(0), 0.5)


def test_a_strong_carry_keeps_its_dtype():
    with pytest.raises(hx.errors.StateTypeError, match=r"i32\[\] at the start and f32\[\]~ after the body"):
        lax.fori_loop(0, 3, lambda i, c: c + 1.5, hnp.asarray(0, "int32"))


def test_branches_of_an_integer_and_a_weak_fraction_are_refused():
    with pytest.raises(hx.errors.StateTypeError, match="same types"):
        lax.cond(True, lambda: hnp.int32(3), lambda: 0.5)
    y = lax.cond(True, lambda: hnp.float32(3), lambda: 2)
    assert y.dtype == "float32" and not y.weak_type


def test_each_body_finds_its_values_among_as_few_results_as_one_body_needs_of_a_type():
    scalar, vector = hx.ArrayType((), "float32"), hx.ArrayType((3,), "float32")
    types, positions = shared_results([[scalar, scalar], [vector, scalar], []])
    assert types == [scalar, scalar, vector]
    assert positions == [(0, 1), (2, 0), ()]
