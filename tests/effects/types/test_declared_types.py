"""What ``result_type`` of a block gives: types of arrays, or the block is named."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp


@pytest.mark.parametrize("declared", [float, hnp.float32, (3,), "f32", 1.0], ids=repr)
@pytest.mark.parametrize("kind", [hx.effect, hx.operation])
def test_a_result_type_that_is_no_type_is_named(kind, declared):
    @kind
    class Wrong:
        def result_type(op):
            return declared

    handled = hx.handle(hx.handler({Wrong: lambda op: 1.0}))(lambda: hx.perform(Wrong()))
    for f in (handled, hx.make_program(lambda: hx.perform(Wrong()))):
        with pytest.raises(errors.RegistrationError, match="wrong: result_type must give") as error:
            f()
        assert error.value.hint


def test_what_has_a_shape_and_a_dtype_declares_a_type():
    @hx.effect
    class Pair:
        def result_type(op):
            return {"a": hx.ShapeDtypeStruct((2,), "float32"), "b": hnp.ones((), "int32")}

    types = hx.eval_shape(lambda: hx.perform(Pair()))
    assert {name: str(hx.typeof(t)) for name, t in types.items()} == {"a": "f32[2]", "b": "i32[]"}
