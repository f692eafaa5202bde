"""Traces: interpreters by ``process_primitive`` are handlers, under and around every transformation."""

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.core import Trace, Tracer
from handlax.extend.ad import JVPTracer
from handlax.extend.core import TraceTag, find_top_trace, set_current_trace, take_current_trace
from handlax.extend.core.primitives import sin_p

X = hnp.arange(3.0)


class LabelledTracer(Tracer):
    def __init__(self, trace, value):
        super().__init__(trace, hx.typeof(value))
        self.value = value


class Labelled(Trace):
    """Performs every operation on the trace outside, and notes its name."""

    def __init__(self, parent, tag=None):
        super().__init__()
        self.parent, self.tag, self.seen = parent, tag or TraceTag(), []

    def value_of(self, x):
        return x.value if isinstance(x, LabelledTracer) and x._trace.main.tag is self.tag else x

    def process_primitive(self, primitive, tracers, params):
        self.seen.append(primitive.name)
        values = [self.value_of(x) for x in tracers]
        results = primitive.bind_with_trace(self.parent, values, [hx.typeof(x) for x in values], params)
        return hx.tree.map(lambda y: LabelledTracer(self, y), results)


def labelled(f, *xs):
    """What ``f`` gives, and the names of what it performed."""
    with take_current_trace() as parent:
        trace = Labelled(parent)
        with set_current_trace(trace):
            y = f(*[LabelledTracer(trace, x) for x in xs])
        return trace.value_of(y), trace.seen


PROGRAMS = {
    "operations": (lambda x: hnp.sin(x) * 2, ["sin", "mul"]),
    "jit": (hx.jit(lambda x: hnp.sin(x) * 2), ["jit"]),
    "scan": (lambda x: lax.scan(lambda c, y: (c * 2 + x, c * y), x, X)[1], ["scan"]),
    "while": (lambda x: lax.while_loop(lambda c: (c - x).sum() < 99, lambda c: c * 2 + x, x + 1), ["add", "while"]),
    "cond": (lambda x: lax.cond(x[0] > 1, hnp.sin, lambda y: y + x, x), ["cond"]),
    "grad": (hx.grad(lambda x: hnp.sin(x).sum()), ["sin", "cos", "reduce_sum"]),
    "vmap": (hx.vmap(lambda x: hnp.sin(x) * 2), ["sin", "mul"]),
    "constants": (lambda x: x + hnp.cos(1.0), ["cos", "add"]),
    "several results": (lambda x: lax.top_k(x, 2)[1], ["top_k"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_is_asked_for_each_operation_and_values_stay(name):
    f, performed = PROGRAMS[name]
    y, seen = labelled(f, X)
    assert hnp.allclose(y, f(X)) and [name for name in seen if name in performed] == performed


@pytest.mark.parametrize("transform", [hx.jit, hx.vmap, lambda f: hx.grad(lambda x: f(x).sum()), hx.checkpoint])
def test_transformations_around_a_trace_see_what_it_performs(transform):
    f = lambda x: hnp.sin(x) * 2
    inside = lambda x: labelled(f, x)[0]
    assert hnp.allclose(transform(inside)(X), transform(f)(X))


def test_traces_nest_and_each_knows_its_own_values():
    def inner(x):
        y, seen = labelled(lambda z: hnp.sin(z) * x, x)
        assert seen == ["sin", "mul"]
        return y

    y, seen = labelled(inner, X)
    assert hnp.allclose(y, hnp.sin(X) * X) and seen == ["sin", "mul"]


def test_what_process_primitive_performs_goes_to_the_handlers_outside():
    class Doubling(Trace):
        def process_primitive(self, primitive, tracers, params):
            return 2 * primitive.bind(*tracers, **params)

    def f(x):
        with set_current_trace(Doubling()):
            return hnp.sin(x)

    assert hnp.allclose(f(X), 2 * hnp.sin(X)) and hnp.allclose(hx.jit(hx.vmap(f))(X), 2 * hnp.sin(X))


def test_within_take_current_trace_known_values_are_computed():
    @hx.jit
    def f(x):
        with take_current_trace():
            return x if hnp.sin(3.0) > 0 else -x

    assert f(2.0) == 2.0


def test_a_primitive_is_performed_on_the_trace_that_is_named():
    def f(x):
        outer = find_top_trace(())
        return hx.jvp(lambda y: sin_p.bind_with_trace(outer, [x], [hx.typeof(x)], {}) * y, (x,), (1.0,))

    y, dy = f(2.0)
    assert hnp.allclose(y, hnp.sin(2.0) * 2.0) and hnp.allclose(dy, hnp.sin(2.0))


def test_the_top_trace_is_that_of_the_values():
    def outer(x):
        def inner(y):
            assert find_top_trace([x]).main is x._trace.main is not find_top_trace([x, y]).main
            assert isinstance(y, JVPTracer) and find_top_trace([y]) is y._trace
            return x * y

        return hx.jvp(inner, (x,), (1.0,))[1]

    assert hx.jvp(outer, (3.0,), (1.0,)) == (3.0, 1.0)


def test_a_value_that_leaves_its_trace_is_refused():
    with take_current_trace() as parent:
        escaped = LabelledTracer(Labelled(parent), X)
    with pytest.raises(errors.EscapedBox, match="Labelled"):
        escaped + 1


def test_a_trace_without_its_method_says_so():
    with pytest.raises(errors.MissingRule, match="process_primitive"), set_current_trace(Trace()):
        hnp.sin(X)
