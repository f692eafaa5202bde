"""LAPACK routines: how an operation is lowered to one, and evaluated by SciPy's function for it.

A routine is declared once, beside the blocks that call it, and called where they are lowered:

    GETRF = Routine("getrf", cuda="cusolver_getrf_ffi")

    def lower(op, emit, x):
        lu, pivots, info = GETRF(emit, x, types=(x.type, pivots_type, info_type(x)), into={0: 0})
        return *or_nan(emit, info, [lu], singular=True), pivots

The lowering is a custom call by XLA's foreign function interface: on a CPU to jaxlib's LAPACK, on a GPU to the target
``cuda``, usually of cuSOLVER; on a platform without the routine it raises. Matrices are the operands and results of the
highest rank; they are passed in column-major layout, all leading dimensions at once.
LAPACK is not called with empty matrices: results are empty then, or zeros.
For each matrix ``info`` says whether the routine failed; its factors then become NaN.

``evaluate`` rules call SciPy's function of the same routine for each matrix, ``GETRF.on_host(x.dtype)``, which is the
code that jaxlib calls on a CPU: eager and compiled factors are equal to the last bit.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...base.caches import cached, per_process
from ...base.errors import MissingRule
from ...base.lazy_module import late_module
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import int32, is_complex
from ..foundations.foreign_call import ForeignCall
from ..manipulation.last_axes import EachMatrix
from .matrices import LAPACK

_NONE: Mapping[Any, Any] = MappingProxyType({})
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


class Routine(NamedTuple):
    """A LAPACK routine: its name without the prefix for the dtype, and its equivalents.

    ``of_complex``: its name for complex dtypes, if different. ``cuda``: the target of the call on a GPU.
    """

    name: str
    of_complex: str = ""
    cuda: str = ""

    def named(self, dtype: Any) -> str:
        """LAPACK's name of the routine for matrices of this dtype."""
        return _PREFIX[dtype.char] + (self.of_complex if self.of_complex and is_complex(dtype) else self.name)

    def on_host(self, dtype: Any, *sizes: Any) -> Callable[..., Any]:
        """SciPy's function for the routine, on one matrix of this dtype.

        ``sizes``: the arguments of LAPACK's workspace query; without them the workspace has SciPy's default size.
        """
        return _on_host(self.named(dtype), *sizes)

    def __call__(
        self,
        emit: Any,
        *operands: Any,
        types: Sequence[ArrayType],
        into: Mapping[int, int] = _NONE,
        attributes: Mapping[str, Any] = _NONE,
        cuda: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Emit a call, and return its results, which have these types; zeros where an operand is empty.

        ``into[i]``: the result that aliases operand ``i``. ``attributes``: letters, booleans, or NumPy scalars, whose
        dtypes count; ``cuda``: the attributes on a GPU, if different.
        Raises: MissingRule: the platform has no such routine.
        """
        if any([not x.type.size for x in operands]):
            return [emit.full(0, t) for t in types]
        if emit.platform == "cpu":
            target = f"lapack_{self.named(operands[0].type.dtype)}_ffi"
        elif emit.platform == "cuda" and self.cuda:
            target, attributes = self.cuda, attributes if cuda is None else cuda
        else:
            raise MissingRule(
                f"lower: LAPACK's {self.name} has no counterpart on the platform {emit.platform!r}.",
                hint="compute it on the host: jit(f, device=devices('cpu')[0]).",
            )
        rank = max([len(x.type.shape) for x in operands])
        taken, given = [[_column_major(t, rank) for t in side] for side in ([x.type for x in operands], types)]
        named = {word: np.uint8(ord(x)) if isinstance(x, str) else x for word, x in attributes.items()}
        return emit.foreign_call(ForeignCall(target, types, named, taken, given, into, max(rank - 2, 0)), operands)


def _column_major(t: ArrayType, rank: int) -> tuple[int, ...] | None:
    """The order of the dimensions of a matrix, one of this rank, in the memory of LAPACK; None: row-major, no matrix.
    """
    return (*range(rank - 2), rank - 1, rank - 2) if len(t.shape) == rank >= 2 else None


class Implementation(enum.Enum):
    """The base class of enumerations of algorithms for one factorisation, with JAX's names."""

    __repr__ = enum.Enum.__str__


class Factorisation(EachMatrix):
    """An operation with several results, such as the factors of matrices, by LAPACK."""

    __slots__ = ()
    multiple_results = True
    dtypes = LAPACK

    def types_for(op, x: np.ndarray[Any, Any]) -> tuple[ArrayType, ...]:
        """The types of the results for a NumPy array."""
        types: tuple[ArrayType, ...] = op.result_type(array_type(x.shape, x.dtype))
        return types


def no_implementation(name: str, word: str, asked: Any, platform: str) -> MissingRule:
    """The error that the platform lacks the algorithm ``asked``, parameter ``word`` of the function ``name``."""
    return MissingRule(
        f"{name}: there is no {asked} on the platform {platform!r}.",
        hint=f"without {word}= the platform's own is taken.",
    )


def info_type(x: Any) -> ArrayType:
    """The type of ``info``, one number for each matrix: 0 for success, negative for an invalid argument, positive for
    failure.
    """
    return array_type(x.type.shape[:-2], int32)


def or_nan(emit: Any, info: Any, factors: Iterable[Any], singular: bool = False) -> tuple[Any, ...]:
    """The factors of the matrices for which ``info`` is 0, NaN for the others.

    ``singular``: a positive ``info`` is no failure, as for routines that also factor singular matrices.
    """
    ok = emit.compare("GE" if singular else "EQ", info, emit.full(0, info.type))
    lanes = range(len(info.type.shape))
    return tuple([
        emit.select(emit.broadcast_in_dim(ok, x.type.shape, lanes), x, emit.full(np.nan, x.type)) for x in factors
    ])


@cached("LAPACK functions with their workspace")
def _on_host(name: str, *sizes: Any) -> Callable[..., Any]:
    """SciPy's function of LAPACK or BLAS with this name; with ``sizes`` its workspace is that of operands of them."""
    lapack, blas = _libraries()
    function: Callable[..., Any] = getattr(lapack, name, None) or getattr(blas, name)
    if not sizes:
        return function
    *workspaces, _ = getattr(lapack, f"{name}_lwork")(*sizes)
    return partial(function, **{word: int(size.real) for word, size in zip(("lwork", "liwork", "lrwork"), workspaces)})


@per_process
def _libraries() -> tuple[Any, Any]:
    """SciPy's modules of LAPACK's and of BLAS's routines."""
    return late_module("scipy.linalg.lapack"), late_module("scipy.linalg.blas")


def each_matrix(function: Callable[..., Any], results: Sequence[ArrayType], *operands: Any) -> tuple[Any, ...]:
    """``function`` applied for each index of the operands' leading dimensions; results of these types.

    It is not called for empty matrices, where the first result, and so all others, are empty.
    """
    if not results[0].size:
        return tuple([np.empty(t.shape, t.dtype) for t in results])
    lanes = results[0].shape[: max([x.ndim for x in operands]) - 2]
    if not lanes:
        return tuple([np.asarray(y, t.dtype) for y, t in zip(function(*operands), results)])
    ys = tuple([np.empty(t.shape, t.dtype) for t in results])
    for i in np.ndindex(lanes):
        for y, part in zip(ys, function(*[x[i] for x in operands])):
            y[i] = part
    return ys


def each_or_nan(
    function: Callable[..., Any], results: Sequence[ArrayType], *operands: Any, iterative: bool = False
) -> tuple[Any, ...]:
    """``each_matrix`` of a function whose last result is ``info``: where it is not 0, the other results are NaN.

    ``iterative``: also for matrices with NaN or infinities, for which the iteration may not end.
    """

    def checked(*matrices: Any) -> Any:
        if not iterative or np.isfinite(matrices[0]).all():
            *ys, info = function(*matrices)
            if not info:
                return ys
        return [np.full(t.shape[lanes:], np.nan, t.dtype) for t in results]

    lanes = max([x.ndim for x in operands]) - 2
    return each_matrix(checked, results, *operands)
