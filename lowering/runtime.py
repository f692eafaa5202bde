"""XLA's runtime: buffers in and out, compiled programs, pytrees in C++.

This file and ``platforms.py`` hold every call to jaxlib's runtime; they know NumPy dtypes, shapes, program texts and
buffers, and nothing of the arrays and programs above. jaxlib's C++ imports jax behind one's back wherever it has to
invent the type of a buffer. Here every buffer is given its type (``aval``) by us, and the few calls where that cannot
be done stand under ``_without_jax``.
"""

import ctypes
import functools
import importlib
import os
import pathlib
import platform as host_platform
import re
import sys
import threading
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ..effects.errors import CompileError, DeletedArray, DTypeMismatch
from .platforms import COUNTS, Client, Device, backend
from .platforms import Backend as Backend
from .platforms import register_lapack as register_lapack
from .platforms import set_cpu_device_count as set_cpu_device_count

# After platforms, which sets XLA's log level.
import jaxlib.version  # isort: skip
from jaxlib import _jax  # isort: skip
from jaxlib import xla_client as xc  # isort: skip

Buffer: TypeAlias = Any
"""jaxlib's ``ArrayImpl``. Never hand one to a user: jax, once imported, takes it for its own."""
Sharding: TypeAlias = Any
TreeDef: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
ResultType: TypeAlias = tuple[Sequence[int], Any]

JAXLIB_VERSION: str = jaxlib.version.__version__
RuntimeFailure: type[RuntimeError] = _jax.JaxRuntimeError
"""What running a program or reading a buffer raises; ``CompileError`` is its translation at compile time only."""


# The type of a buffer, and where it lies


class Aval:
    """What jaxlib asks of the type of a buffer: ``shape``, ``dtype``, ``weak_type``. Made by ``aval`` alone."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape: Shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.weak_type = False

    def __repr__(self) -> str:
        return f"Aval({self.shape}, {self.dtype})"


_avals: dict[tuple[Shape, np.dtype[Any]], Aval] = {}


def aval(shape: Sequence[int], dtype: Any) -> Aval:
    """The one ``Aval`` of a shape and a dtype.

        aval(s, d) is aval(s, d)

    Raises: DTypeMismatch: no device holds such elements (strings, objects, dates, long double).

    >>> aval((2, 3), "float32")
    Aval((2, 3), float32)
    """
    key = (tuple(shape), np.dtype(dtype))
    found = _avals.get(key)
    return _make_aval(*key) if found is None else found


_EXTENDED = frozenset(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)  # fmt: skip
_PACKED = frozenset(dtype for dtype in _EXTENDED if dtype.name in ("int2", "int4", "uint2", "uint4", "float4_e2m1fn"))
_NATIVE = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")


def _make_aval(shape: Shape, dtype: np.dtype[Any]) -> Aval:
    # XLA would read the bytes of the other byte order as they stand, so only the native order gets an aval.
    native = dtype.newbyteorder("=")
    if native not in _NATIVE and native not in _EXTENDED:
        raise DTypeMismatch(f"a device holds booleans and numbers, got dtype {dtype}", hint="convert with astype")
    return _avals.setdefault((shape, native), Aval(shape, native))


class _OneDevice(xc.SingleDeviceSharding):
    """A sharding whose properties are its class's own.

    jaxlib 0.10 reads them from Python, where jax would have set them on the base class; on that base they would also
    hide whatever an instance holds, once jax is imported. Those read per transfer are C functions.
    """

    memory_kind = property(attrgetter("_memory_kind"))
    is_fully_replicated = True
    is_fully_addressable = True
    num_devices = 1
    device_set = property(lambda self: {self._device})
    _device_assignment = property(lambda self: (self._device,))
    _to_xla_hlo_sharding: Any = defaultdict(xc.HloSharding.replicate).__getitem__


# 0.12 transfers 15 % faster when the class is exactly its own.
_SINGLE: type[Any] = _OneDevice if JAXLIB_VERSION.startswith("0.10.") else xc.SingleDeviceSharding


@functools.cache
def sharding(device: Device) -> Sharding:
    """The one sharding that puts all of a buffer on ``device``."""
    return _SINGLE(device, memory_kind=device.default_memory().kind)


# Transfer in


_COPY = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = xc.HostBufferSemantics.ZERO_COPY
_device_put: Callable[..., Buffer] = xc.batched_device_put


@functools.cache
def putter(device: Device, *, copy: bool = True, committed: bool = True) -> Callable[[Any], Buffer]:
    """``put`` for one device, every look-up done: what a call with NumPy arguments uses.

    putter(device, copy=c)(x) == put(x, device, copy=c)

    ``committed`` is a mark on the buffer, for others to read: that the device was asked for by name.
    """
    devices, place, avals, numpy_array = [device], sharding(device), _avals, np.ndarray
    semantics = _COPY if copy else _ALIAS

    def put_here(array: Any) -> Buffer:
        if type(array) is numpy_array:
            kind = avals.get((array.shape, array.dtype))
            if kind is not None:
                # The last argument keeps 64-bit types; without it jaxlib reads a switch that only jax sets.
                return _device_put(kind, place, [array], devices, committed, False, semantics, True)
        array = np.asarray(array)
        kind = aval(array.shape, array.dtype)
        if array.dtype is not kind.dtype:
            array = array.astype(kind.dtype, copy=False)
        return _device_put(kind, place, [array], devices, committed, False, semantics, True)

    return put_here


def put(array: Any, device: Device, *, copy: bool = True) -> Buffer:
    """The elements of a NumPy array or scalar, on ``device``.

        to_numpy(put(x, device)) == x

    With ``copy`` a later change of ``array`` is never seen. Without it the buffer may be the array's own memory (it is,
    on a CPU, for contiguous arrays aligned to 64 bytes): for arrays that nobody writes any more.

    Raises: DTypeMismatch: no device holds such elements.
    """
    return putter(device, copy=copy)(array)


def copy_to_device(buffer: Buffer, device: Device) -> Buffer:
    """The same elements on ``device``; the buffer itself where it lies there already."""
    if device_of(buffer) == device:
        return buffer
    kind = buffer.aval
    if device.client is not device_of(buffer).client:
        return put(to_numpy(buffer, kind.dtype, kind.shape), device, copy=False)
    return _device_put(kind, sharding(device), [buffer], [device], True, False, _ALIAS, True)


# Transfer out


def to_numpy(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The elements of a buffer as a read-only array, after waiting for them.

    On a CPU it is the buffer's own memory, which lives as long as the array; from a GPU it is a copy.

    Raises: DeletedArray: it was deleted or donated. RuntimeFailure: the program that makes it failed.
    """
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:  # not a dtype of NumPy, or not in the memory of the host, or deleted
        return _to_numpy_by_copy(buffer, dtype, shape)


def _to_numpy_by_copy(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    if buffer.is_deleted():
        raise DeletedArray("an array must be read before it is deleted or donated.", hint="copy it before.")
    buffer.block_until_ready()
    if hasattr(buffer, "_to_np_array_did_copy"):  # since 0.12
        array = buffer._to_np_array_did_copy()[0]
    elif dtype not in _PACKED and device_of(buffer).platform == "cpu":
        array = _view_memory(buffer, dtype, shape)
    else:
        with _without_jax():
            array = buffer._single_device_array_to_np_array_did_copy()[0]
    array = array.view()
    array.flags.writeable = False
    return array


def _view_memory(buffer: Buffer, dtype: np.dtype[Any], shape: Shape) -> np.ndarray[Any, Any]:
    size = buffer.on_device_size_in_bytes()
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(pointer(buffer))
    memory.keep = buffer  # the array's base chain now holds the buffer
    return np.frombuffer(memory, dtype=dtype).reshape(shape)


def pointer(buffer: Buffer) -> int:
    """The address of the first element; for looking at, since the buffer may be freed or donated."""
    with _without_jax():
        return int(buffer.unsafe_buffer_pointer())


def block_until_ready(buffer: Buffer) -> None:
    """Wait until the elements are there; raises what the program raised."""
    buffer.block_until_ready()


def all_until_ready(buffers: list[Buffer]) -> None:
    """``block_until_ready`` of each: one call, which asks all before it waits for any."""
    xc.batched_block_until_ready(buffers)


def device_of(buffer: Buffer) -> Device:
    """The device of a single-device buffer."""
    return buffer._sharding._device


def is_deleted(buffer: Buffer) -> bool:
    """Whether the buffer was deleted, or donated to a program."""
    return bool(buffer.is_deleted())


def delete(buffer: Buffer) -> None:
    """Free the elements now; NumPy views of them stay valid."""
    buffer.delete()


def memory_stats(device: Device) -> dict[str, int] | None:
    """Bytes in use, at the peak and in all, of a device; None where it does not count them, as on a CPU."""
    return device.memory_stats()


# Compiled programs


class Executable:
    """A loaded program: buffers in, buffers out, all on its devices.

    ``run`` is jaxlib's own method: ``run(buffers).consume_with_handlers(handlers(wrap))`` is the floor of a call.
    The types of the arguments are not checked by XLA, only their sizes in bytes: the caller's key must ensure them.
    """

    __slots__ = ("_shardings", "devices", "execute", "loaded", "results", "run")

    def __init__(self, loaded: Any, devices: Sequence[Device], results: Sequence[ResultType], shardings: Any = None):
        self.loaded = loaded
        self.devices = tuple(devices)
        self.results = tuple(aval(shape, dtype) for shape, dtype in results)
        self._shardings = (sharding(self.devices[0]),) * len(self.results) if shardings is None else tuple(shardings)
        self.run: Callable[..., Any] = loaded.execute_sharded
        self.execute: Callable[[Sequence[Buffer]], list[Buffer]] = self.bind()

    def handlers(self, wrap: Callable[[Buffer], Any] | None = None, committed: bool = True) -> list[Any]:
        """One result handler per output; with ``wrap`` it gives ``wrap(buffer)`` in place of the buffer."""
        pairs = zip(self.results, self._shardings, strict=True)
        made = [_result_handler(kind, place, committed) for kind, place in pairs]
        return made if wrap is None else [handler.wrap(wrap) for handler in made]

    def bind(self, wrap: Callable[[Buffer], Any] | None = None) -> Callable[[Sequence[Buffer]], list[Any]]:
        """The call as a function of the list of argument buffers.

            bind(w)(buffers) == [w(b) for b in execute(buffers)]

        It returns before the results are computed. Raises: RuntimeFailure: an argument is deleted, on another device,
        of another size, or missing.
        """
        run, handlers = self.run, self.handlers(wrap)

        def call(buffers: Sequence[Buffer]) -> list[Any]:
            return run(buffers).consume_with_handlers(handlers)

        return call

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: "flops", "bytes accessed", "transcendentals", ..."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """XLA's plan, in attributes ``argument_size_in_bytes``, ``output_``, ``temp_``, ``alias_``, ..."""
        return self.loaded.get_compiled_memory_stats()

    def hlo_text(self) -> str:
        """The program as XLA left it."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def serialize(self) -> bytes:
        """Bytes for ``deserialize``, good on machines for which ``cache_key_facts`` are the same."""
        return bytes(self.loaded.serialize())


def _result_handler(kind: Aval, place: Sharding, committed: bool) -> Any:
    if JAXLIB_VERSION.startswith("0.10."):
        return xc.array_result_handler(kind, place, committed, _skip_checks=True)
    return xc.array_result_handler(kind, place, committed)


def compile(
    text: str | bytes,
    *,
    devices: Sequence[Device],
    results: Sequence[ResultType],
    options: Mapping[str, Any] | None = None,
    shardings: Sequence[Sharding] | None = None,
    calls: Sequence[Callable[..., tuple[Any, ...]]] = (),
) -> Executable:
    """Compile StableHLO text (or bytecode) for ``devices``, one partition on each.

    Args:
        results: shape and dtype of each output of ``@main``; they are trusted.
        calls: what the program calls on the host, ``index`` by ``index``: from NumPy arrays, which are its own, to a
            tuple of them. The executable keeps them alive.
        options: XLA's debug options by name, such as ``{"xla_cpu_enable_fast_math": True}``.
        shardings: of each output; without it all lie on the first device.

    Raises: CompileError: the text does not parse or verify, an option is unknown, or XLA cannot compile it.
    """
    client = devices[0].client
    built = _compile_options(devices, options)
    COUNTS["compile"] += 1
    try:
        if calls:
            module = _with_host_calls(str(text), devices[0].platform)
            _jax.collect_garbage()  # what deleted executables called is let go of here, and nowhere else
            loaded = client.compile_and_load(module, xc.DeviceList(tuple(devices)), built, list(calls))
        else:
            loaded = client.compile_and_load(text, xc.DeviceList(tuple(devices)), built)
    except _jax.JaxRuntimeError as error:
        raise _compile_error(str(error), text) from error
    return Executable(loaded, devices, results, shardings)


def _with_host_calls(text: str, platform: str) -> Any:
    """The module of a text that calls the host: only for modules does jaxlib take functions to call.

    A context of its own for each: no two threads meet in one.
    """
    target = "xla_ffi_python_cpu_callback" if platform == "cpu" else "xla_ffi_python_gpu_callback"
    context = _mlir().Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(_dialects())
    context.load_all_available_dialects()
    for name in ("chlo", "stablehlo"):
        importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    return _mlir().Module.parse(text.replace("@handlax_host_call(", f"@{target}("), context)


def _mlir() -> Any:
    return importlib.import_module("jaxlib.mlir.ir")


@functools.cache
def _dialects() -> Any:
    """MLIR's Python side, a quarter of a second to load, which nothing else needs."""
    registry = _mlir().DialectRegistry()
    importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    return registry


def deserialize(
    blob: bytes,
    *,
    devices: Sequence[Device],
    results: Sequence[ResultType],
    options: Mapping[str, Any] | None = None,
    shardings: Sequence[Sharding] | None = None,
) -> Executable:
    """The program that ``Executable.serialize`` wrote.

    deserialize(e.serialize(), devices=e.devices, results=...).execute(xs) == e.execute(xs)

    Raises: CompileError: the bytes are not those of a program of this version of XLA for this platform.
    """
    client = devices[0].client
    COUNTS["deserialize"] += 1
    try:
        loaded = client.deserialize_executable(blob, xc.DeviceList(tuple(devices)), _compile_options(devices, options))
    except _jax.JaxRuntimeError as error:
        raise CompileError(f"the bytes must be a serialized program of jaxlib {JAXLIB_VERSION}: {error}") from error
    return Executable(loaded, devices, results, shardings)


def _compile_options(devices: Sequence[Device], options: Mapping[str, Any] | None) -> Any:
    built = xc.CompileOptions()
    built.num_replicas, built.num_partitions = 1, len(devices)
    ids = np.array([[device.id for device in devices]], np.int32)
    built.device_assignment = xc.DeviceAssignment.create(ids)
    build = built.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = len(devices) > 1
    if options:
        built.env_option_overrides = list(options.items())
    return built


_PLACE = re.compile(r"-:(\d+):(\d+): error: (.*)")
_NO_OPTION = re.compile(r"No such compile option: '(.*?)'")


def _compile_error(message: str, text: str | bytes) -> CompileError:
    option = _NO_OPTION.search(message)
    if option:
        return CompileError(f"compiler options must be XLA's, got {option[1]!r}", hint="see xla.proto for their names")
    place = _PLACE.search(message)
    if place and isinstance(text, str):
        line = text.splitlines()[int(place[1]) - 1].strip()
        return CompileError(f"the program text must be StableHLO, got {place[3]} in line {place[1]}: {line}")
    return CompileError(f"XLA must be able to compile the program, got {message.strip()}")


def unoptimized_hlo(text: str) -> str:
    """StableHLO as HLO, before any optimisation."""
    return str(_jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text())


def unoptimized_cost(text: str, device: Device) -> dict[str, float]:
    """XLA's estimate for a program before any optimisation."""
    module = _jax.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(device.client, module))


def cache_key_facts(devices: Sequence[Device], options: Mapping[str, Any] | None = None) -> bytes:
    """All but the program text on which a serialized program depends.

    Equal facts and equal texts make interchangeable programs. In it: version of jaxlib, platform and its version,
    kind of device, the CPU's features, the environment that XLA reads, and the compile options with the device numbers.
    """
    return _machine_facts(devices[0].client) + b"\0" + bytes(_compile_options(devices, options).SerializeAsString())


@functools.cache
def _machine_facts(client: Client) -> bytes:
    device = client.local_devices()[0]
    facts = [JAXLIB_VERSION, client.platform, client.platform_version, device.device_kind]
    if client.platform == "cpu":
        facts.append(str(xc.get_topology_for_devices([device]).fingerprint()))
        facts.append(_cpu_features())
    read_by_xla = ("XLA_", "TF_XLA", "NCCL_", "LIBTPU_", "CUDA_", "NVIDIA_")
    facts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(read_by_xla)]
    return "\0".join(facts).encode()


def _cpu_features() -> str:
    table = pathlib.Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    kinds = ("flags", "Features", "model name", "CPU part")
    return host_platform.machine() + "\n".join(sorted({line for line in lines if line.startswith(kinds)}))


# DLPack


_DLPACK_CPU, _DLPACK_CUDA = 1, 2


def to_dlpack(buffer: Buffer, *, stream: int | None = None) -> Any:
    """A DLPack capsule of the buffer's own memory.

    Raises: RuntimeFailure: DLPack has no name for the dtype (the 4-bit integers).
    """
    return _jax.buffer_to_dlpack_managed_tensor(buffer, stream=stream)


def dlpack_device(buffer: Buffer) -> tuple[int, int]:
    """The pair that ``__dlpack_device__`` returns: the kind of device and its number."""
    device = device_of(buffer)
    return (_DLPACK_CPU, 0) if device.platform == "cpu" else (_DLPACK_CUDA, device.local_hardware_id)


def from_dlpack(array: Any, device: Device) -> Buffer:
    """A buffer on ``device`` of the elements of anything with ``__dlpack__``; of its very memory where that can be.

    On a CPU memory is shared if aligned to 64 bytes; then a later change of ``array`` is seen.

    Raises: RuntimeFailure: a dtype or a layout that XLA lacks. BufferError: the exporter refuses.
    """
    kind, ordinal = array.__dlpack_device__()
    on_gpu = kind == _DLPACK_CUDA
    if not on_gpu:
        try:
            return put(np.from_dlpack(array), device, copy=False)
        except (BufferError, RuntimeError):  # bfloat16 and its like are unknown to NumPy, not to XLA
            pass
    owner = device.client if (device.platform != "cpu") is on_gpu else backend("cuda" if on_gpu else "cpu").client
    source = owner.device_from_local_hardware_id(ordinal) if on_gpu else owner.local_devices()[0]
    # On the legacy stream, 1 in DLPack, our reads come after the exporter's writes.
    stream = 1 if on_gpu else None
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    with _without_jax():
        found = _jax.dlpack_managed_tensor_to_buffer(capsule, source, stream)
    typed = found._rewrap_with_aval_and_sharding(aval(found.aval.shape, found.aval.dtype), sharding(source))
    return copy_to_device(typed, device)


# jaxlib's hidden import of jax


def _shaped_array(shape: Shape, dtype: Any, weak_type: bool = False, *rest: Any, **more: Any) -> Any:
    """What jaxlib calls for ever in place of ``jax.core.ShapedArray``: jax's own class once there is one."""
    core = sys.modules.get("jax._src.core")
    real = getattr(core, "ShapedArray", None)
    return Aval(shape, dtype) if real is None else real(shape, dtype, weak_type, *rest, **more)


_import_lock = threading.Lock()


@functools.cache
def _plant_shaped_array() -> None:
    """Let jaxlib's one-time look-up of ``jax.core`` find ``_shaped_array``.

    A look-up that fails is remembered as None for the life of the process, and would break a jax imported later.
    """
    package, core = types.ModuleType("jax"), types.ModuleType("jax.core")
    core.ShapedArray = _shaped_array  # type: ignore[attr-defined]
    package.core = core  # type: ignore[attr-defined]
    package.__path__ = []
    # A shape that nobody else has: its aval stays in jaxlib's own cache.
    capsule = np.zeros((1,) * 7, np.int8).__dlpack__()
    sys.modules.update({"jax": package, "jax.core": core})
    try:
        _jax.dlpack_managed_tensor_to_buffer(capsule, xc.make_cpu_client(num_devices=1).devices()[0], None)
    finally:
        for name in ("jax", "jax.core"):
            sys.modules.pop(name, None)


@contextmanager
def _without_jax() -> Iterator[None]:
    """Where jaxlib must invent the type of a buffer: keep it from importing jax, unless jax is there already."""
    with _import_lock:
        if "jax" in sys.modules:
            yield
            return
        # This second module is looked up at every call; None in sys.modules makes the import fail at once.
        sys.modules["jax._src.sharding_impls"] = None  # type: ignore[assignment]
        try:
            _plant_shaped_array()
            yield
        finally:
            sys.modules.pop("jax._src.sharding_impls", None)


# Pytrees in C++


def _registry() -> Any:
    trees = _jax.pytree.PyTreeRegistry(
        enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
    )
    # A TreeDef is pickled with the name of its registry.
    trees.__name__, trees.__module__ = "TREES", __name__
    trees.register_node(
        OrderedDict,
        lambda tree: (tuple(tree.values()), tuple(tree)),
        lambda keys, leaves: OrderedDict(zip(keys, leaves, strict=True)),
    )
    trees.register_node(
        defaultdict,
        lambda tree: (tuple(tree.values()), (tree.default_factory, tuple(tree))),
        lambda aux, leaves: defaultdict(aux[0], zip(aux[1], leaves, strict=True)),
    )
    return trees


TREES = _registry()
"""Our own registry: None is a tree without leaves; tuples, lists, dicts and their kin are nodes."""

flatten: Callable[..., tuple[list[Any], TreeDef]] = TREES.flatten
"""``leaves, treedef = flatten(tree, is_leaf=None)``, and ``treedef.unflatten(leaves) == tree``."""
flatten_with_path: Callable[..., tuple[list[tuple[tuple[Any, ...], Any]], TreeDef]] = TREES.flatten_with_path
register_node: Callable[..., None] = TREES.register_node
"""``register_node(cls, to_iter, from_iter, to_iter_with_keys=None)``: ``to_iter(x) = (children, aux)``, and back
``from_iter(aux, children)``."""
register_dataclass: Callable[..., None] = TREES.register_dataclass_node
"""``register_dataclass(cls, data_fields, meta_fields)``."""
