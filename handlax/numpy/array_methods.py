"""The methods and properties of arrays. Most are functions of this package: ``x.sum(axis=0)`` is ``sum(x, axis=0)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, Immutable, NotAnArray, ShapeMismatch
from ..effects.base.stack import perform
from ..effects.core.arrays import Array, Box, as_array, duplicate, no_rows_error
from ..effects.operations.elementwise.complex_parts import complex as complex_
from ..effects.operations.elementwise.complex_parts import imag, real
from ..effects.operations.elementwise.conversion import BitcastConvertType, convert
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.slicing import rev
from ..effects.operators.array_operators import composed, install
from ..effects.types import dtypes
from .arrays import shape_manipulation
from .arrays.creation import astype as _astype
from .arrays.creation import placed
from .arrays.index_reading import getitem
from .arrays.index_updates import IndexUpdateHelper
from .arrays.indexing_operations import compress as _compress
from .arrays.joining_splitting import stack, unstack

# method -> the function of this package that it is
METHODS: Mapping[str, str] = MappingProxyType({
    **{name: name for name in (
        "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "conj", "cumprod", "cumsum",
        "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "round", "searchsorted",
        "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
    )},
    "conjugate": "conj",
})
# property -> its docstring; it is the function of this package with its name
PROPERTIES: Mapping[str, str] = MappingProxyType({
    "real": "The real part; the array itself where it is real.",
    "imag": "The imaginary part; zeros where the array is real.",
})
# infix operator -> the function of this package that it is; those of one operation are in ``array_operators``
OPERATORS: Mapping[str, str] = MappingProxyType({
    "divmod": "divmod", "floordiv": "floor_divide", "lshift": "left_shift", "matmul": "matmul", "mod": "remainder",
    "pow": "power", "rshift": "right_shift",
})


def attach(functions: Mapping[str, Any]) -> None:
    """Set the methods in ``METHODS``, the ``PROPERTIES`` and the ``OPERATORS`` on ``Array``, from a namespace."""
    for method, function in METHODS.items():
        setattr(Array, method, functions[function])
    for name, doc in PROPERTIES.items():
        setattr(Array, name, property(functions[name], doc=doc))
    for symbol, function in OPERATORS.items():
        install(symbol, composed(functions[function]))


def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """``x.reshape(2, 3)`` or ``x.reshape((2, 3))``; see ``numpy.reshape``."""
    shape = args[0] if len(args) == 1 else args
    return shape_manipulation.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    """``x.transpose(1, 0)`` or ``x.transpose((1, 0))``; see ``numpy.transpose``."""
    return shape_manipulation.transpose(self, (args[0] if len(args) == 1 else args) if args else None)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements as a vector; see ``numpy.ravel``."""
    return shape_manipulation.ravel(self, order, out_sharding=out_sharding)


def _as_type(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array converted to ``dtype``; see ``numpy.astype``."""
    return _astype(self, dtype, copy=copy, device=device)


def _compress_method(
    self: Any, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """The slices where ``condition`` holds; see ``numpy.compress``."""
    return _compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bits as another dtype: the last axis shrinks or grows where widths differ.

    Raises: ShapeMismatch: the last axis does not hold whole numbers of the new dtype.
    """
    if type is not None:
        raise BadArgument("view: there is one type of array, so type must be None.")
    target, own = self.type.dtype if dtype is None else dtypes.canonical(dtype), self.type.dtype
    if target == own:
        return self
    if dtypes.is_complex(own):
        return _view(_pairs(self), target)
    if dtypes.is_complex(target):
        part = _view(self, dtypes.to_real(target))
        halves = shapes.reshape(part, (*part.shape[:-1], part.shape[-1] // 2, 2))
        return complex_(getitem(halves, (..., 0)), getitem(halves, (..., 1)))
    if dtypes.is_bool(own):
        return _view(convert(self, dtypes.uint8), target)
    if dtypes.is_bool(target):
        return convert(_view(self, dtypes.uint8), target)
    return _bits(self, target, dtypes.itemsize_bits(own), dtypes.itemsize_bits(target))


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """The array with the bytes of each element, or of each part of a complex one, in reverse order."""
    if inplace:
        raise Immutable("byteswap: arrays are immutable, so inplace must be False.", hint="use the result.")
    dtype = self.type.dtype
    if dtypes.is_complex(dtype):
        return complex_(_byteswap(real(self)), _byteswap(imag(self)))
    if dtype.itemsize == 1:
        return self
    octets = perform(BitcastConvertType(dtypes.uint8), self)
    return perform(BitcastConvertType(dtype), rev(octets, (octets.ndim - 1,)))


def _pairs(z: Any) -> Any:
    """Complex numbers as pairs (real, imaginary), interleaved along the last axis."""
    both = stack((real(z), imag(z)), -1)
    return shapes.reshape(both, (*z.shape[:-1], z.shape[-1] * 2)) if z.ndim else both


def _bits(x: Any, dtype: Any, old: int, new: int) -> Any:
    """The bits of ``x``, whose elements have ``old`` bits, read as elements of ``dtype``, which has ``new`` bits."""
    op = BitcastConvertType(dtype)
    if old == new:
        return perform(op, x)
    if not x.ndim or x.shape[-1] * old % new:
        raise ShapeMismatch(f"view: the last axis must hold whole numbers of {dtype}, got {x.type}.")
    if old < new:
        k = new // old
        return perform(op, shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // k, k)))
    return shapes.reshape(perform(op, x), (*x.shape[:-1], x.shape[-1] * (old // new)))


def _contains(self: Any, item: Any) -> bool:
    """Whether an element of a vector is equal to a number."""
    if not isinstance(item, (Array, np.ndarray, np.generic, int, float, complex)):
        raise NotAnArray(f"in: only numbers are looked for in an array, got {type(item).__name__}.")
    number = as_array(item)
    if len(self.type.shape) != 1 or number.type.shape:
        raise ShapeMismatch(
            f"in: one number is looked for in a vector, got {number.type} in {self.type}.",
            hint="(x == y).any() compares all elements, or rows.",
        )
    return bool((self == number).any())


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on another device."""
    return placed(self, device)


def _set_item(self: Any, index: Any, value: Any) -> None:
    """Refuse ``x[index] = value``: arrays are immutable."""
    raise Immutable("index: arrays are immutable, so x[index] = y is not there.", hint="use x = x.at[index].set(y).")


def _data(self: Any) -> bytes:
    """``bytes(x)``: the bytes of the elements in row-major order.

    Arrays have no ``__buffer__``: NumPy would prefer it to ``__array__``, which gives read-only views.
    """
    return bytes(self.__array__())


def _iterate(self: Any) -> Iterator[Any]:
    """The slices along the first axis."""
    if not self.type.shape:
        raise no_rows_error(self.type)
    self.type.shape[0].__index__()  # raises for a symbolic dimension
    return iter(unstack(self))


_OWN: Mapping[str, Any] = MappingProxyType({
    "reshape": _reshape, "transpose": _transpose, "flatten": _flatten, "astype": _as_type, "compress": _compress_method,
    "view": _view, "byteswap": _byteswap, "to_device": _to_device, "copy": duplicate, "clone": duplicate,
    "__getitem__": getitem, "__contains__": _contains, "__setitem__": _set_item, "__bytes__": _data,
    "T": property(shape_manipulation.transpose, doc="The axes in reverse order; see ``numpy.transpose``."),
    "mT": property(
        shape_manipulation.matrix_transpose, doc="The last two axes exchanged; see ``numpy.matrix_transpose``."
    ),
    "at": property(IndexUpdateHelper),
})

for _name, _attribute in _OWN.items():
    setattr(Array, _name, _attribute)
Box.__iter__ = _iterate  # type: ignore[method-assign]
