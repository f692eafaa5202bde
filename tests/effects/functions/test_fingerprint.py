"""Fingerprints: functions defined again are equal, functions that read anything mutable equal only themselves."""

from __future__ import annotations

import dataclasses
import pathlib
import random
import time
import types
import typing

import numpy as np
import pytest
from helpers.count_traces import traced

import handlax as hx
from handlax import P
from handlax.effects.functions.fingerprint import fingerprint


def test_a_function_that_is_made_again_is_the_same_one():
    scale = 2.0
    assert traced(lambda: [hx.jit(lambda x: x * scale)(1.0) for _ in range(5)]) == 1
    assert traced(lambda: [hx.jit(lambda x, k=k: x * k)(1.0) for k in (1, 1.0, True, 1)]) == 3


def test_a_function_whose_source_is_run_again_is_the_same_one():
    def written(body):
        found = {}
        exec(f"def f(x): return {body}", found)
        return found["f"]

    assert written("x - 7.0").__code__ is not written("x - 7.0").__code__
    assert traced(lambda: [hx.jit(written("x - 7.0"))(1.0) for _ in range(3)]) == 1
    assert traced(lambda: [hx.jit(written(body))(1.0) for body in ("x - 8.0", "x - 9.0")]) == 2


def test_what_may_change_makes_a_function_its_own():
    state = [1.0]
    fs = [hx.jit(lambda x: x + state[0]) for _ in range(2)]
    assert float(fs[0](0.0)) == 1.0
    state[0] = 5.0
    assert float(fs[1](0.0)) == 5.0


GLOBAL = 1.0


def test_a_global_that_was_changed_is_another_function():
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
        ]  # fmt: skip

    assert values() == [1.0, 1.0, 1.0, 2.0]
    part.SCALE, part.STATE["k"] = 3.0, 5.0
    assert values() == [3.0, 5.0, 3.0, 2.0]
    part.twice = part.scaled
    assert values() == [3.0, 5.0, 3.0, 5.0]
    assert traced(lambda: [hx.jit(lambda x: x - part.SCALE)(1.0) for _ in range(3)]) == 1


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
    assert traced(lambda: [hx.jit(lambda x: Derived().scaled(x) - 1)(1.0) for _ in range(3)]) == 1


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
    assert traced(lambda: [made() for _ in range(3)]) <= 1


def test_functions_that_draw_or_look_at_the_clock_are_no_constants():
    def draws():
        return float(hx.jit(lambda x: x + np.random.rand())(0.0))  # noqa: NPY002

    assert draws() != draws()
    assert fingerprint(lambda: time.time()) is None
    assert fingerprint(lambda: [].append) is not None
    append = [].append
    assert fingerprint(lambda: append(1)) is None


def test_an_import_in_a_function_is_constant_for_libraries_alone():
    def of_library(x):
        import math  # noqa: PLC0415

        return math.sin(x)

    def of_program(x):
        import made_for_this_test  # noqa: PLC0415

        return made_for_this_test.SCALE * x

    assert fingerprint(of_library) is not None
    assert fingerprint(of_program) is None


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


class Row(typing.NamedTuple):
    a: float = 2.0


@dataclasses.dataclass(frozen=True)
class Choice:
    a: float = 2.0


MESH = hx.make_mesh((2, 4), ("a", "b"))


@pytest.mark.parametrize("read", [Row, Choice, Row(3.0), Choice(3.0), range(3), int | float, typing.Generic,
                                  MESH, MESH.abstract_mesh, P("a"), hx.NamedSharding(MESH, P("a"))])
def test_immutable_records_are_compared_by_value(read):
    assert traced(lambda: [hx.jit(lambda x: x if read else x - 1)(1.0) for _ in range(3)]) <= 1


def test_shardings_of_equal_meshes_are_compared_by_value():
    def placed(*entries):
        where = hx.NamedSharding(hx.make_mesh((2, 4), ("a", "b")), P(*entries))
        return hx.jit(lambda x: x + where.num_devices)(1.0)

    assert traced(lambda: [placed(*entries) for entries in [("a",), ("a",), ("b",), ("a", None), ("b",)]]) == 3
