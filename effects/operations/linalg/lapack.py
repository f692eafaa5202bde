"""LAPACK: how a block lowers to a routine of it, and how it is evaluated by SciPy's.

A routine is declared once, beside the blocks that call it, and called where they are lowered:

    GETRF = Routine("getrf", cuda="cusolver_getrf_ffi")

    def lower(op, emit, x):
        lu, pivots, info = GETRF(emit, x, types=(x.type, pivots_type, info_type(x)), into={0: 0})
        return or_nan(emit, at_least_zero(info), lu), pivots

The call is one of XLA's foreign function interface, on a CPU to the LAPACK that jaxlib carries, on a GPU to cuSOLVER or
what else ``cuda`` names; a platform without the routine is refused when the program is lowered. Matrices are the
operands and results of the highest rank: they are handed over column after column, all leading dimensions at once.
An empty matrix is for the block to answer, which knows what its factors are: LAPACK is not called with it.
Where the routine fails, ``info`` says so for each matrix, and its factors become NaN: ``or_nan``.

``evaluate`` cells call NumPy, whose ``linalg`` takes stacks, or one of SciPy's functions for each matrix:
``each_matrix(scipy_lapack("getrf", x.dtype), x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...base.caches import once
from ...base.errors import MissingRule
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import int32, is_complex

_NONE: Mapping[Any, Any] = MappingProxyType({})
_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


class Routine(NamedTuple):
    """A routine of LAPACK: its name without the letter of the dtype, and what stands for it elsewhere.

    ``of_complex``: its name for complex numbers, where that is another one. ``cuda``: the target of the call on a GPU.
    """

    name: str
    of_complex: str = ""
    cuda: str = ""

    def __call__(
        self,
        emit: Any,
        *operands: Any,
        types: Sequence[ArrayType],
        into: Mapping[int, int] = _NONE,
        attributes: Mapping[str, Any] = _NONE,
        cuda: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Emit a call; gives its results, of these types.

        ``into[i]``: the result that takes the memory of operand ``i``. ``attributes``: letters, booleans, or NumPy
        scalars, whose dtypes count; ``cuda``: those on a GPU, where they are others.
        Raises: MissingRule: the platform has no such routine.
        """
        if emit.platform == "cpu":
            dtype = operands[0].type.dtype
            name = self.of_complex if self.of_complex and is_complex(dtype) else self.name
            target = f"lapack_{_PREFIX[dtype.char]}{name}_ffi"
        elif emit.platform == "cuda" and self.cuda:
            target, attributes = self.cuda, attributes if cuda is None else cuda
        else:
            raise MissingRule(
                f"lower: LAPACK's {self.name} has no counterpart on the platform {emit.platform!r}.",
                hint="compute it on the host: jit(f, device=devices('cpu')[0]).",
            )
        return emit.foreign_call(target, operands, types, into, attributes)


def info_type(x: Any) -> ArrayType:
    """The type of ``info``: a number for each matrix, 0 where all went well, negative for an argument in error."""
    return array_type(x.type.shape[:-2], int32)


def succeeded(emit: Any, info: Any, comparison: str = "EQ") -> Any:
    """Where ``info`` is 0, or with "GE" not negative: some routines count what is singular, and give factors too."""
    return emit.compare(comparison, info, emit.full(0, info.type))


def or_nan(emit: Any, ok: Any, x: Any) -> Any:
    """``x`` for the matrices that are ``ok``, NaN for the others."""
    lanes = range(len(ok.type.shape))
    return emit.select(emit.broadcast_in_dim(ok, x.type.shape, lanes), x, emit.full(np.nan, x.type))


@once
def _libraries() -> tuple[Any, Any]:
    return import_module("scipy.linalg.lapack"), import_module("scipy.linalg.blas")


def scipy_lapack(name: str, dtype: Any, of_complex: str = "") -> Callable[..., Any]:
    """SciPy's function for a routine of LAPACK, or of BLAS, on matrices of this dtype."""
    name = of_complex if of_complex and is_complex(dtype) else name
    name = _PREFIX[dtype.char] + name
    lapack, blas = _libraries()
    return getattr(lapack, name, None) or getattr(blas, name)


def each_matrix(function: Callable[..., Any], results: Sequence[ArrayType], *operands: Any) -> tuple[Any, ...]:
    """The results, of these types, of ``function`` for each index of the leading dimensions of the operands."""
    lanes = results[0].shape[: operands[0].ndim - 2]
    if not lanes:
        return tuple([np.asarray(y, t.dtype) for y, t in zip(function(*operands), results)])
    ys = tuple([np.empty(t.shape, t.dtype) for t in results])
    for i in np.ndindex(lanes):
        for y, part in zip(ys, function(*[x[i] for x in operands])):
            y[i] = part
    return ys


def each_or_nan(
    function: Callable[..., Any], results: Sequence[ArrayType], x: Any, stacked: bool = True
) -> tuple[Any, ...]:
    """The results, of these types, of ``function`` on matrices, NaN where it raises LinAlgError.

    ``stacked``: it takes all matrices at once, and raises if one of them fails.
    """
    if stacked:
        try:
            return tuple([np.asarray(y, t.dtype) for y, t in zip(function(x), results)])
        except np.linalg.LinAlgError:
            pass
    lanes = x.ndim - 2

    def one(x: Any) -> Any:
        try:
            return function(x)
        except np.linalg.LinAlgError:
            return [np.full(t.shape[lanes:], np.nan, t.dtype) for t in results]

    return each_matrix(one, results, x)
