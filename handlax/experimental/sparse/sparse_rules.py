"""The rule table ``sparse``: what operations compute on sparse operands. Each rule is a function of sparse and dense
arrays.

Operations without a rule are refused: their results would be dense, or no rule is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.stack import perform
from ...effects.base.wrapping import errors_ignored, wraps
from ...effects.core.arrays import ConcreteArray
from ...effects.core.columns import EVALUATE, JVP, SPARSE, is_linear
from ...effects.operations.dot_general import DotGeneral
from ...effects.operations.elementwise.arithmetic import Add, Div, Mul, ReducePrecision, StopGradient, Sub
from ...effects.operations.elementwise.conversion import ConvertElementType
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.shapes import BroadcastInDim, ReduceSum, Reshape, Transpose
from ...effects.operations.indexing.dynamic_slicing import DynamicSlice
from ...effects.operations.indexing.gather_scatter import Gather
from ...effects.operations.manipulation.slicing import Concatenate, Rev, Slice, Split
from ...effects.operations.windows.convolution import ConvGeneralDilated
from . import layouts, sparse_products
from .bcoo import BCOO, bcoo_transpose
from .bcsr import BCSR
from .sparse_array import is_sparse
from .sparsify import refused, same_places
from .todense import Todense


def by_coordinates(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for ``BCOO`` arrays extended to all formats; if all operands are BCSR the result is, too, where possible.
    """

    @wraps(rule)
    def formatted(op: Any, *operands: Any) -> Any:
        formats = {type(x) for x in operands if is_sparse(x)}
        y = rule(op, *[x.to_bcoo() if is_sparse(x) else x for x in operands])
        rows = lambda y: BCSR.from_bcoo(y) if isinstance(y, BCOO) and y.n_sparse == 2 else y
        if formats != {BCSR}:
            return y
        return tuple(map(rows, y)) if op.multiple_results else rows(y)

    return formatted


def additive(op: Any, operands: Any) -> bool:
    """Whether the operation distributes over the sum of entries, so that a coordinate may be stored several times.

    Lossless conversions do, except from integers, whose sums wrap.
    """
    kind = type(op)
    if kind is ConvertElementType:
        dtype = operands[0].dtype
        return hnp.issubdtype(dtype, np.inexact) and hnp.promote_types(dtype, op.dtype) == op.dtype
    if kind in (StopGradient, Todense):
        return True
    return kind is not ReducePrecision and is_linear(JVP.cell(kind)) and all(map(is_sparse, operands))


def stored_once(x: Any) -> Any:
    """The array with each coordinate stored once, for operations that are not additive."""
    return x if x.unique_indices else x.sum_duplicates(nse=x.nse, remove_zeros=False)


def of_data(op: Any, *operands: Any) -> Any:
    """The operation applied to the data of sparse arrays with the same coordinates, and to scalars."""
    if not (additive(op, operands) or any([x.unique_indices for x in operands if is_sparse(x)])):
        operands = tuple([stored_once(x) if is_sparse(x) else x for x in operands])
    first = next(filter(is_sparse, operands))
    return first.replaced(data=perform(op, *[x.data if is_sparse(x) else x for x in operands]))


def maps_zero_to_zero(op: Any, operands: Any) -> bool:
    """Whether the results are 0 where the sparse operands are, given the other operands, which must be known scalars.
    """
    if not all([is_sparse(x) or (not x.ndim and isinstance(x, ConcreteArray)) for x in operands]):
        return False
    numbers = [np.zeros((), x.dtype) if is_sparse(x) else x.value for x in operands]
    return not np.any(errors_ignored(EVALUATE.find(type(op)), op, *numbers))


@SPARSE.rule(Elementwise)
def entry_by_entry(op: Any, *operands: Any) -> Any:
    """An operation that maps 0 to 0, applied to the stored entries; any other is refused, since it would fill the
    array.
    """
    if not maps_zero_to_zero(op, operands):
        return refused(op, *operands)
    first, *others = [x for x in operands if is_sparse(x)]
    if not all([same_places(first, x) for x in others]):
        return refused(op, *operands)
    return of_data(op, *operands)


@SPARSE.rule(Todense)
def dense(op: Any, x: Any) -> Any:
    return x.todense()


@SPARSE.rule(Mul)
def product(op: Any, x: Any, y: Any) -> Any:
    """The elementwise product, stored where both factors are."""
    if not (is_sparse(x) and is_sparse(y)):
        x, y = (x, y) if is_sparse(x) else (y, x)
        return x.replaced(data=sparse_products.bcoo_multiply_dense(x.to_bcoo(), y))
    if same_places(x, y):
        return of_data(op, x, y)
    return by_coordinates(lambda op, x, y: sparse_products.bcoo_multiply_sparse(x, y))(op, x, y)


@SPARSE.rule(Div)
def quotient(op: Any, x: Any, y: Any) -> Any:
    """The elementwise quotient, stored where the dividend is."""
    if is_sparse(y):
        return refused(op, x, y)
    x = x if hnp.issubdtype(x.dtype, np.inexact) else stored_once(x)  # quotients of integers are rounded
    entries = x.to_bcoo()
    if not y.ndim:
        return x.replaced(data=perform(op, x.data, y))
    met = sparse_products.entries_met(entries, y)  # 0 for padding
    met = hnp.where(sparse_products.stored_data(entries), met, hnp.ones((), met.dtype))
    return x.replaced(data=perform(op, *hnp.broadcast_arrays(x.data, met)))


@SPARSE.rule(Add)
def total(op: Any, x: Any, y: Any) -> Any:
    """The sum: the concatenated entries of two sparse arrays; dense for a sparse and a dense one."""
    if not (is_sparse(x) and is_sparse(y)):
        x, y = (x, y) if is_sparse(x) else (y, x)
        if not y.ndim and x.ndim:
            return refused(op, x, y)
        return x.todense() + y
    if same_places(x, y):
        return x.replaced(data=x.data + y.data)
    return by_coordinates(lambda op, x, y: layouts.merged_entries(x, y))(op, x, y)


@SPARSE.rule(Sub)
def difference(op: Any, x: Any, y: Any) -> Any:
    minus = y.replaced(data=-y.data) if is_sparse(y) else -y
    return total(op, x, minus)


@SPARSE.rule(ReduceSum)
@by_coordinates
def summed(op: Any, x: Any) -> Any:
    y = sparse_products.bcoo_reduce_sum(x, axes=op.axes)
    return y if y.ndim else y.todense()


def wrapped(op: Any, *operands: Any) -> Any:
    """The factors of a product with a wider result dtype, each coordinate stored once, since sums of narrow integers
    wrap.
    """
    narrow = lambda x: is_sparse(x) and x.dtype != op.preferred_element_type and not hnp.issubdtype(x.dtype, np.inexact)
    return [stored_once(x) if op.preferred_element_type is not None and narrow(x) else x for x in operands]


@SPARSE.rule(DotGeneral)
@by_coordinates
def contracted(op: Any, x: Any, y: Any) -> Any:
    x, y = wrapped(op, x, y)
    return sparse_products.bcoo_dot_general(
        x, y, dimension_numbers=op.dimension_numbers, preferred_element_type=op.preferred_element_type
    )


@SPARSE.rule(ConvGeneralDilated)
@by_coordinates
def convolved(op: Any, x: Any, y: Any) -> Any:
    fields = {name: value for name, value in zip(op._names, op.fields) if name != "precision"}
    x, y = wrapped(op, x, y)
    return sparse_products.bcoo_conv_general_dilated(x, y, **fields)


@SPARSE.rule(Gather)
@by_coordinates
def parts(op: Any, x: Any, starts: Any) -> Any:
    if is_sparse(starts):
        return refused(op, x, starts)
    return layouts.bcoo_gather(
        x, starts, op.dimension_numbers, op.slice_sizes, mode=op.mode, fill_value=op.fill_value
    )


@SPARSE.rule(DynamicSlice)
@by_coordinates
def part(op: Any, x: Any, *starts: Any) -> Any:
    if any(map(is_sparse, starts)):
        return refused(op, x, *starts)
    return layouts.bcoo_dynamic_slice(x, starts, op.slice_sizes)


@SPARSE.rule(Split)
@by_coordinates
def pieces(op: Any, x: Any) -> Any:
    ends = np.cumsum(op.sizes).tolist()
    cut = lambda end, size: [(0, n) if d != op.axis else (end - size, end) for d, n in enumerate(x.shape)]
    bounds = [zip(*cut(end, size)) for end, size in zip(ends, op.sizes)]
    return tuple([layouts.bcoo_slice(x, start_indices=starts, limit_indices=limits) for starts, limits in bounds])


for kind, rule in {
    BroadcastInDim: lambda op, x: layouts.bcoo_broadcast_in_dim(x, shape=op.shape, broadcast_dimensions=op.dims),
    Reshape: lambda op, x: layouts.bcoo_reshape(x, new_sizes=op.shape),
    Transpose: lambda op, x: bcoo_transpose(x, permutation=op.permutation),
    Rev: lambda op, x: layouts.bcoo_rev(x, op.dimensions),
    Slice: lambda op, x: layouts.bcoo_slice(x, start_indices=op.start, limit_indices=op.limit, strides=op.strides),
}.items():
    SPARSE.rule(kind)(by_coordinates(rule))


@SPARSE.rule(Concatenate)
@by_coordinates
def joined(op: Any, *xs: Any) -> Any:
    return refused(op, *xs) if not all(map(is_sparse, xs)) else layouts.bcoo_concatenate(xs, dimension=op.dimension)
