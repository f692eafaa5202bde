"""Exported functions: from a jitted function to bytes, and from bytes to the first result of the function in them."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

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


ROWS = [Row("an MLP exported, serialized, deserialized and called", 1.10,
            timed(exported_and_called, check=assert_agree, cold=True))]
