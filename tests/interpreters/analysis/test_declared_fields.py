"""Fields of operations have the types that their blocks declare, else a program is not well formed."""

import importlib
import itertools

import numpy as np
import pytest
from laws.test_laws import CASES

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.core.operation import LATE_OPERATIONS, OPERATIONS, Operation
from handlax.effects.operations.elementwise.arithmetic import IntegerPow, Neg
from handlax.effects.operations.foundations.shapes import Reshape
from handlax.effects.operations.windows.geometry import Window
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.program import Program
from handlax.effects.types.extent import length
from handlax.interpreters.analysis.declared_fields import _declared_fields, wrong_fields
from handlax.interpreters.analysis.typecheck import check_program
from handlax.testing.operation_laws import results


def test_the_operations_of_the_laws_are_as_declared():
    assert not [message for case in CASES for message in wrong_fields(case.op)]


def test_every_annotation_of_a_field_can_be_evaluated():
    """All but the class that only checkers of types import, since it is jaxlib's, admit not everything."""
    for module in {*LATE_OPERATIONS.values()}:
        importlib.import_module(module)
    ours = [kind for kind in OPERATIONS.values() if kind.__module__.startswith("handlax.")]
    fields = {(text, admits) for kind in ours for _, text, admits in _declared_fields(kind)}
    assert {text for text, admits in fields if admits(object())} == {"Any", "PyTreeDef", "Hashable"}


@pytest.mark.parametrize(("x", "wrong"), [
    (IntegerPow(2), None), (IntegerPow(length(0)), None),
    (IntegerPow(2.0), "y must be of the type int, got 2.0"), (IntegerPow(True), "y must be of the type int, got True"),
    (IntegerPow(np.int64(2)), "y must be"), (Reshape((1, length(0))), None), (Reshape([1]), "shape must be"),
    (Reshape((1.0,)), "shape must be of the type tuple[int, ...], got (1.0,)"), (Call((Neg(),)), "bodies must be"),
    (Window((1,), (1,), ((0, 0),), (1,), (1,)), None), (Window((1,), (1.0,), ((0, 0),), (1,), (1,)), "strides must be"),
    (Window((1,), (1,), ((0, 0, 0),), (1,), (1,)), "padding must be of the type tuple[tuple[int, int], ...]"),
], ids=str)
def test_a_value_of_another_type_is_named(x, wrong):
    assert [message[: len(wrong)] for message in wrong_fields(x)] == [wrong] if wrong else not [*wrong_fields(x)]


def test_annotations_of_users_are_no_declarations():
    @hx.operation
    class Noted:
        note: "a word"  # noqa: F722

        def result_type(op, x):
            return x

    assert not [*wrong_fields(Noted(3))]


def loop(x):
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2.0), (0, x))


def scan(x):
    return lax.scan(lambda c, x: (c * x, c), 1.0, x)


def window(x):
    return lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID")


def branch(x):
    return lax.switch(0, [hnp.sin, hnp.cos, hnp.exp], x)


DAMAGED = {
    **{f"carry {c}": (loop, "carry=2", f"carry={c}")
       for c in (-1, 0, 1, 3, 10**20, "True", None, "'x'", 1.5, "(1,)", "collections:OrderedDict", "n0")},
    **{f"length {n}": (scan, "length=3", f"length={n}") for n in ("3.0", "True", "None", "-3", "n0")},
    **{f"strides {n}": (window, "strides=(1,)", f"strides=({n},)") for n in (1.0, "True", None, 10**20)},
    **{f"index {i}": (branch, "0:i32[]", i)
       for i in ("0.0:f32[]", "True:bool[]", "0:u8[]", "0:u32[]", "0:i64[]", "[0, 0]:i32[2]")},
    "power": (lambda x: x**3, "y=3", "y=1.5"),
    "body": (hx.checkpoint(hnp.sin), "bodies=(", "bodies=(op neg, "),
    "second body": (hx.checkpoint(hnp.sin), "},)", "}, op neg)"),
}


@pytest.mark.parametrize(("f", "old", "new"), DAMAGED.values(), ids=DAMAGED)
def test_a_program_with_a_field_that_its_operation_cannot_have_is_refused(f, old, new):
    p = hx.make_program(f)(hnp.arange(3.0) if f in (scan, window) else 1.0)
    text = str(p).replace(old, new)
    assert text != str(p) and check_program(p).unwrap() is p
    assert check_program(Program.parse(text, p.constants)).failure()


def with_field(op, name, value):
    """The operation with this value in a field, whatever its class makes of it."""
    new = object.__new__(type(op))
    Operation.__init__(new, *[value if field == name else getattr(op, field) for field in op._names])
    return new


def test_whatever_stands_in_a_field_checking_gives_a_result():
    for case in CASES:
        dtype = min(case.dtypes, key=lambda d: d.name)
        operands = case.draw(dtype, case.shapes[min(1, len(case.shapes) - 1)], np.random.default_rng(0))
        p = hx.make_program(lambda *xs: results(case.op, xs))(*operands)
        for name, value in itertools.product(case.op._names, (None, -1, 1.5, 10**20, (1.5,), "x", Neg(), ())):
            ops = [with_field(op, name, value) if type(op) is type(case.op) else op for op in p.ops]
            check_program(Program(p.in_types, ops, p.args, p.types, p.outs, p.consts))
