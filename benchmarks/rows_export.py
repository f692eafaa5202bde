"""Exported functions: from a jitted function to bytes, and from bytes to the first result of the function in them."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .rows_trace import model
from .sides import Side, assert_agree, on
from .timing import Prepare, Row, timed

_constants = itertools.count(1)


def exported_and_called(side: Side) -> Prepare:
    """Export an MLP, serialize it, deserialize it, and call it; each time with a new constant, so that caches miss."""
    program, data = model("MLP")
    export = importlib.import_module(f"{side.lib.__name__}.export")

    def prepare() -> Callable[[], Any]:
        f, args, constant = program(side), on(side, data), 1.0 + 1e-7 * next(_constants)
        jitted = side.lib.jit(lambda *xs: f(*xs) * constant)

        def run() -> Any:
            written = export.export(jitted)(*args).serialize()
            return side.ready(export.deserialize(written).call(*args))

        return run

    return prepare


def called_with_rows(side: Side) -> Prepare:
    """Two layers, exported once for any number of rows, called with two numbers of rows for the first time."""
    export = importlib.import_module(f"{side.lib.__name__}.export")
    rng = np.random.default_rng(0)
    small, large, weights = on(side, tuple([rng.normal(size=(n, 64)).astype("float32") for n in (8, 32, 64)]))
    numpy = side.np

    def prepare() -> Callable[[], Any]:
        constant = 1.0 + 1e-7 * next(_constants)
        jitted = side.lib.jit(lambda x: numpy.tanh(numpy.tanh(x @ weights) @ weights).mean(0) * constant)
        spec = side.lib.ShapeDtypeStruct(export.symbolic_shape("rows, 64"), "float32")

        def run() -> Any:
            call = export.deserialize(export.export(jitted)(spec).serialize()).call
            return side.ready((call(small), call(large)))

        return run

    return prepare


ROWS = [
    Row("an MLP exported, serialized, deserialized and called", 1.00,
        timed(exported_and_called, check=assert_agree, cold=True), aim=0.70),
    Row("two layers exported for any number of rows, called with two numbers", 1.00,
        timed(called_with_rows, check=assert_agree, cold=True), aim=0.70),
]
