"""Scopes in StableHLO and in what XLA makes of it."""

import re

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

X = hnp.ones((8, 8))


def layer(x):
    with hx.named_scope("norm"):
        return hnp.sin(x)


def model(x):
    with hx.named_scope("outer"):
        x = lax.scan(lambda c, _: (layer(c), None), x, None, length=3)[0]
        x = lax.cond(x.sum() > 0, layer, lambda x: x, x)
    with hx.named_scope("called"):
        return hx.jit(layer)(x)


def paths(text):
    return {*re.findall(r'op_name="([^"]*)"', text)}


def test_locations_are_those_of_the_line_that_performed_an_operation():
    lowered = hx.jit(model).lower(X)
    text = lowered.as_text()
    assert 'loc("outer/norm/sin")' in text and 'loc("outer/reduce_sum")' in text and 'loc("called")' in text
    assert text.count("stablehlo.sine") == text.count('norm/sin")')
    names = paths(lowered.compile().as_text())
    assert {"outer/norm/sin", "called/norm/sin"} <= names  # of the call and of what it calls
    assert {name for name in names if name.endswith("sin")} == {"outer/norm/sin", "called/norm/sin"}


def test_a_program_without_scopes_has_no_locations():
    assert "loc(" not in hx.jit(hx.grad(lambda x: hnp.sin(x).sum())).lower(X).as_text()


def test_equal_programs_in_other_scopes_are_compiled_with_their_own():
    named = lambda name: hx.jit(hx.named_scope(name)(lambda x: hnp.cos(x) * 3.0)).lower(X).compile().as_text()
    assert any(path.startswith("a/") for path in paths(named("a")))
    assert all(path.startswith("b/") for path in paths(named("b")))


@pytest.mark.parametrize("name", ['quote "', "back\\slash", "ümläut", "new\nline", "a/b", "%0", ""])
def test_any_name_can_be_written(name):
    f = hx.jit(hx.named_scope(name)(lambda x: hnp.cos(x) * 5.0))
    assert f(X).shape == X.shape and f.lower(X).as_text().isascii()
