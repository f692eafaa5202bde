"""jit: trace once, compile once, run on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..effects import config
from ..effects.arrays import ConcreteArray, concrete, lift, type_of
from ..effects.control import Call
from ..effects.programs import Program
from ..effects.stack import BASE, STACK, perform
from ..interpreters.record import record
from . import runtime
from .compile import Compiled, compile_program


class Jit:
    """The compiled form of a function, one trace for each combination of argument types."""

    def __init__(self, f: Callable[..., Any], name: str):
        functools.update_wrapper(self, f)
        self.f = f
        self.name = name
        self.entries: dict[Any, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STACK.get() is BASE:
            if not kwargs:
                key = []
                buffers = []
                for x in args:
                    if type(x) is not ConcreteArray:
                        break
                    key.append(x.type)
                    buffer = x._buffer
                    buffers.append(x.buffer if buffer is None else buffer)
                else:
                    key.append(config.CONFIG.get() or config.config.process)
                    entry = self.entries.get(tuple(key))
                    if entry is not None:
                        run, handlers, out_type = entry
                        return concrete(out_type, None, run(buffers).consume_with_handlers(handlers)[0])
        return self.slow(args, kwargs)

    def slow(self, args: Any, kwargs: Any) -> Any:
        leaves, tree = runtime.flatten((args, kwargs))
        types = tuple([type_of(x) for x in leaves])
        out_tree: list[Any] = []

        def flat(*boxes: Any) -> Any:
            a, k = tree.unflatten(boxes)
            results, made = runtime.flatten(self.f(*a, **k))
            out_tree.append(made)
            return [lift(y) for y in results]

        program = record(flat, types, self.name)
        if STACK.get() is not BASE:
            return out_tree[0].unflatten(perform(Call((program,), self.name), *map(lift, leaves)))
        compiled = compile_program(program, self.name)
        if len(program.outs) == 1:
            key = (*types, config.CONFIG.get() or config.config.process)
            self.entries[key] = (compiled.run, compiled.handlers, compiled.types[0])
        return out_tree[0].unflatten(compiled(*map(lift, leaves)))


def jit(f: Callable[..., Any]) -> Jit:
    return Jit(f, getattr(f, "__name__", "f"))


def run_call(op: Call, *operands: Any) -> Any:
    raise AssertionError


__all__ = ["Compiled", "Jit", "Program", "jit"]
