"""The methods that BCOO and BCSR share with dense arrays: each is the dense function under ``sparsify``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ... import numpy as hnp
from ...effects.base.errors import DTypeMismatch, ShapeMismatch, whole_numbers
from ...effects.operators.array_operators import Method
from .sparse_array import JAXSparse
from .sparsify import sparsify


def _reflected(f: Method) -> Method:
    """The operator method with exchanged operands, such as ``__radd__``, of the function ``f`` of dense arrays."""
    return sparsify(lambda x, y: f(y, x))


def _method(name: str) -> Method:
    """The method of sparse arrays that computes what the method ``name`` of dense arrays does."""
    return sparsify(lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs))


class BatchedArray(JAXSparse):
    """The base of BCOO and BCSR: batch and dense dimensions, and the operators, indexing and methods of dense arrays.
    """

    flags = ("indices_sorted", "unique_indices")
    indices_rank: ClassVar[int]  # the rank of the indices in one batch position
    _forms: ClassVar[str]  # the shapes of the buffers, in words
    _fits: ClassVar[Callable[..., bool]]  # whether buffers with so many batch dimensions are those of a shape
    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        name, buffers = type(self).__name__, [hnp.asarray(x) for x in args]
        shape = whole_numbers(f"{name}: a size", shape)
        *types, last = [str(x.type) for x in buffers]
        if not all([np.issubdtype(x.dtype, np.integer) for x in buffers[1:]]):
            raise DTypeMismatch(f"{name}: indices are integers, got {' and '.join([*types[1:], last])}.")
        n = buffers[1].ndim - self.indices_rank
        agree = n >= 0 and self._fits(n, shape, *buffers)
        if not agree or any([m not in (1, k) for x in buffers for m, k in zip(x.shape, shape[:n])]):
            raise ShapeMismatch(
                f"{name}: buffers are {self._forms} of the array, got {', '.join(types)} and {last} for shape {shape}."
            )
        flags = {"indices_sorted": indices_sorted, "unique_indices": unique_indices}
        self._set(**dict(zip(self.buffers, buffers)), shape=shape, **flags)

    @property
    def nse(self) -> int:
        """The number of stored entries in each batch position, padding included."""
        return self.indices.shape[self.n_batch]

    @property
    def n_batch(self) -> int:
        """The number of leading dimensions that are batch dimensions: each batch position stores its own entries."""
        return self.indices.ndim - self.indices_rank

    @property
    def n_dense(self) -> int:
        """The number of trailing dimensions that are dense: an entry is an array over them."""
        return self.data.ndim - 1 - self.n_batch

    astype, reshape, sum = map(_method, ("astype", "reshape", "sum"))
    __abs__, __neg__, __pos__ = sparsify(hnp.abs), sparsify(hnp.negative), sparsify(hnp.positive)
    __matmul__, __rmatmul__ = sparsify(hnp.matmul), _reflected(hnp.matmul)
    __mul__, __rmul__ = sparsify(hnp.multiply), _reflected(hnp.multiply)
    __truediv__, __rtruediv__ = sparsify(hnp.divide), _reflected(hnp.divide)
    __add__, __radd__ = sparsify(hnp.add), _reflected(hnp.add)
    __sub__, __rsub__ = sparsify(hnp.subtract), _reflected(hnp.subtract)
    __pow__, __rpow__ = sparsify(hnp.power), _reflected(hnp.power)
    __gt__, __ge__ = sparsify(hnp.greater), sparsify(hnp.greater_equal)
    __lt__, __le__ = sparsify(hnp.less), sparsify(hnp.less_equal)
    __eq__, __ne__ = sparsify(hnp.equal), sparsify(hnp.not_equal)

    def __getitem__(self, index: Any) -> Any:
        """The elements at an index of slices, integers and arrays."""
        return sparsify(lambda x: x[index])(self)

    def __iter__(self) -> Iterator[Any]:
        """The slices along the first dimension."""
        return iter([self[i] for i in range(self.shape[0])])
