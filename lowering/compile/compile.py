"""Compilation of programs to executables; equal programs are compiled once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ...effects.base import config
from ...effects.base.errors import (
    CompileError,
    DeletedArray,
    DeviceMismatch,
    DonatedTwice,
    ExecutionError,
    HandlaxError,
)
from ...effects.base.lazy_module import LazyModule
from ...effects.base.monitoring import COMPILE_SECONDS, LOWER_SECONDS
from ...effects.base.source_locations import warn_user
from ...effects.base.watching import FunctionLabel, finish_step, log_step
from ...effects.core.arrays import Array, ConcreteArray, as_array, from_buffers, is_shared
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.core.named_axes import Axis
from ...effects.core.operation import has_lowering
from ...effects.programs.closure_conversion import close
from ...effects.programs.program import Program
from ...effects.programs.program_cache import scopes_in
from ...effects.programs.unhandled_effects import unhandled
from ...effects.sharding.devices import kind_of
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import ArrayType
from ...interpreters.analysis.cut_constraints import with_constraints
from ...interpreters.analysis.repeats import with_boundaries
from ...interpreters.analysis.simplify import dead_code_elimination
from ...interpreters.custom.rule_free_programs import without_rules
from ...interpreters.handlers.default_clauses import with_defaults
from ...interpreters.transformations.partial_sums import with_parts
from ..xla.array_backend import note_placement
from ..xla.compiler_calls import Inspection
from ..xla.host_callbacks import HostCall, HostCallLaunch, calls_host, is_ordered, translated, with_token
from ..xla.lazy import runtime
from ..xla.stablehlo_types import storage
from .executable_cache import ExecutableCache
from .placement import Placement, constants, meshes, placed_as_typed, settle, sharding_of
from .stablehlo_modules import StablehloModule, lower_program

if TYPE_CHECKING:
    from ...interpreters.analysis import typecheck
    from ..xla import disk_cache
else:
    typecheck = LazyModule("handlax.interpreters.analysis.typecheck")
    disk_cache = LazyModule("handlax.lowering.xla.disk_cache")

NameOfArgument = Callable[[int], str]


class LoadedExecutable:
    """A closed program compiled for its devices, without its unused inputs.

    ``execute(buffers)`` takes the buffers of the inputs ``used_inputs`` and returns those of the results, uncommitted
    on a single device; ``execute_committed`` commits them to it. ``aliases[i]``: the result in the memory of used input
    ``i``. ``places[i]`` is the runtime's sharding of used input ``i``, ``device`` the first device. ``function`` is the
    last one of those whose programs are equal to it.
    """

    __slots__ = (
        "program", "text", "used_inputs", "aliases", "placement", "places", "device", "executable", "execute",
        "execute_committed", "function",
    )

    def __init__(
        self,
        program: Program,
        text: str,
        used_inputs: tuple[int, ...],
        aliases: tuple[int | None, ...],
        placement: Placement,
        executable: Any,
        function: FunctionLabel,
        launch: Callable[[Any], Any] = lambda execute: execute,
    ):
        self.function = function
        self.program = program
        self.text = text
        self.used_inputs = used_inputs
        self.aliases = aliases if placement.mesh is None else _kept(aliases, program, used_inputs, executable)
        self.placement = placement
        self.places = executable.arguments or _on_one_device(executable.devices[0], program, used_inputs)
        if executable.layouts:
            ranks = [len(storage(program.in_types[n])[0]) for n in used_inputs]
            self.places = tuple(map(runtime.laid_out, self.places, ranks, executable.layouts))
        for layout in filter(None, map(runtime.layout_of, (*self.places, *executable.shardings))):
            note_placement(executable.devices[0], layout=layout)
        self.executable = executable
        self.device = executable.devices[0]
        self.execute_committed = launch(executable.bind())
        on_one = placement.mesh is None
        self.execute = launch(executable.bind(committed=False)) if on_one else self.execute_committed


def _on_one_device(device: Any, program: Program, used_inputs: Sequence[int]) -> tuple[Any, ...]:
    """The runtime's shardings of the used inputs of a program of one device."""
    spaces = [program.in_types[n].memory_space for n in used_inputs]
    return tuple([runtime.sharding(device, kind_of(space, device)) for space in spaces])


def _kept(
    aliases: Sequence[int | None], program: Program, used_inputs: Sequence[int], executable: Any
) -> tuple[int | None, ...]:
    """The aliases whose input and result have parts of one shape on the devices: others the compiler cannot use."""

    def fits(i: int, result: int) -> bool:
        shapes = storage(program.in_types[used_inputs[i]])[0], storage(program.out_types[result])[0]
        cuts = executable.arguments[i].named, executable.shardings[result].named
        return cuts[0].shard_shape(shapes[0]) == cuts[1].shard_shape(shapes[1])

    return tuple([alias if alias is not None and fits(i, alias) else None for i, alias in enumerate(aliases)])


class LoadedProgram:
    """An executable with the arrays that its program captured, from arrays to arrays; ``types`` are those of results.

    ``prepare`` maps the buffers of the program's arguments to those that the executable takes; None: the same.
    ``places`` has for each argument where the executable takes it from, as the runtime's sharding; None: unused.
    """

    __slots__ = ("loaded", "captured", "prepare", "places", "types")

    def __init__(self, loaded: LoadedExecutable, captured: Sequence[Array], types: Sequence[ArrayType]):
        self.loaded = loaded
        self.captured = tuple(captured)
        self.types = types
        self.prepare = _preparation(loaded, self.captured)
        places = dict(zip(loaded.used_inputs, loaded.places))
        self.places = tuple([places.get(n) for n in range(len(captured), len(loaded.program.in_types))])

    def __call__(self, *operands: ConcreteArray) -> tuple[ConcreteArray, ...]:
        return self.execute(self.moved([x.buffer for x in operands]))

    def moved(self, buffers: Sequence[Any]) -> list[Any]:
        """The buffers of the arguments, each where the executable takes it from."""
        copy_to = runtime.copy_to
        return [b if where is None else copy_to(b, where) for b, where in zip(buffers, self.places)]

    def execute(self, buffers: list[Any], committed: bool = False) -> tuple[ConcreteArray, ...]:
        """The results for arguments in buffers on its devices; ``committed`` commits those of one device to it."""
        loaded = self.loaded
        if self.prepare is not None:
            buffers = self.prepare(buffers)
        execute = loaded.execute_committed if committed else loaded.execute
        return tuple(from_buffers(self.types, execute(buffers)))


def _preparation(loaded: LoadedExecutable, captured: tuple[Array, ...]) -> Callable[[list[Any]], list[Any]] | None:
    """The map from the buffers of all arguments to those that the executable takes; None where it is the identity."""
    used = loaded.used_inputs
    count = len(captured)
    if not captured and used == tuple(range(len(loaded.program.in_types))):
        return None
    given = [(captured[n], where) for n, where in zip(used, loaded.places) if n < count]
    leading = [runtime.copy_to(x.buffer, where) for x, where in given]
    rest = [n - count for n in used if n >= count]
    return lambda buffers: [*leading, *[buffers[n] for n in rest]]


COMPILED = ExecutableCache("compile")
"""Executables by closed program, donation, unused inputs, placement, options, rules in force and named scopes."""


def compile_program(
    program: Program,
    name: str = "program",
    donated: Sequence[bool] = (),
    *,
    keep_unused: bool = False,
    placement: Placement | None = None,
    options: Mapping[str, Any] | None = None,
    load: Callable[..., Any] | None = None,
    function: FunctionLabel | None = None,
) -> LoadedProgram:
    """The compiled program; equal programs share an executable.

    Args:
        donated: for each input, whether its memory may be used for a result.
        keep_unused: pass inputs that no result depends on to the device too.
        placement: its devices, and the shardings of its arguments and results; without it the mesh that its operations
            name, else the default device.
        options: XLA's options by name, and ``split_repeats``, for ``lower``; under the setting
            ``disable_most_optimizations`` those of ``runtime.quick_options`` too.
        load: gives the executable of a text that was compiled before; it takes what ``runtime.compile`` does.
        function: whose program it is, for events and profiles; by default a function of this name.

    Raises: UnhandledEffect: an effect of the row has no lowering. EscapedBox: the program captured a box.
    DeviceMismatch: it names meshes of other devices. CompileError: XLA cannot compile it.
    """
    closed, captured, placement = closed_at(program, name, placement)
    for x in captured:
        if x.run is not None:
            raise escaped_box_error(x)
    if captured and donated:
        donated = (*[False] * len(captured), *donated)
    settings = config.current()
    tables = settings.tables  # a rule in force in a scope may be a lowering rule
    chosen = tuple(sorted((options or {}).items())), settings.disable_most_optimizations
    key = (closed, tuple(donated) if any(donated) else (), keep_unused, placement, chosen, tables, scopes_in(closed))
    function = function or FunctionLabel(f"jit({name.removeprefix('jit_')})")
    loaded = COMPILED.get(key, lambda: _compile(key, name, function, options, load))
    loaded.function = function
    return LoadedProgram(loaded, captured, program.out_types)


def closed_at(
    program: Program, name: str, placement: Placement | None
) -> tuple[Program, Sequence[Array], Placement]:
    """The program that is lowered: one that takes the arrays which ``program`` captured, these, and where it is
    executed.
    """
    closed, captured = close(with_defaults(program))
    closed = without_rules(closed)
    placement = settle(closed, name, placement, constants(program))
    placement = placement.after([*map(sharding_of, captured)], len(closed.in_types) - len(captured))
    return with_parts(closed), captured, placed_as_typed(placement, closed.in_types, closed.out_types)


def _compile(
    key: Any,
    name: str,
    function: FunctionLabel,
    options: Mapping[str, Any] | None,
    load: Callable[..., Any] | None,
) -> LoadedExecutable:
    closed, donated, keep_unused, placement, (_, quick), *_ = key
    if not placement.devices:
        raise DeviceMismatch(
            f"{name}: an abstract mesh has no devices to run on, got {placement.mesh}.",
            hint="with hx.set_mesh(mesh) of hx.devices(): ..., or lowered.compile(device_assignment=devices).",
        )
    start = time.perf_counter()
    lowered = lower(closed, name, donated, keep_unused, placement, options)
    text, calls = lowered.module.text, lowered.module.calls
    options = (runtime.quick_options(text, placement.devices) if quick else {}) | dict(options or {})
    options.pop("split_repeats", None)
    finish_step(LOWER_SECONDS, time.perf_counter() - start, function, "Finished lowering %s in %.3f ms")
    log_step("Compiling %s for arguments %s", function.name, ", ".join(map(str, closed.in_types)) or "()")
    start = time.perf_counter()
    results, places = [storage(t) for t in lowered.program.out_types], _places(lowered)
    folder = config.current().compilation_cache_dir
    if len(placement.devices) == 1:
        mesh, (device,) = placement.mesh, placement.devices
        whole = SingleDeviceSharding(device) if mesh is None else NamedSharding(mesh, PartitionSpec())
        for call in [call for call in calls if isinstance(call, Inspection)]:
            call(whole)
    with _checked(closed):
        if load is not None:
            executable = load(text, devices=placement.devices, results=results, options=options, places=places)
        elif folder and not calls:  # with host functions it is valid in this process alone
            executable = disk_cache.compile(folder, text, placement.devices, results, options, places)
        else:
            executable = runtime.compile(
                text, devices=placement.devices, results=results, options=options, calls=calls, places=places
            )
    finish_step(COMPILE_SECONDS, time.perf_counter() - start, function, "Finished XLA compilation of %s in %.3f ms")
    launch = lambda execute: execute
    effects = calls_host(closed)
    hosted = [call for call in calls if isinstance(call, HostCall)]
    if hosted or effects:
        place = executable.arguments[-1] if executable.arguments else runtime.sharding(executable.devices[0])
        place = place if is_ordered(closed) else None
        failing = [call for call in hosted if call.types is not None]
        launch = lambda execute: HostCallLaunch(execute, effects, place, failing)
    return LoadedExecutable(closed, text, lowered.used_inputs, lowered.aliases, placement, executable, function, launch)


def check_lowerable(program: Program, name: str) -> None:
    """Raises: UnhandledEffect: an effect of the program's row has no lowering."""
    found = [effect for effect in program.effects if isinstance(effect, Axis) or not has_lowering(effect)]
    if found:
        raise unhandled(name, found, program)


class LoweredProgram(NamedTuple):
    """A closed program in StableHLO.

    ``program`` is the program that was emitted: without unused inputs, with tokens where it calls the host.
    ``used_inputs`` are the inputs of the closed program that it takes, ``aliases[i]`` the result in the memory of its
    input ``i``. ``placement`` is that of the emitted program.
    """

    module: StablehloModule
    program: Program
    used_inputs: tuple[int, ...]
    aliases: tuple[int | None, ...]
    placement: Placement


def lower(
    closed: Program,
    name: str,
    donated: Sequence[bool],
    keep_unused: bool,
    placement: Placement,
    options: Mapping[str, Any] | None = None,
) -> LoweredProgram:
    """Emit a program of ``closed_at`` without its unused inputs, for the devices of its placement.

    Of the options one is about lowering: ``split_repeats``, by default True, puts boundaries between repeats where the
    compiler of the platform gains by them.

    Raises: UnhandledEffect: an effect of its row has no lowering.
    """
    check_lowerable(closed, name)
    pruned, used = dead_code_elimination(closed, instantiate=keep_unused)
    used_inputs = tuple([i for i, yes in enumerate(used) if yes])
    split_repeats = (options or {}).get("split_repeats", True)
    if split_repeats and placement.platform == "cpu" and (placement.mesh is None or runtime.KEEPS_BARRIERS):
        pruned = with_boundaries(pruned, placement.mesh is not None)
    pruned = with_constraints(pruned)
    aliases = aliases_of(pruned, [bool(donated) and donated[n] for n in used_inputs])
    emitted = with_token(pruned) if calls_host(pruned) else pruned
    made = len(pruned.out_types)
    placement = placement.emitted(used_inputs, len(emitted.in_types), made, len(emitted.out_types) - made)
    tokens = [""] * (len(emitted.in_types) - len(aliases))
    with _checked(closed):
        module = lower_program(
            emitted, name, [_donation(i, placement) for i in aliases] + tokens if any(donated) else (), placement
        )
    return LoweredProgram(module, emitted, used_inputs, aliases, placement)


@contextmanager
def _checked(program: Program) -> Iterator[None]:
    """What the emitter or XLA raises for a program that is not well formed is replaced by the type checker's error.

    A recorded program is well formed; one that was parsed or built may not be, and is checked where that is seen.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, CompileError) or not isinstance(error, HandlaxError):
            typecheck.typecheck(program)
        raise


def _donation(alias: int | None, placement: Placement) -> str:
    """The attribute of an input in whose memory a result is; XLA finds one that is cut and laid out alike."""
    if alias is None:
        return ""
    alike = placement.mesh is None and not (placement.argument_layouts or placement.result_layouts)
    return f"tf.aliasing_output = {alias} : i32" if alike else "jax.buffer_donor = true"


def _places(lowered: LoweredProgram) -> Any:
    """Meshes and shardings of the buffers that a program takes and returns, and the ranks of its results, for the
    runtime; None for one device.
    """
    mesh, program = lowered.placement.mesh, lowered.program
    if mesh is None:
        return None
    named = [sharding.mesh for sharding in lowered.placement.arguments if sharding is not None]
    every = dict.fromkeys([mesh, *named, *[each for each in meshes(program) if isinstance(each, Mesh)]])
    ranked = [
        [
            None if s is None else runtime.sharding_over(s.lying_in(t.memory_space), len(storage(t)[0]))
            for s, t in zip(shardings, types)
        ]
        for shardings, types in (
            (lowered.placement.arguments, program.in_types), (lowered.placement.results, program.out_types)
        )
    ]
    return tuple(every), *ranked, [t.ndim for t in program.out_types]


def aliases_of(program: Program, donated: Sequence[bool]) -> tuple[int | None, ...]:
    """For each donated input the first result of its shape, dtype and memory that aliases no other input; else None."""
    free: dict[Any, list[int]] = {}
    if not any(donated):
        return (None,) * len(donated)
    for i, t in reversed(list(enumerate(program.out_types))):
        free.setdefault((storage(t), t.memory_space), []).append(i)
    aliases: list[int | None] = []
    unusable = []
    for t, yes in zip(program.in_types, donated):
        results = free.get((storage(t), t.memory_space)) if yes else None
        aliases.append(results.pop() if results else None)
        if yes and aliases[-1] is None:
            unusable.append(str(t))
    if unusable:
        warn_user(f"Some donated buffers were not usable: {', '.join(unusable)}.")
    return tuple(aliases)


def check_donation(
    leaves: Sequence[Any], buffers: Sequence[Any], donated: Sequence[int], name: str, names: NameOfArgument
) -> None:
    """Check the arguments ``leaves``, which are in these buffers, and of which some are donated.

    Numbers and arrays that the package keeps may be several arguments: what is donated is a copy of their data.

    Raises: DonatedTwice: a donated buffer is two arguments, of which one would read freed memory.
    """
    first: dict[int, int] = {}
    freed = set(donated)
    for i, buffer in enumerate(buffers):
        other = first.setdefault(id(buffer), i)
        if other != i and (other in freed or i in freed) and not is_shared(as_array(leaves[i])):
            raise DonatedTwice(
                f"{name}: a donated array must be a single argument, got it as {names(other)} and {names(i)}.",
                hint="donate a copy, or do not donate it.",
            )


# of the runtime's errors those about a buffer that was deleted before; a donated one is deleted after a failure too
_WITHOUT_DATA = re.compile("Expected args to execute|deleted|donated")


def fail(
    error: Exception, name: str, leaves: Sequence[Any], names: NameOfArgument, captured: Sequence[Array]
) -> NoReturn:
    """Raise the error that explains why a call failed: a callback's, that an array was deleted, else ``error``."""
    if isinstance(error, HandlaxError):
        raise error
    explained = translated(error)
    of_a_buffer = isinstance(explained, ExecutionError) and _WITHOUT_DATA.search(str(error))
    for i, x in enumerate([*leaves, *captured] if explained is error or of_a_buffer else ()):
        if isinstance(x, ConcreteArray) and x.is_deleted():
            which = names(i) if i < len(leaves) else "an array that the function captured"
            raise DeletedArray(
                f"{name}: {which} must not be deleted or donated before the call, got {x.type} without data.",
                hint="use the result of the call that it was donated to, or do not donate it.",
            ) from error
    if explained is error:
        raise error
    raise explained from explained.__cause__ or error
