"""Eager operations that NumPy is slow at run compiled: which ones, from which size, in one measured table.

    what an operation gives does not depend on who computes it, up to rounding (and to subnormal numbers, which are zero
    to XLA on a CPU, but for those of float16); for one operation and its types it is always the same one

On a CPU NumPy wins almost everywhere: a call of XLA costs five microseconds, and NumPy's loops for 32 and 64 bits are
as fast. It loses on 16-bit floats, on functions that it has not, on choices that the processor cannot predict, on
contractions that BLAS does not cover, and on roots and exponentials of so many elements that several cores divide them.
On an accelerator everything runs compiled.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from ..effects.arrays import ConcreteArray, concrete
from ..effects.caches import Cache
from ..effects.columns import LOWER
from ..effects.conversion import convert
from ..effects.dtypes import ExtendedDType, float32
from ..effects.elementwise import Elementwise
from ..effects.operations import Operation
from ..effects.precise import HALF, VECTORS
from ..effects.stack import BASE, inside, perform
from ..effects.types import ArrayType, on_type
from ..interpreters import evaluate
from ..interpreters.record import Record
from .backend import ON_PLACED, PLACED, common_device, default_device
from .compile import Compiled, compile_program
from .lazy import runtime

# family -> kind of dtype -> elements (for contractions: multiplications) from which the compiled operation is faster,
# measured on x86-64 with two cores, AVX2 or AVX-512, NumPy 2.4 and 2.5; inf, or no entry: NumPy is faster at every
# size. Where NumPy's loops are as fast as XLA's, XLA has as many of them as there are cores. Comparisons go with the
# choices that they are made for: their result lies where it is used.
LIMITS: dict[str, dict[str, float]] = {
    "arithmetic": {"f16": 4_000, "bf16": 12_000, "float": inf, "int": inf},
    "division": {"f16": 4_000, "bf16": 8_000, "float": inf, "int": 16_000},
    "selection": {"f16": 4_000, "bf16": 4_000, "float": 4_000, "complex": 4_000, "int": 4_000},
    "comparison": {"f16": 4_000, "bf16": 12_000, "float": 600_000, "int": inf},
    "clipping": {"f16": 4_000, "bf16": 12_000, "float": 100_000, "int": inf},
    "rounding": {"f16": 4_000, "bf16": 12_000, "float": 12_000, "int": inf},
    "root": {"f16": 4_000, "bf16": 12_000, "float": 200_000, "int": inf},
    "exponential": {"f16": 2_000, "bf16": 20_000, "float": 600_000, "int": inf},
    "logarithm": {"f16": 2_000, "bf16": 20_000, "float": inf, "int": inf},
    "logistic": {"f16": 2_000, "bf16": 20_000, "float": 200_000, "int": inf},
    "rational": {"f16": 800, "bf16": 20_000, "float": 600_000, "int": inf},
    "circular": {"f16": 200_000, "bf16": inf, "float": inf, "int": inf},
    "hyperbolic": {"f16": 16_000, "bf16": inf, "float": inf, "int": inf},
    "inverse": {"f16": inf, "bf16": inf, "float": inf, "int": inf},
    "special": {"f16": 400, "bf16": 400, "float": 400, "int": inf},
    "sum": {"f16": 2_000, "bf16": 4_000, "float": 300_000, "complex": 300_000, "int": inf},
    "reduction": {"f16": 4_000, "bf16": 4_000, "float": inf, "int": inf},
    "contraction": {"f16": 16_000, "bf16": 16_000, "float": inf, "int": 64_000},
    "convolution": {"f16": 1_000, "bf16": 1_000, "float": 1_000, "complex": 1_000, "int": 1_000},
    "random": {"f16": 2_000, "bf16": 2_000, "float": 2_000, "int": 2_000},
}
if VECTORS:
    for _family in ("exponential", "logarithm", "circular", "hyperbolic"):
        LIMITS[_family]["f16"] = inf
    LIMITS["rational"]["f16"] = 100_000
_KINDS = ("f16", "bf16", "float", "complex", "int")
_SMALLEST = {kind: min([row.get(kind, inf) for row in LIMITS.values()]) for kind in _KINDS}

_FAMILIES = {
    "comparison": ("eq", "ne", "lt", "le", "gt", "ge"),
    "clipping": ("clamp", "sign"),
    "rounding": ("round",),
    "root": ("sqrt", "rsqrt"),
    "exponential": ("exp", "exp2"),
    "logistic": ("logistic",),
    "logarithm": ("expm1", "log", "log1p", "pow", "cbrt"),
    "rational": ("tanh",),
    "selection": ("select_n",),
    "circular": ("sin", "cos"),
    "hyperbolic": ("atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    "inverse": ("tan", "asin", "acos", "atan2"),
    "special": (
        "erf", "erfc", "erf_inv", "lgamma", "digamma", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad",
        "bessel_i0e", "bessel_i1e", "regularized_incomplete_beta", "zeta", "polygamma",
    ),
    "division": ("div", "rem"),
    "contraction": ("dot_general",),
    "convolution": ("conv_general_dilated", "reduce_window", "reduce_window_sum", "reduce_window_max",
                    "reduce_window_min", "select_and_scatter_add", "select_and_gather_add"),
    "random": ("random_bits", "threefry2x32"),
    "sum": ("reduce_sum",),
    "reduction": ("reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "cumsum", "cumprod",
                  "cummax", "cummin", "cumlogsumexp", "sort", "top_k"),
}  # fmt: skip
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names}


def family(kind: type[Operation]) -> str | None:
    """The row of the table for operations of this kind; None for those that only move elements."""
    found = _FAMILY.get(kind.name)
    if found is None and issubclass(kind, Elementwise):
        return "arithmetic"
    return found


def dtype_kind(dtype: Any) -> str:
    """The column of the table."""
    if not isinstance(dtype, np.dtype):
        return "int"
    if dtype == np.float16:
        return "f16"
    if dtype.kind == "V":
        return "bf16"
    return {"f": "float", "c": "complex"}.get(dtype.kind, "int")


def heavy(t: ArrayType) -> bool:
    """Whether an operation on such an array may be worth compiling at all; one key may lead to many bits."""
    return isinstance(t.dtype, ExtendedDType) or t.size >= _SMALLEST[dtype_kind(t.dtype)]


def work(op: Operation, types: tuple[ArrayType, ...]) -> float:
    """What the table counts: elements, those of the result for random bits; multiplications of a contraction."""
    if op.name == "random_bits":
        return op.result_type(*types).size
    largest = max([t.size for t in types], default=0)
    if op.name != "dot_general":
        return largest
    made = op.result_type(*types)
    (contracted, _), _ = op.dimension_numbers  # type: ignore[attr-defined]
    return made.size * prod([types[0].shape[d] for d in contracted])


def compiled_is_faster(op: Operation, types: tuple[ArrayType, ...]) -> bool:
    """Whether the table says so."""
    row = family(type(op))
    if row is None or not types or not LOWER.has(type(op)):
        return False
    return work(op, types) >= LIMITS[row].get(dtype_kind(types[0].dtype), inf)


_CHOICES = Cache("eager_choice", 16384)
_PLANS = Cache("eager", 4096)
_UNKNOWN = object()


def choose(op: Operation, operands: tuple[ConcreteArray, ...], types: tuple[ArrayType, ...]) -> Any:
    """Answer an operation with a compiled program, or None where NumPy shall."""
    if PLACED or _accelerated():
        return _placed(op, operands)
    key = (op, types)
    plan = _CHOICES.entries.get(key, _UNKNOWN)
    if plan is _UNKNOWN:
        plan = _CHOICES.get(key, lambda: _plan(op, types) if compiled_is_faster(op, types) else None)
    return None if plan is None else plan(operands)


def _program(op: Operation, types: tuple[ArrayType, ...]) -> Any:
    run = Record(BASE, "")
    with inside(run):
        y = _rounded_once(op, [run.input(t) for t in types])
    return run.freeze(y if op.multiple else (y,), op.name)


def _rounded_once(op: Operation, operands: list[Any]) -> Any:
    """Sums and products of 16-bit floats are made in 32 bits, as NumPy's are; their lowering rounds on the way."""
    kind = operands[0].type if operands else None
    if kind is None or kind.dtype not in HALF or op.name not in ("reduce_sum", "reduce_prod"):
        return perform(op, *operands)
    return convert(perform(op, convert(operands[0], float32, kind.weak)), kind.dtype, kind.weak)


def _compiled(op: Operation, types: tuple[ArrayType, ...], device: Any) -> Compiled:
    return _PLANS.get(
        (op, types, device), lambda: compile_program(_program(op, types), op.name, keep_unused=True, device=device)
    )


def _plan(op: Operation, types: tuple[ArrayType, ...]) -> Callable[[tuple[ConcreteArray, ...]], Any]:
    compiled = _compiled(op, types, default_device())
    loaded = compiled.loaded
    run, handlers, made = loaded.run, loaded.handlers, loaded.types

    def plan(operands: tuple[ConcreteArray, ...]) -> Any:
        buffers = run([x.buffer if x._buffer is None else x._buffer for x in operands]).consume_with_handlers(handlers)
        if not op.multiple:
            return concrete(made[0], None, buffers[0])
        return tuple([concrete(t, None, b) for t, b in zip(made, buffers)])

    return plan


def _placed(op: Operation, operands: tuple[ConcreteArray, ...]) -> Any:
    """Where arrays lie on devices by name, an operation runs where its operands lie."""
    known = [x._buffer for x in operands if x._buffer is not None]
    device = common_device(known, op.name) if known else None
    if device is None:
        device = default_device()
        if device.platform == "cpu" and device == runtime.backend("cpu").default_device:
            types = tuple([x.type for x in operands])
            return _plan(op, types)(operands) if compiled_is_faster(op, types) else None
        committed = False
    else:
        committed = True
    if not LOWER.has(type(op)):
        return None
    compiled = _compiled(op, tuple([x.type for x in operands]), device)
    made = compiled.on([runtime.copy_to_device(x.buffer, device) for x in operands], committed)
    return made if op.multiple else made[0]


def run_whole(op: Operation, operands: tuple[ConcreteArray, ...]) -> Any:
    """Answer a higher-order operation: it runs as one program, where its operands lie."""
    types = tuple([x.type for x in operands])
    buffers = [x.buffer for x in operands]
    device = common_device(buffers, op.name) if PLACED else None
    compiled = _compiled(op, types, device or default_device())
    if PLACED:
        buffers = [runtime.copy_to_device(b, compiled.loaded.device) for b in buffers]
    made = compiled.on(buffers, device is not None)
    return made if op.multiple else made[0]


def _may_be_accelerated() -> bool:
    """Whether this process may have an accelerator; asks the environment and the file system alone."""
    named = os.environ.get("HANDLAX_PLATFORMS", "")
    if named:
        return not named.startswith("cpu")
    return os.environ.get("CUDA_VISIBLE_DEVICES", "all") not in ("", "-1") and any(
        pathlib.Path("/dev").glob("nvidia[0-9]*")
    )


_ACCELERATED: list[bool] = []


def _accelerated() -> bool:
    if not _ACCELERATED:
        _ACCELERATED.append(_may_be_accelerated() and default_device().platform != "cpu")
    return _ACCELERATED[0]


def _notice(t: ArrayType) -> None:
    if heavy(t):
        evaluate.HEAVY.add(t)


def install() -> None:
    """Let the base interpretation ask this module; called once by the package."""
    evaluate.CHOOSER = choose
    evaluate.WHOLE = run_whole
    on_type(_notice)
    ON_PLACED.append(evaluate.ask_always)
    if _may_be_accelerated():
        evaluate.ask_always()
