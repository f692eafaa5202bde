"""Products and sums of sparse arrays: contractions with dense and sparse arrays, elementwise products, convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.errors import BadAxis, NotSparse, ShapeMismatch, whole_numbers
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_update_layout, stored_mask
from .layouts import bcoo_broadcast_in_dim, bcoo_squeeze, merged_entries
from .stored_entries import (
    columns_of,
    coordinates,
    distinct_entries,
    gathered,
    masked,
    repeated_batch,
    scattered,
    size_vector,
)

__all__ = [
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum",
]


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``lax.dot_general`` with one sparse operand and a dense result, or two sparse operands and a sparse result.

        todense(bcoo_dot_general(x, y)) == lax.dot_general(todense(x), todense(y))

    Args:
        precision, out_sharding: ignored.

    Raises: ShapeMismatch: sizes of contracted, or of batch dimensions, differ. NotSparse: of two sparse arrays the
        batch dimensions of the product are none of theirs, or a contracted dimension is.

    >>> x = BCOO.fromdense(hnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> bcoo_dot_general(x, hnp.array([3.0, 4.0]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([4., 6.], dtype=float32)
    """
    (contract_l, contract_r), (batch_l, batch_r) = _pairs_of(dimension_numbers)
    pairs = ((contract_l, contract_r), (batch_l, batch_r))
    _check_sizes(lhs.shape, rhs.shape, [*zip(contract_l, contract_r), *zip(batch_l, batch_r)])
    dtype = preferred_element_type
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(lhs, rhs, *pairs, dtype)
    if isinstance(lhs, BCOO):
        return _sparse_dense(lhs, hnp.asarray(rhs), *pairs, dtype)
    if not isinstance(rhs, BCOO):
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    y = _sparse_dense(rhs, hnp.asarray(lhs), (contract_r, contract_l), (batch_r, batch_l), dtype)
    n, own = len(batch_l), rhs.ndim - len(contract_r) - len(batch_r)
    return y.transpose(*range(n), *range(n + own, y.ndim), *range(n, n + own))


def _pairs_of(numbers: Any) -> Any:
    """``((contracted_l, contracted_r), (batch_l, batch_r))``, as tuples."""
    where = "bcoo_dot_general: a dimension"
    return [[whole_numbers(where, dims) for dims in pair] for pair in numbers]


def _check_sizes(left: Sequence[int], right: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
    """Check that paired dimensions have equal sizes. Raises: ShapeMismatch."""
    for i, j in pairs:
        if left[i] != right[j]:
            raise ShapeMismatch(
                f"bcoo_dot_general: paired sizes must agree, got {left[i]} (lhs {left}, dim {i}) and {right[j]} (rhs "
                f"{right}, dim {j})."
            )


def _sparse_dense(lhs: BCOO, rhs: Any, contract: Any, batch: Any, dtype: Any) -> Any:
    """The contraction with a dense array: each entry times the elements that it meets, scatter-added to the result.

    An entry has the dimensions of its coordinate, and those of its data.
    """
    n_lead = lhs.n_batch + lhs.n_sparse
    where = coordinates(lhs.indices, lhs.shape)
    data = masked(repeated_batch(lhs.data, lhs.shape[: lhs.n_batch]), stored_mask(lhs))  # those of padding may be inf
    entries = where.ndim - 1
    located = [(i, j) for i, j in (*zip(*batch), *zip(*contract)) if i < n_lead]
    met = gathered(rhs, columns_of(where, [i for i, _ in located]), [j for _, j in located])
    rest = [j for j in range(rhs.ndim) if j not in [j for _, j in located]]
    free = [i for i in range(lhs.ndim) if i not in (*contract[0], *batch[0])]
    ours = [*batch[0], *free]  # the dimensions of lhs that the result begins with
    free_met = [j for j in range(rhs.ndim) if j not in (*contract[1], *batch[1])]
    shape = (*[lhs.shape[i] for i in ours], *[rhs.shape[j] for j in free_met])
    targets = [(i, d) for d, i in enumerate(ours) if i < n_lead]
    summed = all([i < lhs.n_batch for i, _ in targets])  # entries of a batch position have one place
    own = [i for i, _ in targets] if summed else [*range(entries)]
    added = [d for d in range(entries) if d not in own]

    def within(pair: Any) -> Any:
        """The paired dimensions that are dense in the sparse operand: their positions in data, and in the gathered
        elements.
        """
        inner = [(i, j) for i, j in zip(*pair) if i >= n_lead]
        return [entries + i - n_lead for i, _ in inner], [entries + rest.index(j) for _, j in inner]

    (contract_data, contract_met), (batch_data, batch_met) = within(contract), within(batch)
    numbers = (([*added, *contract_data], [*added, *contract_met]), ([*own, *batch_data], [*own, *batch_met]))
    data, met = _promoted(data, met)
    parts = lax.dot_general(data, met, numbers, preferred_element_type=dtype)
    places = [d for _, d in targets]
    if summed:
        return parts.transpose(np.argsort([*places, *[d for d in range(parts.ndim) if d not in places]]).tolist())
    return scattered(parts, columns_of(where, [i for i, _ in targets]), shape, entries, places)


def _promoted(x: Any, y: Any) -> Any:
    dtype = hnp.promote_types(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)


def _sparse_sparse(lhs: BCOO, rhs: BCOO, contract: Any, batch: Any, dtype: Any) -> BCOO:
    """The contraction of two sparse arrays: every pair of entries with equal contracted indices is an entry of the
    result.
    """
    lhs, rhs = bcoo_update_layout(lhs, n_dense=0), bcoo_update_layout(rhs, n_dense=0)
    for x, dims, paired in zip((lhs, rhs), contract, batch):
        if any([d < x.n_batch for d in dims]) or any([d >= x.n_batch for d in paired]):
            raise NotSparse(
                "bcoo_dot_general: of two sparse arrays the batch dimensions are batch dimensions of both, the "
                f"contracted ones are sparse, got {x} with {dims} contracted and {paired} as batch.",
                hint="bcoo_update_layout gives an array other batch dimensions.",
            )
    both = (lhs, rhs)
    alone_l, alone_r = [[d for d in range(x.n_batch) if d not in dims] for x, dims in zip(both, batch)]
    free_l, free_r = [
        [i for i in range(x.n_sparse) if i + x.n_batch not in dims] for x, dims in zip(both, contract)
    ]
    if alone_r and free_l:
        raise NotSparse(
            f"bcoo_dot_general: the batch dimensions of the product stand first, got {rhs} with some of its own, and "
            f"{lhs} with sparse dimensions before them.",
            hint="bcoo_update_layout(rhs, n_batch=...).",
        )
    n, a, b = len(batch[0]), len(alone_l), len(alone_r)
    keep, data, i, j = _pairs(lhs, rhs, [*batch[0], *alone_l], [*batch[1], *alone_r], n, a, b)
    ours, theirs = [[d - x.n_batch for d in dims] for x, dims in zip(both, contract)]
    data = masked(data, (columns_of(i, ours) == columns_of(j, theirs)).all(-1) & keep)
    columns = [columns_of(x, free) for x, free in ((i, free_l), (j, free_r))]
    full = np.broadcast_shapes(i.shape[:-1], j.shape[:-1])
    indices = hnp.concatenate([hnp.broadcast_to(x, (*full, x.shape[-1])) for x in columns], -1)
    count = full[-2] * full[-1]
    shape_l, shape_r = [[x.shape[d] for d in dims] for x, dims in ((lhs, [*batch[0], *alone_l]), (rhs, alone_r))]
    sizes = [*[lhs.sparse_shape[k] for k in free_l], *[rhs.sparse_shape[k] for k in free_r]]
    product = BCOO(
        (data.reshape(*data.shape[:-2], count), indices.reshape(*full[:-2], count, len(sizes))),
        shape=(*shape_l, *shape_r, *sizes),
    )
    nse = (lhs.nse if free_l else 1) * (rhs.nse if free_r else 1)
    product = bcoo_sum_duplicates(product, nse=min(nse, math.prod(sizes)))
    return product if dtype is None else product.replaced(data=product.data.astype(dtype))


def _pairs(lhs: BCOO, rhs: BCOO, order_l: Any, order_r: Any, n: int, a: int, b: int) -> Any:
    """All pairs of entries, ``[*shared, *alone_l, *alone_r, nse_l, nse_r]``: a mask without padding, products, indices.

    ``order``: the batch dimensions of each, of which the first ``n`` are shared, the others its own.
    """

    def spread(buffer: Any, order: Any, before: int, after: int, first: bool) -> Any:
        """The buffer with dimensions of size 1 where it has none of those of pairs."""
        buffer = buffer.transpose(*order, *range(len(order), buffer.ndim))
        head, tail = buffer.shape[:n], buffer.shape[len(order) + 1 :]
        alone, nse = buffer.shape[n : len(order)], buffer.shape[len(order)]
        return buffer.reshape(*head, *(1,) * before, *alone, *(1,) * after, *((nse, 1) if first else (1, nse)), *tail)

    left = [spread(x, order_l, 0, b, True) for x in (lhs.data, lhs.indices, stored_mask(lhs))]
    right = [spread(x, order_r, a, 0, False) for x in (rhs.data, rhs.indices, stored_mask(rhs))]
    x, y = _promoted(left[0], right[0])
    return left[2] & right[2], x * y, left[1], right[1]


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """The elements of a product of dense arrays at given coordinates, without computing the others.

        bcoo_dot_general_sampled(A, B, indices) == data of bcoo_extract of lax.dot_general(A, B) at indices

    Args:
        indices: of a BCOO.

    >>> A, B = hnp.arange(6.0).reshape(3, 2), hnp.arange(8.0).reshape(2, 4)
    >>> bcoo_dot_general_sampled(A, B, hnp.array([[0, 1], [2, 3]]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([ 5., 47.], dtype=float32)
    """
    A, B, indices = hnp.asarray(A), hnp.asarray(B), hnp.asarray(indices)
    (contract_l, contract_r), (batch_l, batch_r) = _pairs_of(dimension_numbers)
    _check_sizes(A.shape, B.shape, [*zip(contract_l, contract_r), *zip(batch_l, batch_r)])
    free_l = [d for d in range(A.ndim) if d not in (*contract_l, *batch_l)]
    free_r = [d for d in range(B.ndim) if d not in (*contract_r, *batch_r)]
    n, n_lead = len(batch_l), indices.ndim - 2 + indices.shape[-1]
    shape = (*[A.shape[d] for d in (*batch_l, *free_l)], *[B.shape[d] for d in free_r])
    if n_lead > len(shape):
        raise ShapeMismatch(f"bcoo_dot_general_sampled: {indices.type} has indices of more dimensions than {shape}.")
    where = coordinates(indices, shape)
    entries = where.ndim - 1
    place_l = {d: k for k, d in enumerate((*batch_l, *free_l)) if k < n_lead}
    place_r = {d: k for k, d in enumerate(batch_r) if k < n_lead}
    place_r |= {d: k for k, d in enumerate(free_r, n + len(free_l)) if k < n_lead}

    def met(x: Any, places: Any) -> tuple[Any, Any]:
        """The slices of a factor that entries need, and the positions of its other dimensions in these."""
        rest = [d for d in range(x.ndim) if d not in places]
        part = gathered(x, columns_of(where, [*places.values()]), list(places))
        return part, {d: entries + k for k, d in enumerate(rest)}

    (x, at_l), (y, at_r) = met(A, place_l), met(B, place_r)
    own = range(entries)
    contracted = [at_l[d] for d in contract_l], [at_r[d] for d in contract_r]
    paired = [at_l[d] for d in batch_l if d in at_l], [at_r[d] for d in batch_r if d in at_r]
    x, y = _promoted(x, y)
    return lax.dot_general(x, y, (contracted, ((*own, *paired[0]), (*own, *paired[1]))))


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The data of the elementwise product of a sparse and a dense array, at the coordinates of the sparse one.

    Args:
        v: its shape is broadcast to that of ``sp_mat``.

    Raises: ShapeMismatch: it cannot be.
    """
    v = hnp.asarray(v)
    return hnp.multiply(*_promoted(sp_mat.data, entries_met(sp_mat, v) if v.ndim else v))


def entries_met(sp_mat: BCOO, v: Any) -> Any:
    """The elements of a dense array at the stored coordinates, in a shape that broadcasts to that of the data.

    Raises: ShapeMismatch: the shape of ``v`` does not broadcast to that of the sparse array.
    """
    if v.ndim > sp_mat.ndim or any([m not in (1, n) for m, n in zip(v.shape[::-1], sp_mat.shape[::-1])]):
        raise ShapeMismatch(f"bcoo_multiply_dense: the shape of {v.type} must broadcast to that of {sp_mat}.")
    v = v.reshape(*(1,) * (sp_mat.ndim - v.ndim), *v.shape)
    n_lead = sp_mat.n_batch + sp_mat.n_sparse
    dims = [d for d in range(n_lead) if v.shape[d] != 1]  # along others all entries meet the same
    v = v.reshape(*[v.shape[d] for d in dims], *v.shape[n_lead:])
    if not dims:
        return v.reshape(*(1,) * (sp_mat.n_batch + 1), *v.shape)
    return gathered(v, columns_of(coordinates(sp_mat.indices, sp_mat.shape), dims))


def stored_data(mat: BCOO) -> Any:
    """Which elements of the data are not padding, in a shape that broadcasts to that of the data."""
    return hnp.expand_dims(stored_mask(mat), tuple(range(mat.n_batch + 1, mat.data.ndim)))


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays, with broadcasting of dimensions of size 1.

    The entries of both are sorted together; each array's entries are summed at each coordinate, and the sums
    multiplied.

    Raises: ShapeMismatch: the shapes do not broadcast, or have different ranks. NotSparse: the arrays have different
        numbers of dense dimensions.
    """
    if lhs.ndim != rhs.ndim:
        raise ShapeMismatch(f"bcoo_multiply_sparse: ranks must be equal, got {lhs} and {rhs}.")
    if lhs.n_dense != rhs.n_dense:
        raise NotSparse(
            f"bcoo_multiply_sparse: both must have as many dense dimensions, got {lhs} and {rhs}.",
            hint="bcoo_update_layout(x, n_dense=0).",
        )
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    n_batch, dims = min(lhs.n_batch, rhs.n_batch), range(lhs.ndim)
    lhs, rhs = [
        bcoo_broadcast_in_dim(bcoo_update_layout(x, n_batch=n_batch), shape=shape, broadcast_dimensions=dims)
        for x in (lhs, rhs)
    ]
    data_l, data_r = _promoted(lhs.data, rhs.data)
    both = merged_entries(lhs.replaced(data=data_l), rhs.replaced(data=data_r))
    sizes, nse = both.sparse_shape, both.nse
    distinct = distinct_entries(both.indices, sizes)
    own = lax.broadcasted_iota(np.int32, both.indices.shape[:-1], n_batch) < lhs.nse
    left, right = [distinct.summed(masked(both.data, keep), nse) for keep in (own, ~own)]
    met = [distinct.summed(keep.astype(np.int32), nse) > 0 for keep in (own, ~own)]
    indices = distinct.compressed(nse, sizes)
    indices = hnp.where((met[0] & met[1])[..., None], indices, size_vector(indices, sizes))
    return bcoo_sum_duplicates(BCOO((left * right, indices), shape=shape), nse=min(lhs.nse, rhs.nse))


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over dimensions: entries drop their indices in these, which may leave several entries per coordinate.

    Raises: BadAxis: an axis is none of the array.
    """
    axes = sorted(set(whole_numbers("bcoo_reduce_sum: an axis", axes)))
    if axes and not 0 <= axes[0] <= axes[-1] < mat.ndim:
        raise BadAxis(f"bcoo_reduce_sum: axes {tuple(axes)} are none of {mat}.")
    n, n_lead = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.data, mat.indices
    kept = [k for k in range(mat.n_sparse) if k + n not in axes]
    dense, batch = [d - mat.n_sparse + 1 for d in axes if d >= n_lead], [d for d in axes if d < n]
    data = data.sum(tuple(dense), dtype=data.dtype) if dense else data
    if len(kept) < mat.n_sparse:
        keep = stored_mask(mat)
        data = masked(data, keep)
        indices = columns_of(hnp.where(keep[..., None], indices, size_vector(indices, mat.sparse_shape)), kept)
    others = [d for d in range(n) if d not in batch]
    nse = mat.nse * math.prod([mat.shape[d] for d in batch])

    def beside(x: Any) -> Any:
        """A buffer in which the entries of all positions that are summed stand beside each other."""
        x = hnp.broadcast_to(x, [mat.shape[d] if d in batch else size for d, size in enumerate(x.shape)])
        x = x.transpose(*others, *batch, *range(n, x.ndim))
        return x.reshape(*x.shape[: len(others)], nse, *x.shape[n + 1 :])

    shape = [size for d, size in enumerate(mat.shape) if d not in axes]
    return BCOO((beside(data), beside(indices)), shape=shape)


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None,
) -> BCOO:
    """``lax.conv_general_dilated`` in one dimension with one channel: every pair of entries makes an entry of the
    result.

    Args:
        precision, out_sharding: ignored.

    Raises: NotSparse: there are several channels, groups or dimensions, or strides or dilations other than 1.
    """
    ones = [window_strides, lhs_dilation or (1,), rhs_dilation or (1,), (feature_group_count, batch_group_count)]
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    plain = all([list(x) == sorted(x) for x in (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)])
    if lhs.ndim != 3 or {*lhs.shape[:2], *rhs.shape[:2]} != {1} or any([{*x} != {1} for x in ones]) or not plain:
        raise NotSparse(
            f"conv_general_dilated: of sparse arrays along one dimension, of one channel, got {lhs} and {rhs}.",
            hint="sparse.todense(x) gives the dense array.",
        )
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], window_strides, padding)
    ((low, high),) = padding
    x, y = _entries_of_line(lhs), _entries_of_line(rhs)
    dtype = preferred_element_type or hnp.promote_types(x.dtype, y.dtype)
    length = max(0, lhs.shape[2] + low + high - rhs.shape[2] + 1)
    position = x.indices[:, None] - y.indices[None, :] + low
    keep = (stored_mask(x)[:, None] & stored_mask(y)[None, :]) & (position[..., 0] >= 0) & (position[..., 0] < length)
    data = masked(x.data[:, None].astype(dtype) * y.data[None, :].astype(dtype), keep).reshape(1, 1, -1)
    indices = hnp.where(keep[..., None], position, length).reshape(1, 1, -1, 1)
    return BCOO((data, indices), shape=(1, 1, length))


def _entries_of_line(x: Any) -> BCOO:
    """An array of shape ``[1, 1, n]`` as a sparse vector; of a dense one all elements are entries."""
    if not isinstance(x, BCOO):
        x = hnp.asarray(x)
        line = hnp.arange(x.shape[2], dtype=np.int32)[:, None]
        return BCOO((x[0, 0], line), shape=x.shape[2:])
    x = bcoo_update_layout(x, n_batch=0, n_dense=0)
    x = bcoo_squeeze(x, dimensions=(0, 1))
    return x.replaced(indices=x.indices.astype(hnp.promote_types(x.indices.dtype, np.int32)))
