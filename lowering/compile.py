"""From a program to something that runs on a device; compiled once for equal programs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..effects.arrays import ConcreteArray, concrete
from ..effects.errors import UnhandledEffect
from ..effects.programs import Program
from . import runtime
from .backend import default_device
from .emit import Module, lower_program
from .stablehlo import storage


class Compiled:
    """A program on a device: ``run(buffers)`` gives buffers, a call takes and gives arrays."""

    __slots__ = ("module", "executable", "run", "handlers", "types", "consts")

    def __init__(self, module: Module, executable: runtime.Executable, types: Sequence[Any]):
        self.module = module
        self.executable = executable
        self.run = executable.run
        self.handlers = executable.handlers()
        self.types = tuple(types)
        self.consts = tuple(const.buffer for const in module.consts)

    def __call__(self, *operands: ConcreteArray) -> tuple[ConcreteArray, ...]:
        buffers = [*self.consts, *[x.buffer for x in operands]]
        made = self.run(buffers).consume_with_handlers(self.handlers)
        return tuple([concrete(t, None, b) for t, b in zip(self.types, made)])  # type: ignore[misc]


_CACHE: dict[Any, Compiled] = {}
_LOCK = threading.Lock()
CAPACITY = 4096


def compile_program(program: Program, name: str = "program", donated: Sequence[bool] = ()) -> Compiled:
    """The compiled form of a program; equal programs share one.

    Raises: UnhandledEffect: an effect that the device does not answer is in its row. CompileError: XLA refuses it.
    """
    device = default_device()
    key = (program, tuple(donated), device)
    found = _CACHE.get(key)
    if found is not None:
        return found
    if program.effects:
        row = ", ".join(sorted(map(str, program.effects)))
        raise UnhandledEffect(f"{name}: nobody handles {row}, and a device cannot.", hint="handle it around jit or inside.")
    module = lower_program(program, name, donated)
    results = [storage(t) for t in program.out_types]
    executable = runtime.compile(module.text, devices=[device], results=results)
    made = Compiled(module, executable, program.out_types)
    with _LOCK:
        if len(_CACHE) >= CAPACITY:
            _CACHE.clear()
        return _CACHE.setdefault(key, made)
