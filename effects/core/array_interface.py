"""``Array``, the base class of concrete arrays and boxes, with declarations of all methods for type checkers.

The modules that define operations attach the operators and methods that perform them, and ``ConcreteArray`` has the
methods that read data; both are declared here under ``TYPE_CHECKING``, so that a type checker sees them on ``Array``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ..base.errors import RankMismatch
from ..base.later_layers import LaterLayers, displayed
from ..base.stack import Run
from ..types.array_type import ArrayType
from ..types.lengths import read

if TYPE_CHECKING:
    from .array_shards import OnDevices as _Base
else:
    _Base = object


@displayed
class Array(_Base):
    """A value with a type (shape, dtype, weakness). ``run``: the run that owns it, if it is a box; None if concrete."""

    __slots__ = ("__weakref__",)
    type: ArrayType
    run: Run | None = None
    __array_priority__ = 100

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def nbytes(self) -> int:
        return read(self.type.nbytes)[0] if self.type.ragged else self.type.nbytes

    @property
    def itemsize(self) -> int:
        return int(self.type.dtype.itemsize)

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def aval(self) -> ArrayType:
        return self.type

    def __len__(self) -> int:
        if not self.type.shape:
            raise RankMismatch(f"len: an array of rank 0 has no length, got {self.type}.", hint="x.size is 1.")
        return self.type.shape[0]

    __hash__ = None  # type: ignore[assignment]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return LaterLayers.numpy

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def item(self, *index: int) -> Any:
        return self._read("item").item(*index)

    def tolist(self) -> Any:
        return self._read("tolist").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self._read("tobytes").tobytes(order)

    if TYPE_CHECKING:

        def __add__(self, other: ArrayLike) -> Array: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __add__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

        def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...

        __rdivmod__ = __divmod__

        def __eq__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...

        __pos__ = __abs__ = __invert__ = __neg__

        def __round__(self, ndigits: int | None = None) -> Array: ...
        def __bool__(self) -> bool: ...
        def _scalar(self, name: str) -> Any: ...
        def _read(self, name: str) -> np.ndarray[Any, Any]: ...
        def __index__(self) -> int: ...
        def __bytes__(self) -> bytes: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __contains__(self, item: ArrayLike) -> bool: ...
        def __getitem__(self, index: IndexLike) -> Array: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...

        @property
        def T(self) -> Array: ...
        @property
        def mT(self) -> Array: ...
        @property
        def real(self) -> Array: ...
        @property
        def imag(self) -> Array: ...
        @property
        def at(self) -> Updatable: ...
        def block_until_ready(self) -> Array: ...
        def is_ready(self) -> bool: ...
        def is_deleted(self) -> bool: ...
        def delete(self) -> None: ...
        def copy_to_host_async(self) -> None: ...

        def all(
            self, axis: AxesLike = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None,
        ) -> Array: ...

        any = all

        def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array: ...

        argmin = argmax

        def argpartition(self, kth: int, axis: int = -1) -> Array: ...
        def argsort(
            self, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
            descending: bool = False, dtype: DTypeLike | None = None,
        ) -> Array: ...
        def astype(self, dtype: DTypeLike, copy: bool = False, device: Any = None) -> Array: ...
        def byteswap(self, inplace: bool = False) -> Array: ...
        def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Array: ...
        def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
        def compress(
            self, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None,
            fill_value: Any = 0,
        ) -> Array: ...
        def conj(self) -> Array: ...

        conjugate = copy = clone = conj

        def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array: ...

        cumsum = cumprod

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
        def dot(
            self, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None,
        ) -> Array: ...
        def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array: ...
        def max(
            self, axis: AxesLike = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array: ...
        def mean(
            self, axis: AxesLike = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *,
            where: ArrayLike | None = None,
        ) -> Array: ...

        min = max

        def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...
        def prod(
            self, axis: AxesLike = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
        ) -> Array: ...
        def ptp(self, axis: AxesLike = None, out: None = None, keepdims: bool = False) -> Array: ...
        def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array: ...
        def repeat(
            self, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
            out_sharding: Any = None,
        ) -> Array: ...
        def reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Array: ...
        def round(self, decimals: int = 0, out: None = None) -> Array: ...
        def searchsorted(
            self, v: ArrayLike, side: str = "left", sorter: Any = None, *, method: str = "scan",
        ) -> Array: ...
        def sort(
            self, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
            descending: bool = False,
        ) -> Array: ...
        def squeeze(self, axis: int | Sequence[int] | None = None) -> Array: ...
        def std(
            self, axis: AxesLike = None, dtype: DTypeLike | None = None, out: None = None, ddof: int = 0,
            keepdims: bool = False, *, where: ArrayLike | None = None, mean: Any = None, correction: Any = None,
        ) -> Array: ...

        sum = prod

        def swapaxes(self, axis1: int, axis2: int) -> Array: ...
        def take(
            self, indices: ArrayLike, axis: int | None = None, out: None = None, mode: Any = None,
            unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
        ) -> Array: ...
        def to_device(self, device: Any, *, stream: Any = None) -> Array: ...
        def trace(
            self, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None,
        ) -> Array: ...
        def transpose(self, *args: Any) -> Array: ...

        var = std

        def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array: ...


@runtime_checkable
class HasDType(Protocol):
    """An object with an attribute ``dtype``."""

    @property
    def dtype(self, /) -> np.dtype[Any]: ...


# What functions take for an array: arrays and numbers, but no lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What becomes an array: arrays, NumPy's arrays and scalars, Python's numbers."""
# What names a dtype; None is none.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | HasDType
"""What names a dtype: the dtype, its name, a scalar type, or what has an attribute ``dtype``."""
AxesLike: TypeAlias = int | Sequence[int] | None
IndexLike: TypeAlias = ArrayLike | slice | EllipsisType | tuple[Any, ...] | None

if TYPE_CHECKING:

    class Update(Protocol):
        """The signature of ``x.at[index].set`` and of the other updates by values."""

        def __call__(
            self, values: ArrayLike, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
        ) -> Array: ...

    class Updates(Protocol):
        """The methods of ``x.at[index]``."""

        set: Update
        add: Update
        subtract: Update
        multiply: Update
        mul: Update
        min: Update
        max: Update

        def get(
            self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
            fill_value: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
        ) -> Array: ...
        def apply(
            self, func: Callable[[Array], ArrayLike], *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, wrap_negative_indices: bool = True,
        ) -> Array: ...
        def divide(self, values: ArrayLike, **options: Any) -> Array: ...
        def power(self, values: ArrayLike, **options: Any) -> Array: ...

    class Updatable(Protocol):
        """The value ``x.at``, which is indexed by what is to be updated."""

        def __getitem__(self, index: IndexLike) -> Updates: ...
