"""Compilation of programs to executables; equal programs are compiled once."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ...effects.base import config
from ...effects.base.caches import Cache
from ...effects.base.errors import DeletedArray, DonatedTwice, HandlaxError, UnhandledEffect
from ...effects.base.watching import log_step
from ...effects.core.arrays import Array, ConcreteArray, from_buffers
from ...effects.core.columns import LOWER
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.programs.closure_conversion import close
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...interpreters.analysis.simplify import dead_code_elimination
from ..xla.array_backend import default_device
from ..xla.host_callbacks import HostCallLaunch, calls_host, is_ordered, translated, with_token
from ..xla.lazy import LazyModule, runtime
from ..xla.stablehlo_types import storage
from .emitter import StablehloModule, lower_program

if TYPE_CHECKING:
    from ..xla import disk_cache
else:
    disk_cache = LazyModule("handlax.lowering.xla.disk_cache")

NameOfArgument = Callable[[int], str]


class LoadedExecutable:
    """A closed program compiled for a device, without its unused inputs.

    ``execute(buffers)`` takes the buffers of the inputs ``used_inputs`` and returns those of the results, uncommitted;
    ``execute_committed`` commits them to the device. ``aliases[i]``: the result in the memory of used input ``i``.
    """

    __slots__ = (
        "program", "text", "used_inputs", "aliases", "device", "executable", "execute",
        "execute_committed", "types",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        text: str,
        used_inputs: tuple[int, ...],
        aliases: tuple[int | None, ...],
        executable: Any,
        launch: Callable[[Any], Any] = lambda execute: execute,
    ):
        self.program = program
        self.text = text
        self.used_inputs = used_inputs
        self.aliases = aliases
        self.executable = executable
        self.device = executable.devices[0]
        self.execute = launch(executable.bind(committed=False))
        self.execute_committed = launch(executable.bind())
        self.types = program.out_types


class LoadedProgram:
    """An executable with the arrays that its program captured, from arrays to arrays.

    ``prepare`` maps the buffers of the program's arguments to those that the executable takes; None: the same.
    """

    __slots__ = ("loaded", "captured", "prepare")

    def __init__(self, loaded: LoadedExecutable, captured: Sequence[Array]):
        self.loaded = loaded
        self.captured = tuple(captured)
        self.prepare = _preparation(loaded, self.captured)

    @property
    def types(self) -> tuple[ArrayType, ...]:
        return self.loaded.types

    @property
    def text(self) -> str:
        return self.loaded.text

    @property
    def executable(self) -> Any:
        return self.loaded.executable

    def __call__(self, *operands: ConcreteArray) -> tuple[ConcreteArray, ...]:
        return self.execute([x.buffer for x in operands])

    def execute(self, buffers: list[Any], committed: bool = False) -> tuple[ConcreteArray, ...]:
        """The results for arguments in buffers on its device; ``committed`` commits them to the device."""
        loaded = self.loaded
        if self.prepare is not None:
            buffers = self.prepare(buffers)
        execute = loaded.execute_committed if committed else loaded.execute
        return tuple(from_buffers(loaded.types, execute(buffers)))


def _preparation(loaded: LoadedExecutable, captured: tuple[Array, ...]) -> Callable[[list[Any]], list[Any]] | None:
    """The map from the buffers of all arguments to those that the executable takes; None where it is the identity."""
    used = loaded.used_inputs
    count = len(captured)
    if not captured and used == tuple(range(len(loaded.program.in_types))):
        return None
    leading = [runtime.copy_to_device(captured[n].buffer, loaded.device) for n in used if n < count]  # type: ignore[attr-defined]
    rest = [n - count for n in used if n >= count]
    return lambda buffers: [*leading, *[buffers[n] for n in rest]]


COMPILED = Cache("compile")
"""Executables by closed program, donation, unused inputs, device, options and rules in force."""
_COMPILING: dict[Any, threading.Event] = {}
_LOCK = threading.Lock()


def compile_program(
    program: Program,
    name: str = "program",
    donated: Sequence[bool] = (),
    *,
    keep_unused: bool = False,
    device: Any = None,
    options: Mapping[str, Any] | None = None,
) -> LoadedProgram:
    """The compiled program; equal programs share an executable.

    Args:
        donated: for each input, whether its memory may be used for a result.
        keep_unused: pass inputs that no result depends on to the device too.
        device: the device; without it the default device.
        options: XLA's options by name.

    Raises: UnhandledEffect: an effect of the row has no lowering. EscapedBox: the program captured a box.
    CompileError: XLA cannot compile it.
    """
    closed, captured = close(program)
    for x in captured:
        if x.run is not None:
            raise escaped_box_error(x)
    if captured and donated:
        donated = (*[False] * len(captured), *donated)
    target = default_device() if device is None else device
    tables = config.current().tables  # a rule in force in a scope may be a lowering rule
    key = (closed, tuple(donated) if any(donated) else (), keep_unused, target, _options_key(options), tables)
    return LoadedProgram(load(key, name, options), captured)


def _options_key(options: Mapping[str, Any] | None) -> Any:
    return tuple(sorted(options.items())) if options else ()


def load(key: Any, name: str, options: Mapping[str, Any] | None = None) -> LoadedExecutable:
    """The executable of a key: threads that need the same one wait for one compilation. A failure is not cached."""
    entries = COMPILED.entries
    while True:
        found = entries.get(key)
        if found is not None:
            COMPILED.hits += 1
            return found
        with _LOCK:
            compiling = _COMPILING.get(key)
            if compiling is None:
                mine = _COMPILING[key] = threading.Event()
        if compiling is not None:
            compiling.wait()
            continue
        try:
            return COMPILED.get(key, lambda: _compile(key, name, options))
        finally:
            with _LOCK:
                del _COMPILING[key]
            mine.set()


def _compile(key: Any, name: str, options: Mapping[str, Any] | None) -> LoadedExecutable:
    closed, donated, keep_unused, device, _, _ = key
    lowered = lower(closed, name, donated, keep_unused)
    text, calls = lowered.module.text, lowered.module.calls
    shown = f"jit({name.removeprefix('jit_')})"
    log_step("Compiling %s for arguments %s", shown, ", ".join(map(str, closed.in_types)) or "()")
    start = time.perf_counter()
    results = [storage(t) for t in lowered.program.out_types]
    executable = disk_cache.compile(text, device, results, options, config.current().compilation_cache_dir, calls)
    log_step("Finished XLA compilation of %s in %.3f ms", shown, 1e3 * (time.perf_counter() - start))
    if not calls:
        return LoadedExecutable(closed, text, lowered.used_inputs, lowered.aliases, executable)
    effects, ordered = calls_host(closed), is_ordered(closed)
    launch = lambda execute: HostCallLaunch(execute, executable.devices[0], effects, ordered)
    return LoadedExecutable(closed, text, lowered.used_inputs, lowered.aliases, executable, launch)


def check_lowerable(program: Program, name: str) -> None:
    """Raises: UnhandledEffect: an effect of the program's row has no lowering."""
    found = [effect for effect in program.effects if not LOWER.has(type(effect))]
    if found:
        row = ", ".join(sorted(map(str, found)))
        raise UnhandledEffect(
            f"{name}: nobody handles {row}, and a device cannot.",
            hint=found[0].remedy or "handle it around jit or inside.",
        )


class LoweredProgram(NamedTuple):
    """A closed program in StableHLO.

    ``program`` is the program that was emitted: without unused inputs, with tokens where it calls the host.
    ``used_inputs`` are the inputs of the closed program that it takes, ``aliases[i]`` the result in the memory of its
    input ``i``.
    """

    module: StablehloModule
    program: Program
    used_inputs: tuple[int, ...]
    aliases: tuple[int | None, ...]


def lower(closed: Program, name: str, donated: Sequence[bool] = (), keep_unused: bool = False) -> LoweredProgram:
    """Emit a closed program without its unused inputs.

    Raises: UnhandledEffect: an effect of its row has no lowering.
    """
    check_lowerable(closed, name)
    pruned, used = dead_code_elimination(closed, instantiate=keep_unused)
    used_inputs = tuple([i for i, yes in enumerate(used) if yes])
    aliases = _aliases(pruned, [bool(donated) and donated[n] for n in used_inputs])
    emitted = with_token(pruned) if calls_host(pruned) else pruned
    tokens = (None,) * (len(emitted.in_types) - len(pruned.in_types))
    return LoweredProgram(lower_program(emitted, name, (*aliases, *tokens)), emitted, used_inputs, aliases)


def _aliases(program: Program, donated: Sequence[bool]) -> tuple[int | None, ...]:
    """For each donated input the first result of its shape and dtype that aliases no other input; else None."""
    free: dict[Any, list[int]] = {}
    if not any(donated):
        return (None,) * len(donated)
    for i, t in reversed(list(enumerate(program.out_types))):
        free.setdefault(storage(t), []).append(i)
    aliases: list[int | None] = []
    unusable = []
    for t, yes in zip(program.in_types, donated):
        results = free.get(storage(t)) if yes else None
        aliases.append(results.pop() if results else None)
        if yes and aliases[-1] is None:
            unusable.append(str(t))
    if unusable:
        warnings.warn(f"Some donated buffers were not usable: {', '.join(unusable)}.", stacklevel=2)
    return tuple(aliases)


def check_donation(buffers: Sequence[Any], donated: Sequence[int], name: str, names: NameOfArgument) -> None:
    """Raises: DonatedTwice: a donated buffer is two arguments, of which one would read freed memory."""
    first: dict[int, int] = {}
    freed = set(donated)
    for i, buffer in enumerate(buffers):
        other = first.setdefault(id(buffer), i)
        if other != i and (other in freed or i in freed):
            raise DonatedTwice(
                f"{name}: a donated array must be a single argument, got it as {names(other)} and {names(i)}.",
                hint="donate a copy, or do not donate it.",
            )


def fail(
    error: Exception, name: str, leaves: Sequence[Any], names: NameOfArgument, captured: Sequence[Array]
) -> NoReturn:
    """Raise ``failure`` of an error."""
    explained = failure(error, name, leaves, names, captured)
    if explained is error:
        raise error
    raise explained from explained.__cause__ or error


def failure(
    error: Exception, name: str, leaves: Sequence[Any], names: NameOfArgument, captured: Sequence[Array]
) -> BaseException:
    """The error to raise when a call failed: a callback's, that an array was deleted, else the error itself."""
    if isinstance(error, HandlaxError):
        return error
    translation = translated(error)
    if translation is not error:
        return translation
    for i, x in enumerate([*leaves, *captured]):
        if isinstance(x, ConcreteArray) and x.is_deleted():
            which = names(i) if i < len(leaves) else "an array that the function captured"
            return DeletedArray(
                f"{name}: {which} must not be deleted or donated before the call, got {x.type} without data.",
                hint="use the result of the call that it was donated to, or do not donate it.",
            )
    return error
