"""Executables: StableHLO compiled, executed, serialised and analysed by XLA."""

import os
import pathlib
import platform as host_platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...effects.base.caches import cached, per_process, process_lock
from ...effects.base.errors import BadCall, CompileError, HandlaxError, ProcessesDiffer
from ...effects.base.lazy_module import LazyModule
from ...effects.operations.foundations.foreign_call import PARTITIONED_CALL
from ...effects.sharding.devices import is_addressable, processes_of
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ..clients.jaxlib_modules import JAXLIB_VERSION, Client, _jax, xc
from ..clients.platforms import ANSWERS, COUNTS, answer_xla, register_lapack
from ..clients.processes import Connection, connection
from ..clients.runtime_access import CURRENT_HOST_CALL, REFUSALS, check_access, empty_in_children
from .buffer_types import (
    Aval,
    BufferSharding,
    Device,
    aval,
    chosen_layout,
    chosen_sharding,
    hlo_sharding,
    in_words_of_meshes,
    laid_out,
    layout_of,
    sharding,
    spec_over,
)
from .buffers import Buffer
from .compiler_calls import Inspection, UserPartitionCall
from .stablehlo_types import storage

if TYPE_CHECKING:
    import hashlib

    from . import mlir_modules
else:
    hashlib = LazyModule("hashlib")
    mlir_modules = LazyModule("handlax.lowering.xla.mlir_modules")

ResultType: TypeAlias = tuple[Sequence[int], Any]
Places: TypeAlias = tuple[Sequence[Mesh], Sequence[BufferSharding], Sequence[BufferSharding | None], Sequence[int]]
KEEPS_BARRIERS = not JAXLIB_VERSION.startswith("0.10.")  # whether barriers hold until kernels are fused
_STARVES = JAXLIB_VERSION.startswith("0.10.")  # whether collectives of two programs may wait for each other's threads


class Executable:
    """A program loaded on its devices, from buffers to buffers.

    ``execute`` is ``bind()``, the cheapest call there is. XLA checks the sizes of the arguments in bytes, not their
    types: the caller ensures the types.
    """

    __slots__ = (
        "_joint", "arguments", "blob", "devices", "execute", "layouts", "loaded", "results", "shardings", "text"
    )

    def __init__(
        self,
        loaded: Any,
        devices: Sequence[Device],
        results: Sequence[ResultType],
        places: Places | None = None,
        text: str | bytes = "",
        blob: bytes | None = None,
    ):
        self.loaded = loaded
        self.blob = blob  # of which it was loaded: XLA serializes a loaded program without some of its functions
        self.text = text
        self.devices = tuple(devices)
        self.results = tuple(aval(shape, dtype) for shape, dtype in results)
        asked = (b"mhlo.layout_mode" if isinstance(text, bytes) else "mhlo.layout_mode") in text  # type: ignore[operator]
        # of each argument; empty: all are row-major
        self.layouts = tuple(map(chosen_layout, loaded.get_parameter_layouts())) if asked else ()
        where: Sequence[BufferSharding] = () if places is None else places[1]
        self.arguments: tuple[BufferSharding, ...] = tuple(where)
        # of each result
        made = (
            [sharding(self.devices[0], kind) for kind in self._memory_kinds()]
            if places is None else self._sharded(*places)
        )
        if asked:
            layouts = map(chosen_layout, loaded.get_output_layouts())
            made = [laid_out(s, len(t.shape), layout) for s, t, layout in zip(made, self.results, layouts)]
        self.shardings: tuple[BufferSharding, ...] = tuple(made)
        self._joint: tuple[frozenset[int], str, int] | None = None  # who meets in the program, once it was launched
        self.execute: Callable[[Sequence[Buffer]], list[Buffer]] = self.bind()

    def _sharded(
        self, meshes: Sequence[Mesh], arguments: Sequence[BufferSharding], wanted: Sequence[BufferSharding | None],
        ranks: Sequence[int],
    ) -> Any:
        """The shardings of the results: as wanted, else as XLA chose, in the words of an argument if it can. ``ranks``:
        of the results, of which buffers have further dimensions for the words of keys.
        """
        chosen = self.loaded.get_output_shardings() or [None] * len(self.results)
        return tuple([
            known or chosen_sharding(made, len(kind.shape), rank, meshes, arguments, memory)
            for known, made, kind, rank, memory in zip(wanted, chosen, self.results, ranks, self._memory_kinds())
        ])  # XLA has a sharding for a program without results too

    def _memory_kinds(self) -> Sequence[str]:
        """The kind of memory of each result."""
        kinds: Sequence[str] = self.loaded.get_output_memory_kinds()[0] if self.results else ()
        return kinds

    def bind(self, committed: bool = True) -> Callable[[Sequence[Buffer]], list[Buffer]]:
        """The call as a function of the list of argument buffers; ``committed``: its results are so.

        It returns before the results are computed. Raises: RuntimeFailure: an argument is deleted, on another device,
        of another size, or missing.
        """
        execute = self.loaded.execute_sharded
        pairs = zip(self.results, self.shardings, strict=True)
        # an array in a layout of its own is committed, so that no program takes it for a row-major one
        handlers = [_result_handler(kind, where, committed or layout_of(where) is not None) for kind, where in pairs]
        if len(self.devices) > 1:
            starves = _STARVES and self.devices[0].platform == "cpu"
            execute = (_one_after_the_other if starves else _in_one_order)(execute)
        if not all(map(is_addressable, self.devices)):
            execute = self._together(execute)

        def call(buffers: Sequence[Buffer]) -> list[Buffer]:
            if REFUSALS:
                check_access()
            return execute(buffers).consume_with_handlers(handlers)

        return call

    def _together(self, execute: Callable[..., Any]) -> Callable[[Sequence[Buffer]], Any]:
        """``execute``, which is counted, and at first waits for the other processes, where they meet in the program."""
        joined = connection()
        if joined is None:
            return execute

        def launch(buffers: Sequence[Buffer]) -> Any:
            if self._joint is None:
                self._joint = self._joint_action()
            group, name, number = self._joint
            if not group:
                return execute(buffers)
            with joined.turn(group):
                if not joined.has_met(group, number):
                    self._meet(joined, group, name, number)
                joined.check()
                joined.take_part(group, name, number)
                return execute(buffers)

        return launch

    def _joint_action(self) -> tuple[frozenset[int], str, int]:
        """What a launch of the program is to several processes: the indices of those that wait for each other in its
        collectives, empty if it has none; its name; and a digest of its text, as a number.
        """
        if not _COLLECTIVES.search(self.hlo_text()):
            return frozenset(), "", 0
        text = self.text.encode() if isinstance(self.text, str) else self.text
        name = _MODULE_NAME.search(text)
        number = int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
        return processes_of(self.devices), name[1].decode() if name else "program", number

    def _meet(self, joined: Connection, group: frozenset[int], name: str, number: int) -> None:
        """Wait until the processes have come to launch the program.

        Connections are made at the first collective, and for these XLA waits no longer than half a minute. Raises:
        ProcessesDiffer: another process has come with another program, or did something else together before.
        """
        joined.comparison.tell()
        said = joined.all_say(f"{name} {number}", group, name, 0)  # until they agree, new programs are one joint action
        others = [f"{words.split()[0]} in process {index}" for index, words in said.items()
                  if words != said[joined.index]]
        if others:
            raise ProcessesDiffer(
                f"{name}: every process must launch the same programs over devices of all, in the same "
                f"order, got {name} here, and another program, {', '.join(others)}.",
                hint="what a process computes by itself is given to the program as an argument.",
            )
        joined.compare()
        joined.note_meeting(group, number)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: "flops", "bytes accessed", "transcendentals", ..."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """XLA's memory plan, in attributes ``argument_size_in_bytes``, ``output_``, ``temp_``, ``alias_``, ..."""
        return self.loaded.get_compiled_memory_stats()

    def hlo_text(self) -> str:
        """The program after XLA's optimisations, as HLO text."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes:
        """Bytes for ``deserialize``, valid on machines with equal ``cache_key_facts``."""
        return bytes(self.loaded.serialize()) if self.blob is None else self.blob


_MODULE_NAME = re.compile(rb"module @(\w+)")
_COLLECTIVES = re.compile(r"\b(all-(reduce|gather|to-all)|reduce-scatter|collective-\w+)\b")
_LAST: list[Any] = []  # the token of the last program over several devices
empty_in_children(_LAST)
_LAUNCHING = process_lock()


def _one_after_the_other(execute: Callable[..., Any]) -> Callable[[Sequence[Buffer]], Any]:
    """``execute``, which first waits for the program launched so before it: all devices share one pool of threads.

    Raises: BadCall: launched in a callback of such a program, for whose end it would wait.
    """

    def launch(buffers: Sequence[Buffer]) -> Any:
        caller = CURRENT_HOST_CALL.get()
        if caller is not None and caller.types is not None:
            raise BadCall(
                "a callback of a program over several devices must launch programs of one device, got one over "
                "several, which begins when that program has ended.",
                hint="compute it in the program and pass the result to the callback; or by NumPy.",
            )
        with _LAUNCHING:
            while _LAST:
                with suppress(_jax.JaxRuntimeError):  # reported where its results are read
                    _LAST.pop().block_until_ready()
            results = execute(buffers, with_tokens=True)
            _LAST.append(results.consume_token())
        return results

    return launch


def _in_one_order(execute: Callable[..., Any]) -> Callable[[Sequence[Buffer]], Any]:
    """``execute``, which enqueues a program on all its devices before another thread enqueues one.

    The queue of a device is bounded: where two programs are in other orders in the queues of two devices, each device
    waits in the collective of one for the other device, whose queue is full before it comes to this program. One lock
    serves all devices: it is held for microseconds, and locks of each would be taken one by one at every launch.
    """

    def launch(buffers: Sequence[Buffer]) -> Any:
        if CURRENT_HOST_CALL.get() is not None:  # who holds the lock may wait for the program that calls the host
            return execute(buffers)
        with _LAUNCHING:
            return execute(buffers)

    return launch


def _result_handler(kind: Aval, where: BufferSharding, committed: bool) -> Any:
    if not committed:
        where = sharding(where._device, where._memory_kind, committed=False)
    if JAXLIB_VERSION.startswith("0.10."):
        return xc.array_result_handler(kind, where, committed, _skip_checks=True)
    return xc.array_result_handler(kind, where, committed)


def quick_options(text: str | bytes, devices: Sequence[Device]) -> dict[str, Any]:
    """The options with which XLA takes the least time for a program: without LLVM's optimisations, in one module.

    Where there is a choice, programs have the older emitter for CPUs, which goes through no MLIR, except those with
    4-bit floats, whose bits it cannot read, and those over several devices with complex numbers, on whose collectives
    XLA aborts with it.
    """
    options: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
    unfit = _FLOAT4 if len(devices) == 1 else _FLOAT4_OR_COMPLEX
    if JAXLIB_VERSION.startswith("0.10.") and not unfit.search(text if isinstance(text, bytes) else text.encode()):
        options["xla_cpu_use_fusion_emitters"] = False
    return options


_FLOAT4 = re.compile(rb"f4E2M1FN")
_FLOAT4_OR_COMPLEX = re.compile(rb"f4E2M1FN|complex<")


def compile(
    text: str | bytes,
    *,
    devices: Sequence[Device],
    results: Sequence[ResultType],
    options: Mapping[str, Any] | None = None,
    places: Places | None = None,
    calls: Sequence[Callable[..., Any]] = (),
) -> Executable:
    """Compile StableHLO text (or bytecode) for ``devices``, one partition on each.

    Args:
        results: shape and dtype of each output of ``@main``, which are not checked.
        calls: the host functions that the program calls by their index in this sequence; each maps NumPy arrays, which
            it may keep, to a tuple of arrays. The executable keeps the functions alive. XLA calls those of
            ``compiler_calls`` while it compiles the program.
        options: XLA's debug options by name, such as ``{"xla_cpu_enable_fast_math": True}``.
        places: the mesh of the devices, the sharding of each argument and of each result, where None lets XLA choose;
            without it all are on the first device.

    Raises: CompileError: the text does not parse or verify, an option is unknown, or XLA cannot compile it.
    """
    check_access()
    client = devices[0].client
    built = _compile_options(devices, options)
    _register_targets(text)
    COUNTS["compile"] += 1
    try:
        if calls:
            told = [i for i, call in enumerate(calls) if places and isinstance(call, Inspection)]
            asked = [(i, _Answers(calls[i], places[0])) for i in told]  # type: ignore[index]
            with _with_partitions(_with_inspections(str(text), asked), calls) as inspected:
                module = _with_host_calls(inspected, devices[0].platform)
                collect_garbage()
                kept = [_part_of_none if isinstance(call, UserPartitionCall) else call for call in calls]
                loaded = backend_compile_and_load(client, module, devices, built, kept)
            for error in [error for _, answers in asked for error in answers.errors]:
                raise type(error)(error.what) from error.__cause__  # of the line that compiles
        else:
            loaded = backend_compile_and_load(client, text, devices, built)
    except _jax.JaxRuntimeError as error:
        raise _compile_error(str(error), text) from error
    return Executable(loaded, devices, results, places, text)


def backend_compile_and_load(
    backend: Client, module: Any, executable_devices: Sequence[Device], options: Any, *host_calls: Any
) -> Any:
    """What XLA makes of a module. Every compilation calls this function by its name here, where a test may replace it.

    Under its name in JAX, chex replaces it to forbid compilation for some platforms.
    """
    return backend.compile_and_load(module, xc.DeviceList(tuple(executable_devices)), options, *host_calls)


def collect_garbage() -> None:
    """Release the host functions of executables that were deleted, which the runtime does at no other time."""
    _jax.collect_garbage()


def _register_targets(text: str | bytes) -> None:
    """Make known to XLA what the program calls by name on a CPU; the text alone says so, wherever it is from."""
    if b"lapack_" in text if isinstance(text, bytes) else "lapack_" in text:  # also as a string, in the generic form
        register_lapack()


def _with_host_calls(text: str, platform: str) -> Any:
    """The MLIR module of a text that calls the host: jaxlib accepts host functions with modules alone, not with text.
    """
    target = "xla_ffi_python_cpu_callback" if platform == "cpu" else "xla_ffi_python_gpu_callback"
    return mlir_modules.parsed(text.replace("@handlax_host_call(", f"@{target}("))


class _Answers:
    """What XLA calls with its sharding of a value, and what the user's function then raised."""

    def __init__(self, call: Any, meshes: Sequence[Mesh]):
        self.call = call
        self.meshes = meshes
        self.errors: list[HandlaxError] = []

    def __call__(self, tiles: Any) -> None:
        try:
            self.call(in_words_of_meshes(tiles, self.call.rank, self.meshes))
        except HandlaxError as error:
            self.errors.append(error)


def _with_inspections(text: str, asked: Sequence[tuple[int, _Answers]]) -> str:
    """The text with XLA's names of the functions that it calls while it compiles; they must live until it has."""
    for number, answers in asked:
        name = "".join([f"\\{byte:02X}" for byte in xc.encode_inspect_sharding_callback(answers)])
        text = text.replace(f'"handlax_inspection_{number}"', f'"{name}"')
    return text


_NUMBERS = count()


class _PartAnswers:
    """What answers XLA for one call, in any thread, and the errors that it raised: XLA passes on texts alone."""

    __slots__ = ("call", "context", "errors")

    def __init__(self, call: Any, context: Context, errors: list[BaseException]):
        self.call = call
        self.context = context
        self.errors = errors

    def __call__(self, operands: Sequence[Any], type: Any, result: Any) -> tuple[bytes, list[Any], Any]:
        try:
            return self.context.copy().run(self.part, operands, type, result)
        except BaseException as error:
            self.errors.append(error)
            raise

    def part(self, operands: Sequence[Any], type: Any, result: Any) -> tuple[bytes, list[Any], Any]:
        """XLA's answer: the module that each device executes, and the shardings of its operands and of its result."""
        body = self.call.op.bodies[0]
        results = result.tuple_elements() if type.is_tuple() else [result]
        takes, gives = [
            [self.named(s, len(storage(t)[0])) for s, t in zip(shardings, types)]
            for shardings, types in ((operands, body.in_types), (results, body.out_types))
        ]
        text, ins, outs = self.call(takes, gives)
        into, out = [
            [hlo_sharding(s, len(storage(t)[0])) for s, t in zip(shardings, types)]
            for shardings, types in ((ins, body.in_types), (outs, body.out_types))
        ]
        return text.encode(), into, xc.HloSharding.tuple_sharding(type, out) if type.is_tuple() else out[0]

    def named(self, tiles: Any, rank: int) -> NamedSharding:
        """XLA's sharding over the mesh; where it cuts along parts of axes, that of whole arrays."""
        mesh = self.call.mesh
        return NamedSharding(mesh, spec_over(mesh, tiles, rank) or PartitionSpec())


def _part_of_none() -> None:
    """What an executable keeps in the place of a partitioned call, of which XLA asks while it compiles alone."""


@contextmanager
def _with_partitions(text: str, calls: Sequence[Any]) -> Iterator[str]:
    """The text of a program that is compiled in this block, in which XLA finds who answers for its partitioned calls.

    In a text their numbers are places among its calls, so that equal programs have equal texts. Several may be compiled
    at once, and those that answer are found by numbers that are unique in the process.

    Raises: what an answer raised, in place of XLA's error.
    """
    errors: list[BaseException] = []
    context = copy_context()
    keys = []
    for i, call in enumerate(calls):
        if isinstance(call, UserPartitionCall):
            answer_xla()
            key = f"{PARTITIONED_CALL}#{next(_NUMBERS)}"
            text = text.replace(f'"{PARTITIONED_CALL}{i}"', f'"{key}"')
            keys.append(key.encode())
            ANSWERS[keys[-1]] = _PartAnswers(call, context, errors)
    try:
        yield text
    except _jax.JaxRuntimeError:
        if not errors:
            raise
        raise errors[0] from errors[0].__cause__
    finally:
        for name in keys:
            ANSWERS.pop(name, None)


def deserialize(
    blob: bytes,
    *,
    devices: Sequence[Device],
    results: Sequence[ResultType],
    options: Mapping[str, Any] | None = None,
    places: Places | None = None,
    text: str = "",
) -> Executable:
    """The program that ``Executable.serialize`` wrote.

        deserialize(e.serialize(), devices=e.devices, results=...).execute(xs) == e.execute(xs)

    ``text`` is that of the program, by which processes that launch it together know it.

    Raises: CompileError: the bytes are not those of a program of this version of XLA for this platform.
    """
    check_access()
    client = devices[0].client
    _register_targets(text)
    COUNTS["deserialize"] += 1
    try:
        loaded = client.deserialize_executable(blob, xc.DeviceList(tuple(devices)), _compile_options(devices, options))
    except _jax.JaxRuntimeError as error:
        raise CompileError(f"the bytes must be a serialized program of jaxlib {JAXLIB_VERSION}: {error}") from error
    return Executable(loaded, devices, results, places, text, blob)


def _compile_options(devices: Sequence[Device], options: Mapping[str, Any] | None) -> Any:
    built = xc.CompileOptions()
    built.num_replicas, built.num_partitions = 1, len(devices)
    ids = np.array([[device.id for device in devices]], np.int32)
    built.device_assignment = xc.DeviceAssignment.create(ids)
    build = built.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = len(devices) > 1
    overrides = dict(options or {})
    for name in ("optimization_level", "memory_fitting_level"):
        if name in overrides:
            setattr(build, name, _level(name, overrides.pop(name)))
    if overrides:
        built.env_option_overrides = list(overrides.items())
    return built


def _level(name: str, value: Any) -> int:
    """The value of an option that is a level. Raises CompileError: it is no integer of 32 bits."""
    try:
        return int(np.int32(int(value)))
    except (ValueError, OverflowError):
        raise CompileError(f"the compiler option {name} must be an integer of 32 bits, got {value!r}.") from None


_ERROR_SITE = re.compile(r"-:(\d+):(\d+): error: (.*)")
_NO_TARGET = re.compile(r"No (?:FFI handler registered for|registered implementation for .*custom call to) (\S+)")
_NO_REDUCTION = re.compile(r"Unsupported reduction computation: .*?-> (\w+)\[\].*?ROOT \S+ = \S+ (\w+)\(", re.DOTALL)
_NO_OPTION = re.compile(r"No such compile option: '(.*?)'")


def _compile_error(message: str, text: str | bytes) -> CompileError:
    option = _NO_OPTION.search(message)
    if option:
        return CompileError(f"compiler options must be XLA's, got {option[1]!r}", hint="see xla.proto for their names")
    target = _NO_TARGET.search(message)
    if target:
        hint = "hx.ffi.register_ffi_target(name, hx.ffi.pycapsule(library.function)), for this platform."
        return CompileError(f"a foreign function must be registered before it is called, got {target[1]!r}.", hint=hint)
    reduction = _NO_REDUCTION.search(message)
    if reduction:
        return CompileError(
            f"a reduction over several devices must be one that they have, got {reduction[2]} of {reduction[1]}.",
            hint="hx.reshard(x, spec) makes the dimension whole before.",
        )
    site = _ERROR_SITE.search(message)
    if site and isinstance(text, str):
        line = text.splitlines()[int(site[1]) - 1].strip()
        return CompileError(f"the program text must be StableHLO, got {site[3]} in line {site[1]}: {line}")
    return CompileError(f"XLA must be able to compile the program, got {message.strip()}")


def unoptimized_hlo(text: str) -> Any:
    """StableHLO as HLO, before any optimisation: an ``XlaComputation`` of jaxlib, as text by ``as_hlo_text()``."""
    return _jax.mlir.mlir_module_to_xla_computation(text)


def unoptimized_cost(text: str, device: Device) -> dict[str, float]:
    """XLA's estimate for a program before any optimisation."""
    module = unoptimized_hlo(text).get_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(device.client, module))


def cache_key_facts(devices: Sequence[Device], options: Mapping[str, Any] | None = None) -> bytes:
    """All but the program text on which a serialized program depends.

    Programs of equal facts and equal text are interchangeable. The facts: version of jaxlib, platform and its version,
    kind of device, the CPU's features, the environment that XLA reads, the compile options with the device numbers.
    """
    return _machine_facts(devices[0].client) + b"\0" + bytes(_compile_options(devices, options).SerializeAsString())


@cached("machine facts", 16)
def _machine_facts(client: Client) -> bytes:
    """What the executables of a client depend on: jaxlib, the platform, the machine, XLA's environment variables."""
    device = client.local_devices()[0]
    facts = [JAXLIB_VERSION, client.platform, client.platform_version, device.device_kind]
    if client.platform == "cpu":
        facts.append(str(xc.get_topology_for_devices([device]).fingerprint()))
        facts.append(_cpu_features())
    return "\0".join([*facts, *_environment()]).encode()


@per_process
def _environment() -> list[str]:
    """The environment variables that XLA reads, as they are at the first call: XLA reads them once."""
    read_by_xla = ("XLA_", "TF_XLA", "NCCL_", "LIBTPU_", "CUDA_", "NVIDIA_")
    return [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(read_by_xla)]


def _cpu_features() -> str:
    table = pathlib.Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    kinds = ("flags", "Features", "model name", "CPU part")
    return host_platform.machine() + "\n".join(sorted({line for line in lines if line.startswith(kinds)}))
