"""Primitives whose rules are methods."""

import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.core import pytype_aval_mappings
from handlax.extend import hijax
from handlax.extend.core import Effect

X = hnp.arange(3.0)


class Scaled(hijax.HiPrimitive):
    """A linear one, whose meaning is another operation."""

    def abstract_eval(self, x, *, by):
        return x, set()

    def to_lojax(self, x, *, by):
        return x * by

    def jvp(self, primals, tangents, *, by):
        return self.bind(*primals, by=by), self.bind(*tangents, by=by)

    def transpose(self, ct, x, *, by):
        return [self.bind(ct, by=by)]


class Both(hijax.HiPrimitive):
    """One with two results, known by its implementation alone."""

    multiple_results = True

    def abstract_eval(self, x):
        return [x, x], set()

    def impl(self, x):
        return [x + 1, x - 1]


scaled, both = Scaled("scaled"), Both("both")


def test_the_methods_are_the_rules():
    f = lambda x: scaled.bind(x, by=3.0)
    assert f(X).tolist() == hx.jit(f)(X).tolist() == [0.0, 3.0, 6.0]
    assert hx.grad(lambda x: f(x).sum())(X).tolist() == [3.0] * 3 and hx.jvp(f, (X,), (X,))[1].tolist() == f(X).tolist()
    assert [y.tolist() for y in both.bind(X)] == [[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]]


def test_a_method_that_is_not_there_is_missing_where_it_is_needed():
    with pytest.raises(errors.HandlaxError):
        hx.jit(lambda x: both.bind(x))(X)
    with pytest.raises(errors.MissingRule):
        hx.jvp(lambda x: both.bind(x), (X,), (X,))


def test_every_effect_may_stand_in_loops_and_is_an_operation():
    @hx.effect(vmap="per_lane")
    class Beat:
        def result_type(op):
            return None

    hijax.control_flow_allowed_effects.add_type(Beat)
    (effect,) = hx.make_jaxpr(lambda: hx.perform(Beat()))().effects
    assert isinstance(effect, Effect) and hijax.control_flow_allowed_effects.contains(effect)


def test_a_class_has_the_type_that_is_registered():
    class Held:
        x = X

    hijax.register_hitype(Held, lambda held: hx.typeof(held.x))
    assert hx.typeof(Held()) == hx.typeof(X)
    del pytype_aval_mappings[Held]


def test_a_primitive_belongs_to_the_module_that_makes_it():
    class Named(hijax.HiPrimitive):
        pass

    assert Named("named").operation.__module__ == __name__
