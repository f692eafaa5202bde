"""Ahead-of-time compilation: the stages of a jitted function as values.

    f.trace(*args).lower().compile()(*args) == f(*args)

``Traced`` has the program, ``Lowered`` its StableHLO, ``Compiled`` the executable. Arguments may be arrays, numbers or
``ShapeDtypeStruct``: only their types matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from ...effects.base.config import current as settings
from ...effects.base.errors import BadArgument, DTypeMismatch, HandlaxError, TreeMismatch, need_function
from ...effects.base.lazy_module import LazyModule
from ...effects.base.stack import BASE, current
from ...effects.base.tracebacks import boundary
from ...effects.base.wrapping import wraps
from ...effects.core.arrays import Array, as_array
from ...effects.core.signatures import P
from ...effects.functions.captured import jit_info
from ...effects.operations.foundations.shapes import zeros
from ...effects.programs.higher_order import Call as CallOp
from ...effects.programs.program import Program
from ...effects.sharding.layout import Format, row_major
from ...effects.sharding.mesh import MeshAxes
from ...effects.sharding.named_sharding import SingleDeviceSharding
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...interpreters.core import trace_cache
from ...interpreters.core.static_arguments import ArgumentChoice, argument_names, split
from ...interpreters.core.trace_cache import Trace, leaf_names
from ...interpreters.custom.rule_free_programs import without_rules
from ...interpreters.transformations.make_program import ShapeDtypeStruct
from ..arrays import transfer_guards
from ..arrays.call_shardings import described_placement, shardings_of, with_argument_cuts, with_result_cuts
from ..compile.compile import LoweredProgram, closed_at, compile_program, lower
from ..compile.placement import ANYWHERE, Placement, assigned
from ..xla.array_backend import default_device
from ..xla.lazy import runtime
from .call_signature import CompiledTrace, DispatchPlan, concrete_operand
from .compile_options import checked_options
from .dispatch import Jitted, module_name

if TYPE_CHECKING:
    from concurrent import futures

    from ..xla import mlir_modules
else:
    futures = LazyModule("concurrent.futures")
    mlir_modules = LazyModule("handlax.lowering.xla.mlir_modules")


class ArgInfo(NamedTuple):
    """Type and donation of one leaf of the arguments."""

    type: ArrayType
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype


def abstract(x: Any) -> Any:
    """The ``ShapeDtypeStruct`` of a value that has a shape and a dtype and is no array; other values as they are."""
    described = hasattr(x, "shape") and hasattr(x, "dtype")
    if not described or isinstance(x, (Array, ShapeDtypeStruct)) or hasattr(type(x), "__array__"):
        return x
    return ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))


def described(t: ArrayType, sharding: Any = None) -> ShapeDtypeStruct:
    """An array type as a ``ShapeDtypeStruct``, with the sharding that is asked for it."""
    return ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak, sharding=sharding)


def _public(where: Any) -> Any:
    """The package's sharding of one of the runtime's."""
    return getattr(where, "named", None) or SingleDeviceSharding(where._device, memory_kind=where._memory_kind)


def _formats(types: Sequence[ArrayType], places: Sequence[Any]) -> list[Any]:
    """The formats of arrays of these types that lie so in the runtime's words; None where nothing is said."""
    return [
        None if where is None else Format(runtime.layout_of(where) or row_major(t.ndim), _public(where))
        for t, where in zip(types, places)
    ]


class TracedCall(NamedTuple):
    """A jitted function traced on arguments of certain types; ``donated``: the indices of their donated leaves."""

    jitted: Jitted
    in_tree: Any
    types: tuple[ArrayType, ...]
    donated: tuple[int, ...]
    trace: Trace
    placement: Placement | None

    @property
    def marks(self) -> Sequence[bool]:
        """For each leaf of the arguments whether it is donated; empty if none is."""
        return [i in self.donated for i in range(len(self.types))] if self.donated else ()


class _Stage:
    """A stage: structure and types of arguments and results."""

    def __init__(self, call: TracedCall):
        self._call = call
        self.in_tree = call.in_tree
        self.out_tree = call.trace.out_tree

    @property
    def fun_name(self) -> str:
        return self._call.jitted.name

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as ``(args, kwargs)``."""
        return self.in_tree.unflatten(list(self._call.types))

    @property
    def out_avals(self) -> Any:
        """The types of the results."""
        return self.out_tree.unflatten(list(self._call.trace.recorded.out_types))

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their tree."""
        jitted, types = self._call.jitted, self._call.trace.recorded.out_types
        shardings = jitted.shardings.of_results(jitted.name, self.out_tree, types)
        return self.out_tree.unflatten([described(t, t.cut if s is None else s) for t, s in zip(types, shardings)])

    @property
    def args_info(self) -> Any:
        """Type and donation of every argument, as ``(args, kwargs)``."""
        return self.in_tree.unflatten([ArgInfo(t, i in self._call.donated) for i, t in enumerate(self._call.types)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The indices of the donated leaves of the arguments."""
        return self._call.donated


class Traced(_Stage):
    """A function traced on arguments of certain types."""

    @property
    def program(self) -> Program:
        """The program: leaves of the arguments to leaves of the results."""
        return self._call.trace.recorded

    @property
    def jaxpr(self) -> Program:
        return self.program

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The program in StableHLO.

        Raises: UnhandledEffect: an effect without a lowering. MissingRule: an operation without a lowering.
        """
        lowered = self.lowered_program()
        return Lowered(self._call, lowered.module.text, lowered.placement.mesh)

    @property
    def placement(self) -> Placement | None:
        """Where the arguments and ``jit`` say that it is executed; None: they say nothing."""
        return self._call.placement

    def lowered_program(self) -> LoweredProgram:
        """The program in StableHLO, as it is compiled."""
        call, jitted, name = self._call, self._call.jitted, module_name(self.fun_name)
        closed, captured, placement = closed_at(self.program, name, call.placement)
        donated = [*[False] * len(captured), *call.marks] if call.donated else ()
        return lower(closed, name, donated, jitted.keep_unused, placement, jitted.options)


class Lowered(_Stage):
    """A function in StableHLO."""

    def __init__(self, call: TracedCall, text: str, mesh: MeshAxes | None):
        super().__init__(call)
        self._text = text
        self._mesh = mesh

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module: dialect ``stablehlo`` (the default), or ``hlo`` before XLA's optimisations."""
        if dialect in (None, "stablehlo"):
            return self._text
        if dialect == "hlo":
            return str(runtime.unoptimized_hlo(self._text).as_hlo_text())
        raise BadArgument(f"as_text: the dialect must be 'stablehlo' or 'hlo', got {dialect!r}.")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as jaxlib has it: dialect ``stablehlo`` (the default), an ``ir.Module`` of MLIR in a context of
        its own; ``hlo``, an ``XlaComputation``.

        >>> from handlax import jit
        >>> jit(lambda x: x + 1).lower(1.0).compiler_ir("hlo").as_hlo_text().splitlines()[0][:19]
        'HloModule jit__lamb'
        """
        if dialect in (None, "stablehlo"):
            return mlir_modules.parsed(self._text)
        if dialect == "hlo":
            return runtime.unoptimized_hlo(self._text)
        raise BadArgument(f"compiler_ir: the dialect must be 'stablehlo' or 'hlo', got {dialect!r}.")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate before optimisation: "flops", "bytes accessed", ..."""
        return dict(runtime.unoptimized_cost(self._text, default_device()))

    def compile(
        self, compiler_options: Mapping[str, Any] | None = None, *, device_assignment: Sequence[Any] | None = None
    ) -> Compiled:
        """The compiled function; over an abstract mesh for the devices of ``device_assignment``, in the order of the
        mesh.

        Raises: CompileError: XLA cannot compile it, or an option is unknown. BadArgument: the options are no mapping
        from names to numbers and strings, or have ``split_repeats``, by which ``jit`` has lowered the function already.
        DeviceMismatch: there are no devices, another number than the mesh has, or others than the function names.
        """
        if "split_repeats" in (compiler_options or {}):
            raise BadArgument(
                "compile: the options must be XLA's, got split_repeats.",
                hint="give it to jit: it decides what is lowered.",
            )
        call, jitted = self._call, self._call.jitted
        options = {**(jitted.options or {}), **(checked_options("compile", compiler_options) or {})}
        if device_assignment is not None:
            call = call._replace(
                placement=assigned("compile", call.placement or ANYWHERE, self._mesh, device_assignment))
        binary = compile_program(
            call.trace.recorded, module_name(jitted.name), call.marks,
            keep_unused=jitted.keep_unused, placement=call.placement, options=options, function=jitted.label(),
        )
        return Compiled(call, binary, options)


class Compiled(_Stage):
    """A compiled function: it takes arguments of the types that it was compiled for, without the static ones."""

    def __init__(self, call: TracedCall, binary: Any, options: Mapping[str, Any]):
        super().__init__(call)
        self._options = options
        self._binary = binary
        self._entry = CompiledTrace(call.trace, binary, DispatchPlan(call.trace, binary))

    def as_text(self) -> str:
        """The program after XLA's optimisations, as HLO text."""
        return str(self._binary.loaded.executable.hlo_text())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: "flops", "bytes accessed", ..."""
        return dict(self._binary.loaded.executable.cost_analysis())

    def memory_analysis(self) -> Any:
        """XLA's plan: ``argument_size_in_bytes``, ``output_size_in_bytes``, ``temp_size_in_bytes``, ..."""
        return self._binary.loaded.executable.memory_analysis()

    @property
    def input_shardings(self) -> Any:
        """Where the program takes each argument from, as ``(args, kwargs)``; None for one that it does not use."""
        return self.in_tree.unflatten([None if where is None else _public(where) for where in self._binary.places])

    @property
    def output_shardings(self) -> Any:
        """How each result is cut over devices."""
        return self.out_tree.unflatten([*map(_public, self._output_places())])

    @property
    def input_formats(self) -> Any:
        """The layout and the sharding of each argument, as ``(args, kwargs)``; None for one that it does not use."""
        return self.in_tree.unflatten(_formats(self._call.trace.recorded.in_types, self._binary.places))

    @property
    def output_formats(self) -> Any:
        """The layout and the sharding of each result."""
        return self.out_tree.unflatten(_formats(self._call.trace.recorded.out_types, self._output_places()))

    def _output_places(self) -> Sequence[Any]:
        """The runtime's shardings of the results."""
        places: Sequence[Any] = self._binary.loaded.executable.shardings
        return places[: len(self._call.trace.recorded.out_types)]

    def runtime_executable(self) -> Any:
        """The executable as jaxlib represents it: its ``LoadedExecutable``."""
        return self._binary.loaded.executable.loaded

    def stored(self) -> StoredExecutable:
        """What ``loaded`` makes the same compiled function of, in another process on such a machine."""
        call, jitted, loaded = self._call, self._call.jitted, self._binary.loaded
        return StoredExecutable(
            jitted.name, without_rules(call.trace.recorded), call.types, tuple(call.marks), jitted.keep_unused,
            call.placement, self._options, loaded.text, loaded.executable.serialize(),
        )

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function.

        Raises: TreeMismatch: the arguments have another structure. DTypeMismatch: an argument has another type.
        """
        jitted, trace = self._call.jitted, self._call.trace
        leaves, tree = pytrees.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeMismatch(
                f"{self.fun_name}: the compiled function takes arguments of structure {self.in_tree}, got {tree}.",
                hint="leave out the static arguments; compile again for other structures.",
            )
        operands = [x if isinstance(x, Array) else as_array(x) for x in leaves]
        names = lambda i: leaf_names(argument_names(jitted.fun), self.in_tree)[i]
        self._check(operands, names)
        if current() is not BASE:
            results = current().answer(CallOp((trace.program,), self.fun_name), (*trace.captured, *operands))
            return trace.unflatten(results)
        guarded = settings().guarded
        if guarded:
            transfer_guards.check_call(self.fun_name, leaves, names)
        inputs = [concrete_operand(x) for x in operands]
        buffers = [x.buffer for x in inputs]
        if guarded:
            transfer_guards.check_moves(self.fun_name, buffers, self._binary.places, names)
        return trace.unflatten(jitted.execute(self._entry, inputs, buffers, False, names))

    def _check(self, operands: Sequence[Array], names: Callable[[int], str]) -> None:
        """Raises: DTypeMismatch: an argument has another type than that for which the function was compiled."""
        for i, (x, t) in enumerate(zip(operands, self._call.types)):
            if x.type is not t and (x.type.shape, x.type.dtype) != (t.shape, t.dtype):
                raise DTypeMismatch(
                    f"{self.fun_name}: argument {names(i)} must be {t}, for which the function was compiled, got "
                    f"{x.type}.",
                    hint="convert it, or compile again for this type.",
                )


class StoredExecutable(NamedTuple):
    """A compiled function as values that can be pickled: its program, how it was compiled, and XLA's executable."""

    name: str
    program: Program
    types: tuple[ArrayType, ...]
    donated: tuple[bool, ...]
    keep_unused: bool
    placement: Placement | None
    options: Mapping[str, Any]
    text: str
    executable: bytes


def loaded(stored: StoredExecutable, in_tree: Any, out_tree: Any, load: Callable[..., Any]) -> Compiled:
    """The compiled function; ``load`` gives its executable, as ``compile_program`` takes it."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return out_tree.unflatten(stored.program(*pytrees.leaves((args, kwargs))))

    function.__name__ = stored.name
    jitted = Jitted(function, ArgumentChoice(), ArgumentChoice(), stored.keep_unused, None, False, stored.options)
    args, kwargs = in_tree.unflatten(map(described, stored.types))
    donated = tuple([i for i, yes in enumerate(stored.donated) if yes])
    call = traced_call(jitted, args, kwargs)._replace(donated=donated, placement=stored.placement)
    binary = compile_program(
        stored.program, module_name(stored.name), stored.donated,
        keep_unused=stored.keep_unused, placement=stored.placement, options=stored.options, load=load,
        function=jitted.label(),
    )
    return Compiled(call, binary, stored.options)


@boundary
def compile_all(lowered: Iterable[Lowered], compiler_options: Mapping[str, Any] | None = None) -> list[Compiled]:
    """Several functions compiled at once, in threads.

        compile_all(stages) == [stage.compile() for stage in stages]

    XLA compiles without Python's lock: as many at a time as there are processors. Later calls of the jitted functions
    on arguments of these types find their programs compiled.

    Args:
        lowered: the stages, ``f.lower(*args)``.
        compiler_options: as for ``Lowered.compile``, for all of them.

    Raises: BadArgument: they are no stages, ``Lowered``. What the first stage that fails raises, when all have ended.

    An interrupt drops the stages that are not being compiled yet.

    >>> from handlax import jit, lax
    >>> sine, cosine = compile_all([jit(f).lower(ShapeDtypeStruct((), "float32")) for f in (lax.sin, lax.cos)])
    >>> float(sine(0.0)), float(cosine(0.0))
    (0.0, 1.0)
    """
    if not isinstance(lowered, Iterable):
        raise BadArgument(f"compile_all: a list of stages is needed, got {lowered!r}.", hint="compile_all([lowered]).")
    stages = list(lowered)
    for stage in stages:
        if not isinstance(stage, Lowered):
            raise BadArgument(f"compile_all: every stage must be lowered, got {stage!r}.", hint="jit(f).lower(*args).")
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiling = [pool.submit(copy_context().run, stage.compile, compiler_options) for stage in stages]
        try:
            futures.wait(compiling)
        except BaseException:  # an interrupt: those that have not begun never do
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [_compiled(f"stage {i}, {stage.fun_name}", each) for i, (stage, each) in enumerate(zip(stages, compiling))]


def _compiled(shown: str, compiling: futures.Future[Compiled]) -> Compiled:
    """The result of a thread; an error there is raised here with the name of its stage and the caller's line."""
    try:
        return compiling.result()
    except HandlaxError as error:
        raise type(error)(f"compile_all: {shown}: {error.what}", hint=error.hint) from None


_R = TypeVar("_R", covariant=True)


@runtime_checkable
class Wrapped(Protocol[P, _R]):
    """What ``jit`` returns: a function that is traced, lowered and compiled when it is called, or step by step.

    >>> from handlax import jit
    >>> isinstance(jit(abs), Wrapped), isinstance(abs, Wrapped)
    (True, False)
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> _R:
        """The results for these arguments."""

    def __get__(self, instance: Any, owner: Any = None) -> Wrapped[..., _R]:
        """The function as a method."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function traced for arguments of these types."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function in StableHLO for arguments of these types."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results."""

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""


def traced_call(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any], label: str = "jit") -> TracedCall:
    """Trace a jitted function on arguments of which only the types matter; ``label`` traces, for messages."""
    partition = split(jitted.fun, jitted.static, args, kwargs) if jitted.static else None
    args, kwargs = pytrees.map(abstract, (args, kwargs) if partition is None else (partition.args, partition.kwargs))
    request, leaves = trace_cache.trace_request(jitted.fun, jitted.name, partition, args, kwargs, label)
    request = with_argument_cuts(request, jitted.shardings.of_arguments(args, kwargs))
    donated = jitted.donated_leaves(args, kwargs, partition) if jitted.donate else ()
    found = trace_cache.trace(request, jitted.traces)
    found = with_result_cuts(found, jitted.shardings.of_results(jitted.name, found.out_tree, found.recorded.out_types))
    names = lambda i: trace_cache.leaf_name(jitted.fun, i, partition, request.tree)
    placement = jitted.placement(args, kwargs, leaves, described_placement(leaves, jitted.name, names), names)
    if jitted.sharded:
        placement = jitted.shardings.with_layouts(placement, args, request.types, shardings_of(leaves), names)
    placement = jitted.shardings.with_results(jitted.name, placement, found.out_tree, found.recorded.out_types)
    return TracedCall(jitted, request.tree, request.types, donated, found, placement)


def trace(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any], label: str = "jit") -> Traced:
    """The stage of ``traced_call``."""
    return Traced(traced_call(jitted, args, kwargs, label))


@boundary
def eval_shape(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, without computing it; a ``ShapeDtypeStruct`` is a result too.

        eval_shape(f, x).shape == f(x).shape

    >>> eval_shape(lambda x: x + 1, ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    need_function("eval_shape", fun)
    known = jit_info(fun)

    @wraps(fun)
    def typed(*args: Any, **kwargs: Any) -> Any:
        return pytrees.map(
            lambda y: zeros(y.type) if isinstance(y, ShapeDtypeStruct) else y, fun(*args, **kwargs)
        )

    jitted = known if known is not None else Jitted(typed, ArgumentChoice(), ArgumentChoice(), False, None, False, None)
    return trace(jitted, args, kwargs, "eval_shape").out_info
