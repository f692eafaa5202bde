"""The methods that sparse arrays share with dense ones: each is that of dense arrays under ``sparsify``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import numpy as hnp
from ...effects.operators.array_operators import Method
from .sparsify import sparsify


def sparsified(f: Method) -> Method:
    """The method of this function of arrays."""
    return sparsify(f)


def _reflected(f: Method) -> Method:
    return sparsify(lambda x, y: f(y, x))


def _method(name: str) -> Method:
    return sparsify(lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs))


class ArrayMethods:
    """Operators, indexing and methods of dense arrays."""

    __slots__ = ()
    shape: tuple[int, ...]
    astype, reshape, sum = map(_method, ("astype", "reshape", "sum"))
    __abs__, __neg__, __pos__ = sparsified(hnp.abs), sparsified(hnp.negative), sparsified(hnp.positive)
    __matmul__, __rmatmul__ = sparsify(hnp.matmul), _reflected(hnp.matmul)
    __mul__, __rmul__ = sparsify(hnp.multiply), _reflected(hnp.multiply)
    __truediv__, __rtruediv__ = sparsify(hnp.divide), _reflected(hnp.divide)
    __add__, __radd__ = sparsify(hnp.add), _reflected(hnp.add)
    __sub__, __rsub__ = sparsify(hnp.subtract), _reflected(hnp.subtract)
    __pow__, __rpow__ = sparsify(hnp.power), _reflected(hnp.power)
    __gt__, __ge__ = sparsified(hnp.greater), sparsified(hnp.greater_equal)
    __lt__, __le__ = sparsified(hnp.less), sparsified(hnp.less_equal)
    __eq__, __ne__ = sparsified(hnp.equal), sparsified(hnp.not_equal)

    def __getitem__(self, index: Any) -> Any:
        """The part at an index, which is of slices, integers and arrays."""
        return sparsify(lambda x: x[index])(self)

    def __iter__(self) -> Iterator[Any]:
        """The parts along the first dimension."""
        return iter([self[i] for i in range(self.shape[0])])
