"""The answer of a clause is the value that it computes, of the type of the result; or it is refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.dtypes import bfloat16
from handlax.effects.operations.elementwise.conversion import convert

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@hx.effect(vmap="per_lane")
class Give:
    dtype: str
    shape: tuple[int, ...] = ()

    def result_type(op):
        return hx.ShapeDtypeStruct(op.shape, op.dtype)


def given(answer, dtype, shape=()):
    return hx.handle(hx.handler({Give: lambda op: answer()}))(lambda: hx.perform(Give(dtype, shape)))


@hx.effect(vmap="per_lane", diff="stop")
class Quit:
    def result_type(op):
        return None


def quitting(answer, dtype, shape=()):
    """The answer of a final clause, in place of zeros of this type."""

    def f(flag):
        hx.lax.cond(flag, lambda: hx.perform(Quit()), lambda: None)
        return hnp.zeros(shape, dtype)

    return lambda: hx.handle(hx.handler({Quit: hx.final(lambda op: answer())}))(f)(True)


@hx.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Limits:
    low: object
    high: object


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    kind: str

    def result_type(op, x):
        return {"dict": {"a": x, "b": x}, "node": Limits(x, x), "tuple": (x, x), "single": {"a": x}}[op.kind]


STRUCTURES = {
    "dict": lambda x: {"a": x, "b": -x}, "node": lambda x: Limits(x, -x), "tuple": lambda x: (x, -x),
    "single": lambda x: {"a": x},
    "other keys": lambda x: {"b": x, "c": -x}, "sorted": lambda x: {"low": x, "high": -x}, "list": lambda x: [x, -x],
    "nested": lambda x: {"a": (x,), "b": -x}, "bare": lambda x: x,
}


@pytest.mark.parametrize("clause", [lambda y: lambda op, x: y(x), lambda y: hx.ctl(lambda r, op, x: r(y(x)))],
                         ids=["answer", "resume"])
@pytest.mark.parametrize("within", [lambda f: f, hx.jit, hx.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize("declared", ["dict", "node", "tuple", "single"])
def test_an_answer_has_the_structure_of_the_result(clause, within, declared):
    for answered, structure in STRUCTURES.items():
        f = hx.handle(hx.handler({Ask: clause(structure)}))(lambda x: hx.perform(Ask(declared), x))
        if declared == answered:
            y = within(f)(hnp.ones(2))
            assert hx.tree.structure(y) == hx.tree.structure(structure(0))
            np.testing.assert_array_equal(hx.tree.leaves(y)[0], hnp.ones(2))
        else:
            with pytest.raises((errors.TreeMismatch, errors.DTypeMismatch), match=r"must (have the structure|give)"):
                within(f)(hnp.ones(2))


KINDS = pytest.mark.parametrize("kind", [given, quitting])
COMPILED = pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])


@KINDS
@COMPILED
@pytest.mark.parametrize(
    ("number", "dtype"),
    [(127, "int8"), (-128, "int8"), (255, "uint8"), (2**40, "int64"), (2**64 - 1, "uint64"), (0.1, "float64"),
     (0.1, "float16"), (0.1, "bfloat16"), (math.inf, "float16"), (math.nan, "float32"), (3, "float16"),
     (3, "complex64"),
     (0.1j, "complex128"), (np.float64(0.1), "float64"), (True, "bool"), (1e300, "float64")],
)
def test_a_number_is_the_one_that_the_dtype_holds(kind, compiled, number, dtype):
    y = compiled(kind(lambda: number, dtype))()
    expected = np.asarray(number).astype(bfloat16 if dtype == "bfloat16" else dtype)
    assert y.dtype == dtype
    np.testing.assert_array_equal(np.asarray(y), expected)


@KINDS
@COMPILED
@pytest.mark.parametrize(
    ("number", "dtype"),
    [(128, "int8"), (300, "int8"), (-1, "uint8"), (256, "uint8"), (2.5, "int32"), (math.nan, "int32"), (2**40, "int32"),
     (70000, "float16"), (1e6, "float16"), (1e300, "float32"), (2**2000, "float64"), (1j, "float32"), (True, "int8"),
     (1, "bool"), (np.int64(300), "int8")],
)
def test_a_number_that_the_dtype_cannot_hold_is_refused(kind, compiled, number, dtype):
    with pytest.raises(errors.DTypeMismatch, match=r"(give|quit): the answer of a clause must have the type"):
        compiled(kind(lambda: number, dtype))()


@KINDS
@COMPILED
@pytest.mark.parametrize(
    ("number", "dtype", "fits"),
    [(3, "int32", True), (3, "int64", True), (3, "float16", True), (0.5, "bfloat16", True), (3, "int8", False),
     (3, "uint32", False), (0.5, "int32", False)],
)
def test_a_weak_array_is_converted_where_no_integer_can_wrap_around(kind, compiled, number, dtype, fits):
    f = compiled(kind(lambda: hnp.full(2, number), dtype, (2,)))
    if fits:
        y = f()
        assert (y.dtype, y.tolist()) == (dtype, [number, number])
    else:
        with pytest.raises(errors.DTypeMismatch, match="astype"):
            f()


@pytest.mark.parametrize("weak", INTEGERS)
def test_a_weak_array_keeps_its_values_or_is_refused(weak):
    """Those at both ends of its range, whatever the dtype of the result."""
    ends = [np.iinfo(weak).min, np.iinfo(weak).max]
    for dtype in INTEGERS:
        try:
            y = given(lambda: convert(hnp.array(ends, weak), np.dtype(weak), True), dtype, (2,))()
        except errors.DTypeMismatch:
            assert dtype != weak
        else:
            assert (y.dtype, y.tolist()) == (dtype, ends)


@KINDS
@pytest.mark.parametrize("answer", ["a", object(), {1: "a"}])
def test_an_answer_that_is_no_array_is_refused_by_name(kind, answer):
    with pytest.raises(errors.NotAnArray, match=r"(give|quit): the answer of a clause must be a tree of arrays"):
        kind(lambda: answer, "float32")()


def test_another_number_of_answers_is_another_tree():
    @hx.effect
    class Two:
        def result_type(op):
            return hx.ArrayType((), hnp.float32), hx.ArrayType((), hnp.float32)

    for answer, got in (((1.0, 2.0, 3.0), "3"), (None, "None")):
        with pytest.raises(errors.TreeMismatch, match=f"two: the clause must give 2 results, got {got}"):
            hx.handle(hx.handler({Two: lambda op, answer=answer: answer}))(lambda: hx.perform(Two()))()
