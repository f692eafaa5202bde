"""Traces: one for each function and types, freed with the function, none stale, and none that leaks."""

from __future__ import annotations

import gc
import pathlib
import random
import types
import weakref

import numpy as np
import pytest

import handlax as hx
from handlax.errors import Leak
from handlax.testing import counted


def array(*items, dtype="float32"):
    return hx.device_put(np.array(items, dtype))


def test_a_body_is_traced_once_however_it_is_nested():
    inner = hx.jit(lambda x: hx.lax.sin(x) * x)
    assert counted(lambda: inner(1.0)).traces == 1
    assert counted(lambda: (inner(2.0), hx.grad(inner)(1.0), hx.vmap(inner)(array(1, 2)))).traces <= 2
    outer = hx.jit(lambda x: inner(x) + inner(x + 1) + hx.grad(inner)(x))
    assert counted(lambda: outer(1.0)).traces == 1
    assert counted(lambda: (outer(2.0), hx.grad(outer)(1.0))).traces == 0


def test_depth_costs_one_trace_per_level():
    f = hx.lax.sin
    for _ in range(5):
        f = hx.jit(hx.grad(f))
    assert counted(lambda: f(1.0)).traces <= 10


def test_functions_and_their_traces_are_freed():
    state = []

    def make():
        def f(x):
            return x + len(state)

        return f

    f = make()
    dead = weakref.ref(f)
    hx.jit(f)(1.0)
    count = hx.cache_info()["trace"].size
    del f
    gc.collect()
    assert dead() is None and hx.cache_info()["trace"].size < count


def test_a_trace_that_captured_a_box_is_not_kept():
    def outer(y):
        inner = hx.jit(lambda x: x * y)
        return inner(y) + inner(2.0)

    assert float(hx.grad(outer)(3.0)) == 8.0
    assert float(hx.grad(outer)(4.0)) == 10.0
    assert float(hx.jit(hx.grad(outer))(3.0)) == 8.0


def test_settings_are_part_of_the_key():
    f = hx.jit(lambda x: x + 1.0)
    types = [f(1).dtype]
    with hx.configure(default_float="float64"):
        types.append(f(1).dtype)
    types.append(f(1).dtype)
    assert types == [np.float32, np.float64, np.float32] and f._cache_size() == 2


def test_caches_are_cleared():
    f = hx.jit(lambda x: x * 11)
    f(1.0)
    assert f._cache_size() == 1
    f.clear_cache()
    assert f._cache_size() == 0 and counted(lambda: f(1.0)).traces == 1
    hx.clear_caches()
    assert f._cache_size() == 0 and counted(lambda: f(1.0)).traces == 1


def test_a_failed_trace_leaves_nothing_behind():
    broken = [True]

    @hx.jit
    def f(x):
        if broken[0]:
            raise KeyError("no")
        return x + 1

    for _ in range(2):
        with pytest.raises(KeyError):
            f(1.0)
    broken[0] = False
    assert float(f(1.0)) == 2.0 and f._cache_size() == 1


def test_a_leak_is_found_when_the_trace_ends():
    kept = []
    with hx.checking_leaks():
        hx.jit(lambda x: x * 5)(1.0)
        with pytest.raises(Leak, match=r"made at test_trace_cache\.py"):
            hx.jit(lambda x: kept.append(x * 2) or x)(1.0)


def test_garbage_is_collected_only_where_a_value_is_referred_to_and_is_no_leak(monkeypatch):
    collected = []
    monkeypatch.setattr(gc, "collect", lambda collect=gc.collect: collected.append(collect()))

    def in_a_cycle(x):
        cycle = [x * 2]
        cycle.append(cycle)
        return x

    with hx.check_tracer_leaks():
        hx.make_jaxpr(lambda x: x * 6)(1.0)
        assert not collected
        hx.make_jaxpr(in_a_cycle)(1.0)
        assert collected


WHERE = {
    "jit": lambda f: hx.jit(f)(1.0),
    "scan": lambda f: hx.lax.scan(lambda c, x: (f(c), None), 1.0, np.ones(3, np.float32)),
    "fori_loop": lambda f: hx.lax.fori_loop(0, 3, lambda i, c: f(c), 1.0),
    "cond": lambda f: hx.lax.cond(hx.numpy.array(True), f, lambda x: x, 1.0),
    "grad": lambda f: hx.grad(f)(1.0),
    "linearize": lambda f: hx.linearize(f, 1.0)[1],
    "jvp": lambda f: hx.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: hx.vmap(f)(np.ones(3, np.float32)),
    "nested": lambda f: hx.jit(hx.vmap(hx.grad(hx.checkpoint(f))))(np.ones(3, np.float32)),
}


@pytest.mark.parametrize("where", WHERE)
def test_a_leak_is_found_when_its_transformation_ends(where):
    kept = []
    with hx.check_tracer_leaks():
        WHERE[where](lambda x: hx.numpy.sin(x) * 5)
        with pytest.raises(Leak, match=r"made at test_trace_cache\.py"):
            WHERE[where](lambda x: kept.append(x * 2) or hx.numpy.sin(x))


# Functions that are made again, and what they read


def test_a_function_that_is_made_again_is_traced_again_and_not_compiled_again():
    scale = 2.0
    made = lambda: [hx.jit(lambda x: x * scale - 11.0)(1.0) for _ in range(5)]
    assert counted(made).compiles == 1 and counted(made).compiles == 0 and counted(made).traces == 5


def test_a_function_that_is_jitted_again_is_traced_once():
    f = lambda x: x * 2.0 - 12.0
    assert counted(lambda: [hx.jit(f)(1.0) for _ in range(3)]).traces == 1
    assert counted(lambda: [hx.jit(lambda x: hx.checkpoint(f)(x) + hx.jit(f)(x))(1.0) for _ in range(3)]).traces == 3


def test_a_callable_without_weak_references_is_traced_once_by_each_jit():
    class Scaled:
        __slots__ = ()

        def __call__(self, x):
            return x * 13.0

    f = hx.jit(Scaled())
    assert counted(lambda: [float(f(1.0)) for _ in range(3)]).traces == 1
    assert counted(lambda: hx.grad(f)(1.0)).traces == 0


def test_a_rule_that_is_made_again_is_not_compiled_again():
    def made(slope=2.0):
        f = hx.custom_jvp(lambda x: x * 14.0)
        f.defjvp(lambda primals, tangents: (f(*primals), slope * tangents[0]))
        g = hx.custom_vjp(lambda x: x * 15.0)
        g.defvjp(lambda x: (g(x), None), lambda _, ct: (slope * ct,))
        looped = lambda x: hx.lax.fori_loop(0, 3, lambda i, c: g(f(c)), x)
        return float(looped(1.0)), float(hx.jit(looped)(1.0)), float(hx.jit(lambda x: hx.jvp(f, (x,), (x,))[1])(1.0))

    assert counted(made).compiles > 0 and counted(made).compiles == 0
    assert made(2.0)[2] == 2.0 and made(3.0)[2] == 3.0


def test_what_may_change_makes_a_function_its_own():
    state = [1.0]
    fs = [hx.jit(lambda x: x + state[0]) for _ in range(2)]
    assert float(fs[0](0.0)) == 1.0
    state[0] = 5.0
    assert float(fs[1](0.0)) == 5.0


GLOBAL = 1.0


def test_a_global_that_was_changed_is_seen_by_a_function_that_is_made_again():
    global GLOBAL

    def make():
        return hx.jit(lambda x: next(iter([(lambda: x + GLOBAL)()])))

    try:
        assert float(make()(0.0)) == 1.0
        GLOBAL = 3.0
        assert float(make()(0.0)) == 3.0
    finally:
        GLOBAL = 1.0


def module_of(source):
    """A module of a program, which others may change."""
    made = types.ModuleType("made_for_this_test")
    exec(source, made.__dict__)
    return made


def test_what_is_read_through_a_module_is_read_as_a_global_is():
    functions = "def scaled(x): return x * STATE['k']\ndef twice(x): return 2 * x"
    part = module_of(f"SCALE = 1.0\nSTATE = {{'k': 1.0}}\n{functions}")
    whole = module_of("")
    whole.part = part

    def values():
        return [
            float(hx.jit(f)(1.0))
            for f in (lambda x: x * part.SCALE, lambda x: part.scaled(x), lambda x: x * whole.part.SCALE,
                      lambda x: part.twice(x))
        ]

    assert values() == [1.0, 1.0, 1.0, 2.0]
    part.SCALE, part.STATE["k"] = 3.0, 5.0
    assert values() == [3.0, 5.0, 3.0, 2.0]
    part.twice = part.scaled
    assert values() == [3.0, 5.0, 3.0, 5.0]


def test_what_is_read_through_a_class_is_compared_too():
    class Base:
        k = 1.0

        def scaled(self, x):
            return x * self.k

    class Derived(Base):
        pass

    def values():
        read = lambda x: x * Derived.k, lambda x: Derived().scaled(x), lambda x: x * getattr(Base, "k")  # noqa: B009
        remade = float(hx.grad(hx.checkpoint(lambda x: x * Base.k))(1.0))
        return [*[float(hx.jit(f)(1.0)) for f in read], remade]

    assert values() == [1.0] * 4
    Base.k = 2.0
    assert values() == [2.0] * 4


def declared():
    """Classes as a console declares them, in source without a file; each ``read`` depends on what ``change`` sets."""
    source = """
import dataclasses, enum
class Plain:
    def scaled(self, x): return x * FACTOR
    @staticmethod
    def static(x): return x * FACTOR
class Meta(type): k = 1.0
class WithMeta(metaclass=Meta): pass
class Color(enum.Enum):
    RED = 1
    def scaled(self, x): return x * FACTOR
class Level(enum.IntEnum):
    LOW = 1
    def scaled(self, x): return x * FACTOR
class Number(float):
    def scaled(self, x): return x * FACTOR
class Failure(Exception): k = 1.0
@dataclasses.dataclass(frozen=True)
class Options:
    k: float = 1.0
    def scaled(self, x): return x * FACTOR * self.k
"""
    names = {"FACTOR": 1.0, "__name__": __name__}
    exec(source, names)
    names["number"] = names["Number"](2.0)
    return names


@pytest.mark.parametrize(
    ("read", "change"),
    [
        ("Plain().scaled(x)", "FACTOR = 2.0"),
        ("Plain.static(x)", "FACTOR = 2.0"),
        ("x * WithMeta.k", "Meta.k = 2.0"),
        ("Color.RED.scaled(x)", "FACTOR = 2.0"),
        ("x * getattr(Color.RED, 'k', 1.0)", "Color.RED.k = 2.0"),
        ("Level.LOW.scaled(x)", "FACTOR = 2.0"),
        ("number.scaled(x)", "FACTOR = 2.0"),
        ("x * getattr(number, 'k', 1.0)", "number.k = 2.0"),
        ("x * Failure.k", "Failure.k = 2.0"),
        ("Options().scaled(x)", "FACTOR = 2.0"),
    ],
)
def test_classes_of_a_console_are_read_anew(read, change):
    names = declared()
    made = lambda: float(hx.jit(eval(f"lambda x: {read}", names))(1.0))
    assert made() == 1.0
    exec(change, names)
    assert made() == 2.0
    assert counted(lambda: [made() for _ in range(3)]).compiles == 0


def test_functions_that_draw_are_no_constants():
    def draws():
        return float(hx.jit(lambda x: x + np.random.rand())(0.0))  # noqa: NPY002

    assert draws() != draws()


def test_a_clause_that_reads_a_class_is_asked_again():
    class Settings:
        k = 2.0

    @hx.effect
    class Scaled:
        def result_type(op, x):
            return x

    def loop(x):
        return hx.lax.fori_loop(0, 3, lambda i, c: hx.perform(Scaled(), c), x)

    h = hx.handler({Scaled: lambda op, x: x * Settings.k})
    assert float(hx.handle(h)(loop)(1.0)) == 8.0
    Settings.k = 3.0
    assert float(hx.handle(h)(loop)(1.0)) == 27.0


def test_a_bound_method_made_again_reads_its_object_again():
    class Model:
        k = 1.0

        def scaled(self, x):
            return x * self.k

    model = Model()
    found = lambda: [float(hx.jit(model.scaled)(1.0)), float(hx.grad(hx.checkpoint(model.scaled))(1.0))]
    assert found() == [1.0, 1.0]
    model.k = 2.0
    assert found() == [2.0, 2.0]


def test_files_clocks_and_generators_of_the_standard_library_are_no_constants(tmp_path):
    path = tmp_path / "number"

    def opened():
        with open(path) as file:
            return float(file.read())

    readers = [
        lambda: hx.jit(lambda x: x * opened()),
        lambda: hx.jit(lambda x: x * float(pathlib.Path(path).read_text())),
        lambda: hx.jit(lambda x: x * np.loadtxt(path)),
    ]
    for make in readers:
        for number in (1.0, 2.0):
            path.write_text(str(number))
            assert float(make()(1.0)) == number
    for draw in (lambda: random.Random().random(), lambda: np.random.RandomState().rand()):
        assert len({float(hx.jit(lambda x, draw=draw: x + draw())(0.0)) for _ in range(3)}) == 3


def test_a_function_that_acts_while_it_is_traced_is_traced_anew(capsys):
    class State:
        n = 0

    def store():
        State.n = 0

        def f(x):
            State.n = 1
            return x

        hx.jit(f)(1.0)
        return State.n

    def enclosed():
        n = 0

        def f(x):
            nonlocal n
            n = 1
            return x

        hx.jit(f)(1.0)
        return n

    assert [store(), store(), enclosed(), enclosed()] == [1, 1, 1, 1]
    for _ in range(2):
        hx.jit(lambda x: (print("traced"), x)[1])(1.0)  # noqa: T201
    assert capsys.readouterr().out == "traced\ntraced\n"


def test_a_trace_that_captured_a_value_of_a_transformation_is_not_used_again():
    scale = []
    inner = hx.jit(lambda x: x * scale[0])

    def outer(y):
        scale[:] = [y]
        return inner(2.0)

    assert [hx.vmap(outer)(hx.numpy.arange(3.0) + n).tolist() for n in range(2)] == [[0.0, 2.0, 4.0], [2.0, 4.0, 6.0]]


def test_a_trace_belongs_to_the_axes_that_were_in_scope():
    inner = hx.jit(lambda x: x * hx.lax.axis_size("lanes"))
    sizes = [hx.vmap(inner, axis_name="lanes")(hx.numpy.ones(n)).tolist() for n in (2, 3, 2)]
    assert sizes == [[2.0] * 2, [3.0] * 3, [2.0] * 2]


def test_no_tracing_refuses_a_function_that_was_not_traced_for_such_arguments():
    f = hx.jit(lambda x: x + 1)
    f(1.0)
    with hx.no_tracing(True):
        assert f(2.0) == 3.0
        with pytest.raises(hx.errors.TracingRefused, match="no function may be traced under no_tracing"):
            f(hx.numpy.ones(2))
