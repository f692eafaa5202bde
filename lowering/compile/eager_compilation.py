"""The choice between NumPy and XLA for eager operations, by one measured table.

The result does not depend on the choice, up to rounding and to subnormal numbers (which XLA on a CPU flushes to zero,
except for float16). The choice depends on the operation and its operand types alone.

On a CPU NumPy is faster almost everywhere: a call of XLA costs five microseconds, and NumPy's loops for 32 and 64 bits
are as fast. XLA is faster for 16-bit floats, for functions that NumPy lacks, for selections that the processor cannot
predict, for contractions that BLAS does not cover or shares among threads, and for roots and exponentials of so many
elements that several cores share them. On an accelerator every operation is compiled.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.caches import Cache, once
from ...effects.base.jax_settings import from_environment
from ...effects.base.stack import perform
from ...effects.core.arrays import ConcreteArray, concrete
from ...effects.core.columns import LOWER
from ...effects.core.operation import Operation
from ...effects.operations.foundations.half_precision import VECTORS
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType, on_type
from ...effects.types.dtypes import ExtendedDType
from ...interpreters.core import evaluate
from ...interpreters.core.record import record_apart
from ...interpreters.references.reference import discharge, references_in
from ..xla.array_backend import ON_PLACED, PLACED, default_device
from ..xla.lazy import runtime
from .compile import LoadedProgram, compile_program, fail
from .placement import Placement, by_settings, committed

# workload -> kind of dtype -> the size (``Operation.workload_size``) from which the compiled operation is faster,
# measured on x86-64 with two cores, AVX2 or AVX-512, NumPy 2.4 and 2.5; inf, or no entry: NumPy is faster at every
# size. Where one loop of NumPy is as fast as one of XLA, XLA gains by using several cores. A mask of 16-bit
# floats is computed where it is used.
# OpenBLAS, which NumPy uses, shares a product of matrices among threads from 524,288 multiplications, one of a matrix
# and a vector from 460,800, and these threads spin while they wait: beside other work on the same cores a product of
# 128 by 128 takes 20 milliseconds instead of 40 microseconds. XLA's threads sleep.
LIMITS: dict[str, dict[str, float]] = {
    "arithmetic": {"f16": 4_000, "bf16": 12_000, "float": inf, "int": inf},
    "division": {"f16": 4_000, "bf16": 8_000, "float": inf, "int": 16_000},
    "quotient": {"f16": 4_000, "bf16": 8_000, "float": 100_000, "int": 16_000},
    "selection": {"f16": 4_000, "bf16": 4_000, "float": 4_000, "complex": 4_000, "int": 4_000},
    "comparison": {"f16": 4_000, "bf16": 12_000, "float": 2_000_000, "int": inf},
    "extreme": {"f16": 4_000, "bf16": 12_000, "float": 3_000_000, "int": inf},
    "clipping": {"f16": 4_000, "bf16": 12_000, "float": 100_000, "int": inf},
    "rounding": {"f16": 4_000, "bf16": 12_000, "float": 12_000, "int": inf},
    "root": {"f16": 4_000, "bf16": 12_000, "float": 200_000, "int": inf},
    "exponential": {"f16": 2_000, "bf16": 20_000, "float": 600_000, "int": inf},
    "logarithm": {"f16": 2_000, "bf16": 20_000, "float": inf, "int": inf},
    "logistic": {"f16": 2_000, "bf16": 20_000, "float": 200_000, "int": inf},
    "rational": {"f16": 800, "bf16": 20_000, "float": 2_000_000, "int": inf},
    "circular": {"f16": 200_000, "bf16": inf, "float": inf, "int": inf},
    "hyperbolic": {"f16": 16_000, "bf16": inf, "float": inf, "int": inf},
    "inverse": {"f16": inf, "bf16": inf, "float": inf, "int": inf},
    "special": {"f16": 400, "bf16": 400, "float": 400, "int": inf},
    "sum": {"f16": 2_000, "bf16": 4_000, "float": 300_000, "complex": 300_000, "int": inf},
    "reduction": {"f16": 4_000, "bf16": 4_000, "float": inf, "int": inf},
    "contraction": {"f16": 16_000, "bf16": 16_000, "float": 460_000, "complex": 460_000, "int": 64_000},
    "stack of matrices": {"float": 8, "complex": 8},
    "fourier": {"float": 16_000, "complex": 16_000},
    "convolution": {"f16": 30_000, "bf16": 30_000, "float": 30_000, "complex": 30_000, "int": 100_000},
    "window": {"f16": 2_000, "bf16": 2_000, "float": 4_000, "complex": 4_000, "int": 4_000},
    "random": {"f16": 2_000, "bf16": 2_000, "float": 2_000, "int": 2_000},
}
if VECTORS:
    for _workload in ("exponential", "logarithm", "circular", "hyperbolic"):
        LIMITS[_workload]["f16"] = inf
    LIMITS["rational"]["f16"] = 100_000
# Workloads that take no longer than reading and writing their arrays: of several in one program, compiled as a whole,
# all but the first reading and the last writing are saved, from so many elements on.
MEMORY_BOUND = frozenset(
    {"arithmetic", "division", "extreme", "selection", "comparison", "clipping", "rounding", "root", "sum"}
)
MEMORY_BOUND_FROM = {"f16": 4_000, "bf16": 4_000, "float": 200_000, "complex": 200_000, "int": 200_000}
_KINDS = ("f16", "bf16", "float", "complex", "int")
# Counts of matrices are no numbers of elements: stacks are compiled where their arrays are heavy for another reason.
_SMALLEST = {
    kind: min([row.get(kind, inf) for workload, row in LIMITS.items() if workload != "stack of matrices"])
    for kind in _KINDS
}


def dtype_kind(dtype: Any) -> str:
    """The column of ``LIMITS`` for a dtype."""
    if not isinstance(dtype, np.dtype):
        return "int"
    if dtype == np.float16:
        return "f16"
    if dtype.kind == "V":
        return "bf16"
    return {"f": "float", "c": "complex"}.get(dtype.kind, "int")


def heavy(t: ArrayType) -> bool:
    """Whether some operation on an array of this type may be faster compiled; for random keys always."""
    if not isinstance(t.size, int):  # of a lane: no array has it
        return False
    return isinstance(t.dtype, ExtendedDType) or t.size >= _SMALLEST[dtype_kind(t.dtype)]


def compiled_is_faster(op: Operation, types: tuple[ArrayType, ...]) -> bool:
    """Whether the compiled operation is faster, by ``LIMITS``."""
    if op.workload is None or not types or not LOWER.has(type(op)):
        return False
    return op.workload_size(*types) >= LIMITS.get(op.workload, {}).get(dtype_kind(types[0].dtype), inf)


def memory_bound(op: Operation, largest: ArrayType) -> bool:
    """Whether the operation takes as long as its largest operand is read, so that it is worth joining with others."""
    return op.workload in MEMORY_BOUND and largest.size >= MEMORY_BOUND_FROM[dtype_kind(largest.dtype)]


def choose_program(program: Program) -> Any:
    """How to evaluate a program with large arrays, for ``evaluate.PROGRAM_CHOOSER``.

    It is compiled as a whole where each of its operations on large arrays is faster compiled, or is one of several that
    are bound by memory.
    """
    faster = bound = 0
    compilable = not any([isinstance(t.dtype, ExtendedDType) for t in program.value_types()])
    for op, args in zip(program.ops, program.args):
        types = tuple([program.type_of(n) for n in args])
        largest = max(types, key=lambda t: t.size, default=None)
        if compiled_is_faster(op, types) and op.workload != "comparison":  # a mask is computed where it is used
            faster += 1
        elif largest is not None and memory_bound(op, largest):
            bound += 1
        elif not (op.absorbed or all([not heavy(t) for t in types])):
            compilable = False
        compilable = compilable and LOWER.has(type(op))
    if compilable and (faster or bound > 1):
        return partial(_program_plan, program)
    return True if not faster else None


def _program_plan(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A program on the default device as a function of its operands."""
    compiled = _PLANS.get(
        (program, by_settings()), lambda: compile_program(program, program.name, keep_unused=True, placement=None)
    )
    execute = _on_default_device(compiled, program.name)
    return lambda *operands: execute(operands)


_CHOICES = Cache("eager_choice", 16384)
_PLANS = Cache("eager", 4096)
_UNKNOWN = object()


def choose(op: Operation, operands: tuple[ConcreteArray, ...], types: tuple[ArrayType, ...]) -> Any:
    """The results of an operation by its compiled program; None: NumPy is to evaluate it."""
    if PLACED or _accelerated():
        return _placed(op, operands)
    key = (op, types)
    plan = _CHOICES.entries.get(key, _UNKNOWN)
    if plan is _UNKNOWN:
        plan = _CHOICES.get(key, lambda: _plan(op, types) if compiled_is_faster(op, types) else None)
    return None if plan is None else plan(operands)


def _program(op: Operation, types: tuple[ArrayType, ...]) -> Any:
    """The program of one operation on operands of these types."""
    return record_apart(lambda *xs: (op.as_results(perform(op, *xs)), None), types, op.name)[0]


def _compiled(op: Operation, types: tuple[ArrayType, ...], placement: Placement | None) -> LoadedProgram:
    """The compiled program of one operation, on the default device or its own mesh where nothing is said."""
    return _PLANS.get(
        (op, types, placement or by_settings()),
        lambda: compile_program(_program(op, types), op.name, keep_unused=True, placement=placement),
    )


def _plan(op: Operation, types: tuple[ArrayType, ...]) -> Callable[[tuple[ConcreteArray, ...]], Any]:
    """An operation on the default device as a function of its operands."""
    execute = _on_default_device(_compiled(op, types, None), op.name)
    return execute if op.multiple_results else lambda operands: execute(operands)[0]


def _on_default_device(
    compiled: LoadedProgram, name: str
) -> Callable[[tuple[ConcreteArray, ...]], tuple[ConcreteArray, ...]]:
    """A compiled program as a function of its operands, which no error of the runtime leaves unexplained."""
    loaded = compiled.loaded
    execute, out_types = loaded.execute, loaded.types

    def call(operands: tuple[ConcreteArray, ...]) -> tuple[ConcreteArray, ...]:
        try:
            buffers = execute([x.buffer if x._buffer is None else x._buffer for x in operands])
        except (RuntimeError, ValueError) as error:
            fail(error, name, operands, _number, ())
        return tuple([concrete(t, None, b) for t, b in zip(out_types, buffers)])

    return call


def _number(i: int) -> str:
    """What errors call an operand."""
    return f"operand {i}"


def _placed(op: Operation, operands: tuple[ConcreteArray, ...]) -> Any:
    """The results of an operation on the devices to which its operands are committed, else on the default device."""
    if op.bodied:  # where it is not compiled as a whole, the operations of its bodies come here
        return None
    types = tuple([x.type for x in operands])
    where = committed([x._buffer for x in operands], op.name)
    if where is None and not hasattr(op, "mesh") and config.current().mesh is None:
        device = default_device()
        if device.platform == "cpu" and device == runtime.backend("cpu").default_device:
            return _plan(op, types)(operands) if compiled_is_faster(op, types) else None
    if not LOWER.has(type(op)):
        return None
    compiled = _compiled(op, types, where)
    return _executed(op, compiled, operands, where is not None)


def evaluate_compiled(op: Operation, operands: tuple[ConcreteArray, ...]) -> Any:
    """The results of a higher-order operation by its compiled program, on the devices of its operands."""
    refs = references_in(op.effects)
    if refs:
        return discharge(op, operands, refs)  # type: ignore[arg-type]
    types = tuple([x.type for x in operands])
    where = committed([x.buffer for x in operands], op.name) if PLACED else None
    return _executed(op, _compiled(op, types, where), operands, where is not None)


def _executed(op: Operation, compiled: LoadedProgram, operands: tuple[ConcreteArray, ...], committed: bool) -> Any:
    try:
        return op.from_results(compiled.execute(compiled.moved([x.buffer for x in operands]), committed))
    except (RuntimeError, ValueError) as error:
        fail(error, op.name, operands, _number, ())


def _may_be_accelerated() -> bool:
    """Whether this process may have an accelerator, by the environment and the file system alone."""
    named = from_environment("platforms")[1]
    if named:
        return not named.startswith("cpu")
    return os.environ.get("CUDA_VISIBLE_DEVICES", "all") not in ("", "-1") and any(
        pathlib.Path("/dev").glob("nvidia[0-9]*")
    )


@once
def _accelerated() -> bool:
    """Whether the default device is an accelerator."""
    return _may_be_accelerated() and default_device().platform != "cpu"


def _notice(t: ArrayType) -> None:
    """Add a new type to the heavy ones if it is one."""
    if heavy(t):
        evaluate.HEAVY.add(t)


def install() -> None:
    """Register this module with the base interpretation; called once, when the package is imported."""
    evaluate.CHOOSER = choose
    evaluate.PROGRAM_CHOOSER = choose_program
    evaluate.EXECUTE_BODIED = evaluate_compiled
    on_type(_notice)
    ON_PLACED.append(evaluate.choose_every_time)
    if _may_be_accelerated():
        evaluate.choose_every_time()
