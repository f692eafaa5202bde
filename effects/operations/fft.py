"""The discrete Fourier transform over the last dimensions, complex and real, forward and inverse."""

from __future__ import annotations

import enum
from math import log2, prod
from typing import Any

import numpy as np

from ..base.errors import BadArgument, BadCall, NotExportable, ShapeMismatch
from ..base.stack import perform
from ..core.arrays import Array, as_array
from ..core.columns import linear
from ..core.operation import operation, shared
from ..types.array_type import array_type
from ..types.dtypes import COMPLEX, float32, float64, to_complex, to_inexact, to_real
from ..types.extent import described
from ..types.sized import extents_in
from .elementwise.arithmetic import div, like, mul, neg
from .elementwise.bitwise import bitwise_or
from .elementwise.comparison import eq, select_n
from .elementwise.complex_parts import complex, imag, real
from .elementwise.conversion import convert
from .foundations.shapes import broadcast_in_dim, canonical_shape
from .manipulation.creation import iota
from .manipulation.last_axes import OnLastAxes


class FftType(enum.IntEnum):
    """Which Fourier transform: of complex numbers or of reals, forward or inverse."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    __repr__ = enum.Enum.__str__


_REAL = (FftType.RFFT, FftType.IRFFT)
_OF_ONE = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
_OF_SEVERAL = (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)
_REALS = frozenset({float32, float64})
_MOST = 3  # XLA transforms up to three dimensions at once


# y[k] = sum over n of x[n] e^(-2 pi i k n / N) over the last dimensions, of sizes ``lengths``: FFT; IFFT its inverse.
# RFFT is FFT of reals, and IRFFT its inverse: of the last dimension they have the first half, N // 2 + 1 elements
@operation
class Fft(OnLastAxes):
    kind: FftType
    lengths: tuple[int, ...]
    param_names = {"kind": "fft_type", "lengths": "fft_lengths"}
    dtypes = _REALS | COMPLEX

    def result_type(op, x):
        if x.dtype not in (_REALS if op.kind is FftType.RFFT else COMPLEX):
            numbers = "reals" if op.kind is FftType.RFFT else "complex numbers"
            raise BadArgument(f"fft: {op.kind.name} takes {numbers} of 32 or 64 bits for each part, got {x}.")
        count = len(op.lengths)
        if not 0 < count <= len(x.shape):
            raise ShapeMismatch(f"fft: there must be lengths for some of the last dimensions of {x}, got {op.lengths}.")
        outer, half = x.shape[:-count], (*op.lengths[:-1], op.lengths[-1] // 2 + 1)
        wanted = half if op.kind is FftType.IRFFT else op.lengths
        if x.shape[-count:] != wanted:
            raise ShapeMismatch(
                f"fft: {op.kind.name} of lengths {op.lengths} takes an array whose last sizes are {wanted}, got {x}."
            )
        if op.kind is FftType.RFFT:
            return x.update(shape=(*outer, *half), dtype=to_complex(x.dtype), weak=False)
        if op.kind is FftType.IRFFT:
            return x.update(shape=(*outer, *op.lengths), dtype=to_real(x.dtype), weak=False)
        return x.update(weak=False)

    @property
    def last_axes(op):  # type: ignore[override]
        return len(op.lengths)

    def evaluate(op, x):
        if 0 in op.lengths:  # a sum of no elements
            t = op.result_type(array_type(x.shape, x.dtype))
            return np.zeros(t.shape, t.dtype)
        if len(op.lengths) == 1:
            return _OF_ONE[op.kind](x, op.lengths[0])
        return _OF_SEVERAL[op.kind](x, op.lengths, range(-len(op.lengths), 0))

    jvp = linear

    def transpose(op, ct, x):
        if op.kind not in _REAL:  # a symmetric matrix
            return perform(op, ct)
        if op.kind is FftType.RFFT:
            n = _number(prod(op.lengths), to_real(ct.type.dtype))
            return perform(shared(Fft, FftType.IRFFT, op.lengths), _conjugate(op, ct, n, div(n, like(n, 2))))
        y = perform(shared(Fft, FftType.RFFT, op.lengths), ct)
        n = _number(prod(op.lengths) or 1, ct.type.dtype)
        return _conjugate(op, y, div(like(n, 1), n), div(like(n, 2), n))

    def lower(op, emit, x):
        for size in extents_in(op.lengths):
            raise NotExportable(
                f"fft: the lengths of a compiled transform must be numbers, got {described(size)}.",
                hint="export for one length; other axes may have symbolic sizes.",
            )
        if 0 in op.lengths or 0 in x.type.shape:
            return emit.full(0, emit.made)
        return _lower(emit, op.kind, op.lengths, x)

    def numpy_function(op, types):
        complete = len(op.lengths) == 1 and op.lengths[0] and op.kind is not FftType.IRFFT
        return _OF_ONE[op.kind] if complete else None

    def flops(op, operands, results):
        """5 n log2 n for complex numbers, half of it for reals, for each transform of n elements."""
        n = prod(op.lengths)
        whole = max(operands[0].size, results[0].size)
        return int((2.5 if op.kind in _REAL else 5) * whole * log2(n)) if n else 0


def _number(n: Any, dtype: Any) -> Any:
    """A size as an array of rank 0."""
    return convert(as_array(n), dtype)


def _conjugate(op: Fft, half: Any, once: Any, twice: Any) -> Any:
    """The conjugate of a half spectrum by weights of rank 0: ``once`` for frequencies 0 and n / 2, else ``twice``.

    The whole spectrum has the elements of these frequencies once, the others and their conjugates.
    """
    shape, n = half.type.shape, op.lengths[-1]
    k = iota(np.dtype("int32"), shape[-1])
    alone = bitwise_or(eq(k, like(k, 0)), eq(k + k, _number(n, k.type.dtype)))
    weights = select_n(alone, *[broadcast_in_dim(w, (shape[-1],), ()) for w in (twice, once)])
    weights = broadcast_in_dim(weights, shape, (len(shape) - 1,))
    return complex(mul(real(half), weights), neg(mul(imag(half), weights)))


def _lower(emit: Any, kind: FftType, lengths: tuple[int, ...], x: Any) -> Any:
    """Transforms of the last dimensions, and, where they are too many for one, of those before them beforehand.

    Forward transforms go from the last dimensions, of which real ones halve the last, to the first; inverse ones back.
    """
    last, before = lengths[-_MOST:], lengths[:-_MOST]
    if not before:
        out = shared(Fft, kind, lengths).result_type(x.type)
        return emit.inline("fft", f"{x.name}, type = {kind.name}, length = {list(lengths)}", x, type=out)

    def outer(x: Any, kind: FftType) -> Any:
        """The transform of the dimensions before the last ones, which are moved to the front for it."""
        rank = len(x.type.shape)
        order = (*range(rank - _MOST, rank), *range(rank - _MOST))
        y = _lower(emit, kind, before, emit.transpose(x, order))
        return emit.transpose(y, (*range(_MOST, rank), *range(_MOST)))

    if kind in (FftType.FFT, FftType.RFFT):
        return outer(_lower(emit, kind, last, x), FftType.FFT)
    return _lower(emit, kind, last, outer(x, FftType.IFFT))


def fft(x: Any, fft_type: FftType | str, fft_lengths: Any) -> Array:
    """The discrete Fourier transform over the last dimensions, as many as there are lengths.

        y[k] == sum(x[n] * exp(-2j * pi * k * n / N) for n in range(N))

    IFFT is the inverse of FFT, RFFT is FFT of reals, and IRFFT the inverse of RFFT; real ones have ``N // 2 + 1``
    elements of the last dimension, since the others are their conjugates. IRFFT reads of frequency 0 and, for even
    ``N``, ``N / 2``, the real part alone.
    Shapes: ``x[*s, *fft_lengths] -> y[*s, *fft_lengths]``; for real ones the last size of one side is the half.

    Args:
        fft_type: an ``FftType``, or its name.
    Raises: BadArgument: another type, or RFFT of complex numbers. ShapeMismatch: sizes are not the lengths.
    Source: Cooley and Tukey, An algorithm for the machine calculation of complex Fourier series (1965).

    >>> fft(np.array([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex128)
    """
    kind = fft_type if fft_type.__class__ is FftType else _kind(fft_type)
    x = x if isinstance(x, Array) else as_array(x)
    dtype = x.type.dtype
    if kind is not FftType.RFFT:
        x = x if dtype in COMPLEX else convert(x, to_complex(to_inexact(dtype)))
    elif dtype not in COMPLEX:
        x = convert(x, to_inexact(dtype))
    lengths = canonical_shape(fft_lengths, "fft")
    return perform(shared(Fft, kind, lengths), x) if lengths else x


def _kind(given: Any) -> FftType:
    """The type of a transform by its name, of which all letters are capital, or none."""
    if isinstance(given, str):
        if given in (given.upper(), given.lower()) and given.upper() in FftType.__members__:
            return FftType[given.upper()]
        raise BadArgument(f"fft: the type must be one of {', '.join(FftType.__members__)}, got {given!r}.")
    raise BadCall(f"fft: the type must be an FftType or its name, got {given!r}.")
