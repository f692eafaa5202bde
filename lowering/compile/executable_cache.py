"""The cache of executables: one compilation for equal programs, also of several threads at once.

It keeps the executables of functions that were dropped, since a function that is made again has an equal program. Two
things bound it besides the number of entries. A process may have only so many memory mappings (65,530 on Linux), of
which an executable takes some dozens, and XLA ends the process that has no more. And a program that calls a closure or
method of the user's on the host, which may hold data of any size, is kept by the functions that use it alone.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

from ...effects.base.caches import Cache, per_process
from ...effects.base.errors import CompileError
from ...effects.base.wrapping import context_variable
from ...effects.control.callbacks import Callback
from ...effects.programs.printer import programs_in
from ...effects.programs.program import Program
from ...interpreters.custom.custom_partitioning import CustomPartitioning
from ..clients.runtime_access import empty_in_children
from ..xla.lazy import runtime

_MAPPINGS = Path("/proc/self/maps")
_EVERY = 32  # compilations between two counts of the mappings, each of which takes some milliseconds


# whether this is within a compilation, for which others may wait; deep calls go on in another thread
_COMPILING = context_variable("compiling", False)


class ExecutableCache(Cache):
    """Executables by keys whose first element is the closed program."""

    def __init__(self, name: str):
        super().__init__(name)
        self.compiling: dict[Any, threading.Event] = {}  # of each the event of its end
        empty_in_children(self.entries)  # freeing a parent's executable can end the child by a signal
        os.register_at_fork(after_in_child=self.compiling.clear)  # the threads that compile are not in the child
        self.until_count = _EVERY

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """The executable of a key; threads that need the same one wait for one compilation. A failure is not cached.

        What runs within a compilation, such as a listener or signal handler, waits for none, which may wait for it.
        No lock is held: whatever allocates or compares keys may run a finalizer or signal handler, which compiles.
        """
        while (found := self.entries.get(key)) is None:
            mine = threading.Event()
            finished = self.compiling.setdefault(key, mine)
            if finished is mine:
                return self.compiled(key, make, mine)
            if _COMPILING.get():
                return make()
            finished.wait()
        self.hits += 1
        return found

    def compiled(self, key: Any, make: Callable[[], Any], finished: threading.Event) -> Any:
        """The executable of a key, compiled by this thread, which sets ``finished`` then."""
        outside = _COMPILING.get()
        try:
            _COMPILING.set(True)
            self.spare_mappings()
            if holds_user_data(key[0]):
                self.misses += 1
                return make()
            return super().get(key, make)
        finally:
            _COMPILING.set(outside)
            self.compiling.pop(key, None)  # a child that was forked meanwhile has none
            finished.set()

    def clear(self) -> None:
        super().clear()
        if self.misses:  # something was compiled, so that the runtime is in use
            runtime.collect_garbage()

    def spare_mappings(self) -> None:
        """Drop the older half if the process has used half of its memory mappings.

        Raises: CompileError: nearly all are in use, by executables of functions that are alive.
        """
        self.until_count -= 1
        most = _most_mappings()
        if self.until_count > 0 or most is None:
            return
        if _mappings() > most // 2:
            self.drop_older_half()
            gc.collect()
            runtime.collect_garbage()
        used = _mappings()
        self.until_count = _EVERY if used < most // 2 else 1
        if used > most - most // 32:
            raise CompileError(
                f"XLA must have memory mappings left, got {used} in use of the {most} that a process may have.",
                hint="drop jitted functions that are no longer needed, or raise vm.max_map_count.",
            )


def _mappings() -> int:
    with _MAPPINGS.open("rb") as lines:
        return sum([1 for _ in lines])


@per_process
def _most_mappings() -> int | None:
    """How many memory mappings a process may have; None where the system does not say."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except OSError:
        return None


def holds_user_data(program: Program) -> bool:
    """Whether the program calls a function on the host that may hold data: a closure, a method, any object; or the
    compiler, such as one that divides it.
    """
    if not any([issubclass(kind, Callback | CustomPartitioning) for kind in program.operations]):
        return False
    for op in program.ops:
        if isinstance(op, CustomPartitioning) or (
            isinstance(op, Callback) and _holds_data(getattr(op, "function", None))
        ):
            return True
        if op.bodied and any([holds_user_data(body) for body in programs_in(op)]):  # type: ignore[arg-type]
            return True
    return False


def _holds_data(function: Any) -> bool:
    if isinstance(function, FunctionType):
        return bool(function.__closure__ or function.__defaults__ or function.__kwdefaults__)
    owner = getattr(function, "__self__", None) if isinstance(function, BuiltinFunctionType | NoneType) else function
    return not isinstance(owner, ModuleType | NoneType)
