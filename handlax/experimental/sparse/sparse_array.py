"""The base class of sparse arrays, and the errors and warnings about inefficient layouts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...effects.base.errors import BadArgument
from ...effects.base.immutables import ImmutableObject
from ...effects.core.arrays import Box
from ...effects.trees import pytrees
from ...lowering.jit.devices import block_until_ready

__all__ = ["CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning"]


class SparseEfficiencyError(BadArgument):
    """A layout that would store many zeros.

    A sparse dimension of several elements is to become a batch or dense one, along which every place is stored.

    >>> from handlax import numpy as hnp
    >>> from handlax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(hnp.eye(2))
    >>> sparse.bcoo_update_layout(x, n_batch=1)
    Traceback (most recent call last):
    handlax.experimental.sparse.sparse_array.SparseEfficiencyError: bcoo_update_layout: BCOO(float32[2, 2], nse=2) with
      n_batch=1 and n_dense=0 stores many zeros.
      at ...
      hint: on_inefficient='warn' or None stores them.

    Remedy: keep the dimension sparse, or say that the zeros are meant.

    >>> sparse.bcoo_update_layout(x, n_batch=1, on_inefficient=None)
    BCOO(float32[2, 2], nse=2, n_batch=1)
    """

    page = "help(hx.experimental.sparse.SparseEfficiencyError) explains it."


class SparseEfficiencyWarning(UserWarning):
    """A layout stores many zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A layout that cuSPARSE computes slowly with; never issued here, where XLA compiles all products."""


class JAXSparse(ImmutableObject, ABC):
    """An array whose stored entries are given and whose other elements are 0: a pytree of buffers, first ``data``.

    Functions that take dense arrays take sparse ones under ``sparsify``.
    """

    _guard = ("sparse arrays", "a call of its class makes another one.")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    __array_hint__ = "sparsify(f) takes sparse arrays as f takes dense ones; x.todense() is dense."
    __array_ufunc__ = None  # NumPy's arrays leave operators to the sparse operand
    buffers: ClassVar[tuple[str, ...]]  # the names of its children, data first
    flags: ClassVar[tuple[str, ...]]  # static facts about the order of its entries
    shape: tuple[int, ...]
    data: Any
    unique_indices: bool = False  # whether no coordinate is known to be stored twice

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the format as a pytree, whose structure is its shape and its flags."""
        super().__init_subclass__(**options)
        if "buffers" in vars(cls):
            static = ("shape", *cls.flags)

            def flatten(x: Any) -> tuple[Any, Any]:
                return tuple([getattr(x, name) for name in cls.buffers]), tuple([getattr(x, name) for name in static])

            def unflatten(values: Any, children: Any) -> Any:
                return object.__new__(cls)._set(**dict(zip(cls.buffers, children)), **dict(zip(static, values)))

            pytrees.register_pytree_node(cls, flatten, unflatten)

    def _set(self, **attributes: Any) -> Any:
        """The array itself, with these attributes assigned past the check that forbids it."""
        vars(self).update(attributes)
        return self

    def replaced(self, **attributes: Any) -> Any:
        """The array with these attributes replaced."""
        return object.__new__(type(self))._set(**vars(self) | attributes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the entries."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    @abstractmethod
    def nse(self) -> int:
        """The number of stored entries."""

    @abstractmethod
    def to_bcoo(self) -> Any:
        """The same array as a ``BCOO``."""

    @abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions permuted, in reverse order if ``axes`` is None."""

    def todense(self) -> Any:
        """The dense array of the same values."""
        return self.to_bcoo().todense()

    @property
    def T(self) -> Any:
        """The array with its dimensions in reverse order."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """The array itself, once its buffers are computed."""
        return block_until_ready(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            counts = {"nse": self.nse}
            counts |= {n: getattr(self, n) for n in ("n_batch", "n_dense") if getattr(self, n, 0)}
            extra = "".join([f", {name}={count}" for name, count in counts.items()])
            shown = f"{type(self).__name__}({self.dtype}{list(self.shape)}{extra})"
        except Exception:  # tree_map may have put anything in place of the buffers
            return f"{type(self).__name__}(<invalid>)"
        return f"{type(self.data).__name__}[{shown}]" if isinstance(self.data, Box) else shown


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse array."""
    return isinstance(x, JAXSparse)

