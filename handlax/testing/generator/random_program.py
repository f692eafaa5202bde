"""Random programs as values: Python text, what it is executed with, and smaller programs of the same kind."""

from __future__ import annotations

import itertools
import linecache
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ...effects.base.caches import cached
from ...effects.core.arrays import as_array
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...interpreters.core.record import record
from .reducing import smaller_texts


@dataclass(frozen=True)
class RandomProgram(ABC):
    """A function ``program``, as Python text. ``prelude``: the imports before it, of ``hnp`` among others."""

    source: str
    prelude: ClassVar[str] = ""

    def function(self, **meanings: Any) -> Callable[..., Any]:
        """The function, with other meanings of some names of the prelude."""
        code = _code_of(self.source)
        space = {**imported(self.prelude), **meanings, "__code__": code}  # its lines live as long as its functions
        exec(code, space)
        return space["program"]

    def __call__(self, *inputs: Any) -> Any:
        return self.function()(*inputs)

    @abstractmethod
    def inputs(self, seed: int) -> list[Any]:
        """Random inputs, as arrays of NumPy."""

    def equations(self, seed: int) -> Program:
        """The program as equations, for inputs of the types of those of a seed."""
        leaves, tree = pytrees.flatten([pytrees.map(as_array, x) for x in self.inputs(seed)])
        f = lambda *xs: pytrees.leaves(self(*pytrees.unflatten(tree, xs)))
        return record(f, [x.type for x in leaves], "program")

    def script(self, seed: int) -> str:
        """A Python script that executes the program on its inputs of a seed, and prints the results."""
        inputs = ", ".join(map(_literal, self.inputs(seed)))
        return f"{self.prelude}\n\n{self.source}\n\nprint(program({inputs}))\n"

    def smaller(self) -> Iterator[Self]:
        """Programs of the same kind with less text."""
        return (replace(self, source=source) for source in smaller_texts(self.source))

    def __repr__(self) -> str:
        return f"{type(self).__name__}('''\n{self.source}''')"


def _literal(x: Any) -> str:
    """The text of an array, or of a tuple of arrays."""
    if isinstance(x, tuple):
        return f"({', '.join(map(_literal, x))},)"
    listed = np.asarray(x, np.float64) if x.dtype.kind == "V" else x  # floats of 16 bits are lists of no numbers
    return f"hnp.asarray({listed.tolist()}, {str(x.dtype)!r})"


_SERIAL = itertools.count()


@cached("random_programs", 1000)
def _code_of(source: str) -> Any:
    """The code of a text, whose lines are in ``linecache``, for tracebacks, as long as it lives."""
    name = f"<program {next(_SERIAL)}>"
    code = compile(source, name, "exec")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    weakref.finalize(code, linecache.cache.pop, name, None)
    return code


@cached("preludes", 10)
def imported(prelude: str) -> dict[str, Any]:
    """What the imports of a prelude give."""
    space: dict[str, Any] = {}
    exec(prelude, space)
    return space
