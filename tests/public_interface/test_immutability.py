"""What a user can hold cannot be changed, and says how to make another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.base.config import current
from handlax.effects.operations.elementwise.conversion import ConvertElementType
from handlax.effects.operations.elementwise.transcendental import Sin

PROGRAM = hx.make_program(lambda x: hnp.sin(x))(1.0)
VALUES: dict[str, tuple[Any, str]] = {
    "array": (hnp.ones(3), "type"),
    "program": (PROGRAM, "ops"),
    "type": (PROGRAM.in_types[0], "shape"),
    "operation": (ConvertElementType(hnp.float32.dtype), "dtype"),
    "handler": (hx.handler({Sin: lambda op, x: x}), "clauses"),
    "clause": (hx.ctl(lambda resume, op, x: x), "f"),
    "settings": (current(), "default_float"),
    "shape and dtype": (hx.ShapeDtypeStruct((2,), "float32"), "shape"),
    "stepper": (hx.step(lambda x: hnp.sin(x))(1.0), "program"),
    "drawing": (hx.draw(lambda x: hnp.sin(x))(1.0), "program"),
}


@pytest.mark.parametrize(("value", "name"), VALUES.values(), ids=VALUES)
def test_attributes_are_neither_set_nor_deleted(value: Any, name: str) -> None:
    before = getattr(value, name)
    for change in (lambda: setattr(value, name, 1), lambda: setattr(value, "other", 1), lambda: delattr(value, name)):
        with pytest.raises(errors.Immutable, match=r"immutable, '(\w+)' cannot be (set|deleted)") as found:
            change()
        assert found.value.hint == value._guard[1] and str(found.value).startswith(value._guard[0])
        assert isinstance(found.value, (AttributeError, TypeError))
        assert isinstance(found.value, dataclasses.FrozenInstanceError)
    assert getattr(value, name) is before


def test_a_setting_is_not_assigned() -> None:
    with pytest.raises(errors.Immutable, match=r"(?s)settings.*hx\.config\.update\('default_float', value\)"):
        hx.config.default_float = "float64"


NONSENSE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a handler of a class": (lambda: hx.handler(Sin), errors.BadArgument, "clauses are a mapping"),
    "a handler of pairs": (lambda: hx.handler([(Sin, 1)]), errors.BadArgument, "clauses are a mapping"),
    "an operation of an object": (lambda: hx.operation(3), errors.BadArgument, "a class is needed"),
    "an effect of a text": (lambda: hx.effect("f"), errors.BadArgument, "a class is needed"),
    "rules of a function": (lambda: hx.explain_rules(hnp.sin), errors.BadArgument, "the operation Sin, not"),
    "a program of a text": (lambda: hx.check_program("f"), errors.BadArgument, "a program is needed"),
    "shapes of a number": (lambda: hx.eval_shape(3), errors.NotAFunction, "function is needed"),
    "conversion of a text": (lambda: hx.closure_convert("f", 1), errors.NotAFunction, "function is needed"),
    "map of a number": (lambda: hx.tree.map(3, [1]), errors.NotAFunction, "function is needed"),
    "map with paths": (lambda: hx.tree.map_with_path(None, [1]), errors.NotAFunction, "function is needed"),
    "fold of nothing": (lambda: hx.tree.reduce(max, []), errors.BadArgument, "needs an initializer"),
    "a tree of no structure": (lambda: hx.tree.unflatten([1], [2]), errors.BadArgument, "a structure is needed"),
    "transposed trees": (lambda: hx.tree.transpose([1], None, [2]), errors.BadArgument, "a structure is needed"),
    "reshape to None": (lambda: lax.reshape(hnp.ones(3), None), errors.BadArgument, "must be a sequence"),
    "transpose by a number": (lambda: lax.transpose(hnp.ones(3), 0), errors.BadArgument, "must be a sequence"),
    "rev by a number": (lambda: lax.rev(hnp.ones(3), 0), errors.BadArgument, "must be a sequence"),
    "pad by a number": (lambda: lax.pad(hnp.ones(3), 0.0, 1), errors.BadArgument, "must be a sequence"),
    "pad by numbers": (lambda: lax.pad(hnp.ones(3), 0.0, [1]), errors.BadArgument, "low, high, interior"),
    "concatenate a number": (lambda: lax.concatenate(3, 0), errors.BadArgument, "must be a sequence"),
    "slices from None": (lambda: lax.dynamic_slice(hnp.ones(3), None, (1,)), errors.BadArgument, "must be a sequence"),
    "the largest None": (lambda: lax.top_k(hnp.ones(3), None), errors.BadArgument, "k must be an integer"),
    "reduce by a number": (lambda: lax.reduce(hnp.ones(3), 0.0, 1, (0,)), errors.NotAFunction, "function is needed"),
}


@pytest.mark.parametrize(("call", "kind", "what"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_named(call: Callable[[], Any], kind: type[Exception], what: str) -> None:
    with pytest.raises(kind, match=what):
        call()
