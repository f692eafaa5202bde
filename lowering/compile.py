"""From a program to something that runs on a device; compiled once for equal programs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ..effects import config
from ..effects.arrays import Array, ConcreteArray, from_buffers
from ..effects.caches import Cache
from ..effects.closing import close
from ..effects.columns import LOWER
from ..effects.errors import BadArgument, DeletedArray, HandlaxError, UnhandledEffect
from ..effects.escape import escaped
from ..effects.programs import Program
from ..effects.types import ArrayType
from ..interpreters.simplify import dead_code_elimination
from .backend import default_device
from .callbacks import Launch, calls_host, is_ordered, translated, with_turn
from .emit import Module, lower_program
from .lazy import cache, runtime
from .stablehlo import storage

Names = Callable[[int], str]


class Loaded:
    """A closed program on a device, without the inputs that it does not use.

    ``run(buffers).consume_with_handlers(handlers)`` runs it on the buffers of the inputs ``kept``.
    """

    __slots__ = ("program", "text", "kept", "aliases", "device", "executable", "run", "handlers", "committed", "types")

    def __init__(
        self,
        program: Program,
        text: str,
        kept: tuple[int, ...],
        aliases: tuple[int | None, ...],
        executable: Any,
        launch: Any = None,
    ):
        self.program = program
        self.text = text
        self.kept = kept
        self.aliases = aliases
        self.executable = executable
        self.device = executable.devices[0]
        self.run = executable.run if launch is None else launch
        self.handlers = executable.handlers(committed=False)
        self.committed = executable.handlers(committed=True)
        self.types = program.out_types


class Compiled:
    """A program on a device with the arrays that it captured; a call takes and gives arrays."""

    __slots__ = ("loaded", "captured", "prepare")

    def __init__(self, loaded: Loaded, captured: Sequence[Array]):
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
        return self.on([x.buffer for x in operands])

    def on(self, buffers: list[Any], committed: bool = False) -> tuple[ConcreteArray, ...]:
        """Run on buffers that lie on its device."""
        loaded = self.loaded
        if self.prepare is not None:
            buffers = self.prepare(buffers)
        made = loaded.run(buffers).consume_with_handlers(loaded.committed if committed else loaded.handlers)
        return tuple(from_buffers(loaded.types, made))


def _preparation(loaded: Loaded, captured: tuple[Array, ...]) -> Callable[[list[Any]], list[Any]] | None:
    """What turns the buffers of all arguments into those that the device takes; None where they are the same."""
    kept = loaded.kept
    count = len(captured)
    if not captured and kept == tuple(range(len(loaded.program.in_types))):
        return None
    leading = [runtime.copy_to_device(captured[n].buffer, loaded.device) for n in kept if n < count]  # type: ignore[attr-defined]
    rest = [n - count for n in kept if n >= count]
    return lambda buffers: [*leading, *[buffers[n] for n in rest]]


COMPILED = Cache("compile")
_MAKING: dict[Any, threading.Event] = {}
_LOCK = threading.Lock()


def compile_program(
    program: Program,
    name: str = "program",
    donated: Sequence[bool] = (),
    *,
    keep_unused: bool = False,
    device: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Compiled:
    """The compiled form of a program; equal programs share one.

    Args:
        donated: for each input, whether its memory may be used for a result.
        device: where it runs; the default device without it.

    Raises: UnhandledEffect: an effect that the device does not answer is in its row. EscapedBox: it holds a box of an
    enclosing run. CompileError: XLA refuses it.
    """
    closed, captured = close(program)
    for x in captured:
        if x.run is not None:
            raise escaped(x)
    if captured and donated:
        donated = (*[False] * len(captured), *donated)
    place = default_device() if device is None else device
    tables = config.current().tables  # a rule in force in a scope may lower an operation in another way
    key = (closed, tuple(donated) if any(donated) else (), keep_unused, place, _options_key(options), tables)
    return Compiled(load(key, name, options), captured)


def _options_key(options: Mapping[str, Any] | None) -> Any:
    return tuple(sorted(options.items())) if options else ()


def load(key: Any, name: str, options: Mapping[str, Any] | None = None) -> Loaded:
    """Compile once, however many threads ask; a failure leaves nothing behind, and the next to ask tries again."""
    entries = COMPILED.entries
    while True:
        found = entries.get(key)
        if found is not None:
            COMPILED.hits += 1
            return found
        with _LOCK:
            making = _MAKING.get(key)
            if making is None:
                mine = _MAKING[key] = threading.Event()
        if making is not None:
            making.wait()
            continue
        try:
            return COMPILED.get(key, lambda: _compile(key, name, options))
        finally:
            with _LOCK:
                del _MAKING[key]
            mine.set()


def _compile(key: Any, name: str, options: Mapping[str, Any] | None) -> Loaded:
    closed, donated, keep_unused, device, _, _ = key
    made = lower(closed, name, donated, keep_unused)
    text, calls = made.module.text, made.module.calls
    results = [storage(t) for t in made.whole.out_types]
    executable = cache.compile(text, device, results, options, config.current().compilation_cache_dir, calls)
    launch = Launch(executable, calls_host(closed), is_ordered(closed)) if calls else None
    return Loaded(closed, text, made.kept, made.aliases, executable, launch)


def unhandled(program: Program, name: str) -> None:
    """Raises UnhandledEffect where a program has an effect that the device does not answer: one without a lowering."""
    found = [effect for effect in program.effects if not LOWER.has(type(effect))]
    if found:
        row = ", ".join(sorted(map(str, found)))
        raise UnhandledEffect(
            f"{name}: nobody handles {row}, and a device cannot.",
            hint=getattr(found[0], "remedy", "handle it around jit or inside."),
        )


class LoweredProgram(NamedTuple):
    """A closed program in StableHLO.

    ``whole`` is what was emitted, ``kept`` which inputs it has, ``aliases`` which result takes the memory of which.
    """

    module: Module
    whole: Program
    kept: tuple[int, ...]
    aliases: tuple[int | None, ...]


def lower(closed: Program, name: str, donated: Sequence[bool] = (), keep_unused: bool = False) -> LoweredProgram:
    """Emit a closed program, without the inputs that it does not use.

    Raises: UnhandledEffect: the device does not answer one of its effects.
    """
    unhandled(closed, name)
    pruned, used = dead_code_elimination(closed, instantiate=keep_unused)
    kept = tuple([i for i, yes in enumerate(used) if yes])
    aliases = _aliases(pruned, [bool(donated) and donated[n] for n in kept])
    whole = with_turn(pruned) if calls_host(pruned) else pruned
    more = (None,) * (len(whole.in_types) - len(pruned.in_types))
    return LoweredProgram(lower_program(whole, name, (*aliases, *more)), whole, kept, aliases)


def _aliases(program: Program, donated: Sequence[bool]) -> tuple[int | None, ...]:
    """For each input the result that takes over its memory: the first of its shape and dtype that is free."""
    free: dict[Any, list[int]] = {}
    if not any(donated):
        return (None,) * len(donated)
    for i, t in reversed(list(enumerate(program.out_types))):
        free.setdefault(storage(t), []).append(i)
    found: list[int | None] = []
    unused = []
    for t, yes in zip(program.in_types, donated):
        places = free.get(storage(t)) if yes else None
        found.append(places.pop() if places else None)
        if yes and not places and found[-1] is None:
            unused.append(str(t))
    if unused:
        warnings.warn(f"Some donated buffers were not usable: {', '.join(unused)}.", stacklevel=2)
    return tuple(found)


def check_donation(buffers: Sequence[Any], donated: Sequence[int], name: str, names: Names) -> None:
    """Raises BadArgument where a donated buffer is given twice: one of its uses would read freed memory."""
    first: dict[int, int] = {}
    given = set(donated)
    for i, buffer in enumerate(buffers):
        other = first.setdefault(id(buffer), i)
        if other != i and (other in given or i in given):
            raise BadArgument(
                f"{name}: a donated array must be given once, got the same one for {names(other)} and {names(i)}.",
                hint="donate a copy, or do not donate it.",
            )


def fail(error: Exception, name: str, leaves: Sequence[Any], names: Names) -> NoReturn:
    """Raise what the failure of a call means."""
    found = failure(error, name, leaves, names)
    if found is error:
        raise error
    raise found from found.__cause__ or error


def failure(error: Exception, name: str, leaves: Sequence[Any], names: Names) -> BaseException:
    """A callback that failed; the argument that was deleted, or is on another device; else the error itself."""
    if isinstance(error, HandlaxError):
        return error
    known = translated(error)
    if known is not error:
        return known
    for i, x in enumerate(leaves):
        if isinstance(x, ConcreteArray) and x.is_deleted():
            return DeletedArray(
                f"{name}: {names(i)} must not be deleted or donated before the call, got {x.type} without data.",
                hint="use the result of the call that it was donated to, or do not donate it.",
            )
    return error
