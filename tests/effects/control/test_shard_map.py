"""Callbacks over several devices: which call, with what, in which order, and what becomes of their errors."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.debug import DebugPrint
from handlax.experimental import io_callback
from handlax.sharding import Mesh, NamedSharding, P

MESH = Mesh(np.array(hx.devices("cpu")).reshape(2, 4), ("a", "b"))
BOTH = ("a", "b")
LINE = Mesh(np.array(hx.devices("cpu")), ("i",))
ONE = Mesh(np.array(hx.devices("cpu")[:1]), ("i",))
X = hnp.arange(8.0)
RUNS = {
    "called": lambda f, *xs: f(*xs),
    "jitted": lambda f, *xs: hx.jit(f)(*xs),
    "by NumPy": lambda f, *xs: _by_numpy(f, *xs),
}


def _by_numpy(f, *xs):
    with hx.disable_jit():
        return f(*xs)


class Seen(list):
    """What callbacks saw: pairs of a tag and a number."""

    def look(self, tag, x, ordered=False):
        hx.debug.callback(lambda v: self.append((tag, float(v))), x, ordered=ordered)

    def io(self, tag, x, ordered=False):
        def double(v):
            self.append((tag, float(v)))
            return np.asarray(2 * v)

        return io_callback(double, hx.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=ordered)

    def pure(self, tag, x):
        def double(v):
            self.append((tag, float(v)))
            return np.asarray(2 * v)

        return hx.pure_callback(double, hx.ShapeDtypeStruct(x.shape, x.dtype), x)


SPLIT = P("i")


def over(f, mesh=LINE, spec=SPLIT, **options):
    return hx.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **options)


def run(how, f, *xs):
    y = RUNS[how](f, *xs)
    hx.effects_barrier()
    return np.asarray(y).tolist()


@pytest.mark.each_choice
@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    ("kind", "ordered"), [("look", False), ("look", True), ("io", False), ("io", True), ("pure", False)]
)
def test_each_device_calls_on_its_own_piece_and_on_what_all_share(how, checked, kind, ordered):
    seen = Seen()

    def f(x):
        call = getattr(seen, kind)
        options = {} if kind == "pure" else {"ordered": ordered}
        y = call("own", x[0], **options)
        z = call("shared", hnp.float32(5.0), **options)
        return x + (0 if kind == "look" else y + z)

    assert run(how, over(f, check_vma=checked), X) == (X + (0 if kind == "look" else 2 * X + 10)).tolist()
    own = [("own", float(i)) for i in range(8)]
    shared = set(seen) - set(own)
    assert sorted(x for x in seen if x[0] == "own") == own and shared == {("shared", 5.0)}
    assert len(seen) == 16 or kind == "pure"


@pytest.mark.parametrize("how", RUNS)
def test_order_is_kept_on_each_device_and_before_and_after_all_of_them(how):
    seen = Seen()

    def body(x):
        seen.look("first", x[0], ordered=True)

        def step(c, k):
            seen.look("step", 10 * x[0] + k, ordered=True)
            return c, None

        lax.scan(step, 0.0, hnp.arange(3.0))
        lax.cond(x[0] > 5, lambda: seen.look("rare", x[0], ordered=True), lambda: None)
        return seen.io("last", x[0], ordered=True)[None]

    def f(x):
        seen.look("before", x[0], ordered=True)
        y = over(body)(x)
        seen.look("after", y[1], ordered=True)
        return y

    assert run(how, f, X) == (2 * X).tolist()
    assert seen[0] == ("before", 0.0) and seen[-1] == ("after", 2.0) and len(seen) == 2 + 8 * 5 + 2
    for i in range(8):
        mine = [tag for tag, v in seen[1:-1] if (v == i and tag != "step") or (tag == "step" and v // 10 == i)]
        assert mine == ["first", "step", "step", "step", *["rare"] * (i > 5), "last"]


@pytest.mark.parametrize("how", RUNS)
def test_a_mesh_within_a_mesh_and_lanes_within_devices(how):
    seen = Seen()

    def inner(x):
        seen.look("in", x[0], ordered=True)
        return x

    def outer(x):
        return hx.shard_map(inner, mesh=MESH, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})(x)

    run(how, over(outer, MESH, P("a"), axis_names={"a"}), X)
    assert sorted(seen) == [("in", float(i)) for i in range(8)]
    seen.clear()
    run(how, over(inner, MESH, P("b")), X[:4])  # what a copies both devices along it see
    assert sorted(seen) == [("in", float(i)) for i in range(4) for _ in range(2)]
    seen.clear()
    run(how, over(hx.vmap(lambda v: (seen.look("lane", v, ordered=True), v)[1])), hnp.arange(16.0))
    assert sorted(seen) == [("lane", float(i)) for i in range(16)]


@pytest.mark.parametrize("how", RUNS)
def test_transformations_around(how):
    seen = Seen()

    def f(x):
        seen.look("f", x[0])
        return x**2

    assert run(how, hx.grad(lambda x: over(f)(x).sum()), X) == (2 * X).tolist()
    assert sorted(seen) == [("f", float(i)) for i in range(8)]
    seen.clear()
    run(how, hx.vmap(over(f)), hnp.stack([X, X + 8]))
    assert sorted(seen) == [("f", float(i)) for i in range(16)]
    seen.clear()
    run(how, hx.grad(lambda x: hx.checkpoint(over(f))(x).sum()), X)
    assert sorted(seen) == [("f", float(i)) for i in range(8)]


def test_lanes_of_pmap_call_each_from_its_device():
    seen = Seen()
    y = hx.pmap(lambda x: (seen.look("a", x, ordered=True), seen.io("b", x, ordered=True))[1])(X)
    hx.effects_barrier()
    assert y.tolist() == (2 * X).tolist()
    for i in range(8):
        assert [tag for tag, v in seen if v == i] == ["a", "b"]


@pytest.mark.parametrize("mesh", [MESH, ONE])
@pytest.mark.parametrize("ordered", [False, True])
def test_outside_of_shard_map_one_device_calls_on_whole_values(mesh, ordered):
    cut = NamedSharding(mesh, P(mesh.axis_names))
    seen: list = []

    def note(v):
        seen.append(np.asarray(v).tolist())
        return 2 * np.asarray(v)

    def f(x):
        hx.debug.callback(note, x, ordered=ordered)
        y = io_callback(note, hx.ShapeDtypeStruct(x.shape, x.dtype), x + 1, ordered=ordered)
        z = hx.pure_callback(note, hx.ShapeDtypeStruct(x.shape, x.dtype), y)
        return y, z + x

    for run in (hx.jit(f), hx.jit(f, in_shardings=cut, out_shardings=cut)):
        seen.clear()
        y, z = run(hx.device_put(X, cut))
        hx.effects_barrier()
        assert y.tolist() == (2 * (X + 1)).tolist() and z.tolist() == (4 * (X + 1) + X).tolist()
        expected = [X.tolist(), (X + 1).tolist(), (2 * (X + 1)).tolist()]
        assert seen == expected if ordered else sorted(seen) == sorted(expected)


def test_ordered_loops_and_branches_over_several_devices():
    seen = Seen()
    cut = NamedSharding(LINE, P("i"))

    @hx.jit
    def f(x):
        def step(c, k):
            seen.look("step", c.sum() + k, ordered=True)
            return lax.cond(k > 0, lambda c: (seen.look("odd", c[-1], ordered=True), c + 1)[1], lambda c: c, c), None

        return lax.scan(step, x, hnp.arange(3.0))[0]

    f(hx.device_put(X, cut))
    hx.effects_barrier()
    assert seen == [("step", 28.0), ("step", 29.0), ("odd", 7.0), ("step", 38.0), ("odd", 8.0)]


def test_programs_on_other_devices_keep_the_order_of_a_thread():
    seen = Seen()
    places = [hx.devices()[1], NamedSharding(LINE, P("i")), hx.devices()[0], NamedSharding(MESH, P("b"))]

    def slow(v):
        time.sleep(0.02)
        seen.append(("slow", float(v)))

    @hx.jit
    def f(x):
        hx.debug.callback(slow, x[0], ordered=True)

    @hx.jit
    def g(x):
        seen.look("fast", x[0], ordered=True)

    expected = []
    for n, (one, other) in enumerate(itertools.permutations(places, 2)):
        f(hx.device_put(X + n, one))
        g(hx.device_put(X + n, other))
        expected += [("slow", float(n)), ("fast", float(n))]
    hx.effects_barrier()
    assert seen == expected


def fails(v):
    raise ValueError("no such number")


@pytest.mark.parametrize("ordered", [False, True])
def test_an_error_on_one_device_is_raised_and_the_others_do_not_wait_for_it(ordered):
    def whole(x):
        return io_callback(fails, hx.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=ordered) + x

    def on_some(x):
        lax.cond(x[0] == 3, lambda: hx.debug.callback(fails, x, ordered=ordered), lambda: None)
        return lax.psum(x, "i") + 0 * x

    for f in (whole, over(on_some)):
        for _ in range(2):
            with pytest.raises(errors.CallbackError, match="raised ValueError: no such number"):
                hx.jit(f)(hx.device_put(X, NamedSharding(LINE, P("i"))))
    hx.effects_barrier()
    assert hx.jit(over(on_some))(hnp.zeros(8)).tolist() == [0.0] * 8


def test_axes_left_to_the_compiler_are_refused():
    f = over(lambda x: (hx.debug.print("{}", x), x)[1], MESH, P("a"), axis_names={"a"})
    with pytest.raises(errors.CannotCross, match="and over 'b' the compiler divides them"):
        hx.jit(f)(X)


def test_handlers_of_callbacks_around_and_inside():
    texts = hx.handler({DebugPrint: lambda log, op, *xs: ((*log, xs[0]), ())}, moves=hx.append)
    silent = hx.handler({DebugPrint: lambda op, *xs: ()})

    def f(x):
        hx.debug.print("{}", lax.psum(x[0], "i"))
        return 2 * x

    assert hx.handle(silent)(over(f))(X).tolist() == (2 * X).tolist()
    log, y = hx.shard_map(hx.handle(texts, ())(f), mesh=LINE, in_specs=P("i"), out_specs=((P(),), P("i")))(X)
    assert float(log[0]) == 28.0 and y.tolist() == (2 * X).tolist()
    log, y = hx.handle(texts, ())(over(f))(X)
    assert log[0].tolist() == [28.0] * 8 and y.tolist() == (2 * X).tolist()


@hx.effect(vmap="per_lane")
class Throb:
    def result_type(op):
        return None


@hx.custom_jvp
def beats_in_its_rule(x):
    return 3 * x


@beats_in_its_rule.defjvp
def _(primals, tangents):
    hx.perform(Throb())
    return 3 * primals[0], 3 * tangents[0]


def test_effects_that_no_device_answers_are_refused_also_where_a_rule_performs_them():
    count = hx.handler({Throb: lambda n, op: (n + 1, None)})
    for f in (over(lambda x: (hx.perform(Throb()), x)[1]), hx.grad(lambda x: over(beats_in_its_rule)(x).sum())):
        for g in (f, hx.jit(f)):
            with pytest.raises(errors.UnhandledEffect, match="nobody handles Throb"):
                g(X)
        with pytest.raises(errors.CannotCross, match="devices have no order"):
            hx.handle(count, 0)(f)(X)
