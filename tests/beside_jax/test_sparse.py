"""Functions of sparse arrays beside JAX's, with duplicates, padding, no elements, batch and dense dimensions."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

pytestmark = [pytest.mark.peer, pytest.mark.sweep, pytest.mark.filterwarnings("ignore")]

# shape, number of batch and of dense dimensions, number of entries
LAYOUTS = [
    ((5,), 0, 0, 4), ((3, 4), 0, 0, 7), ((3, 4), 1, 0, 3), ((3, 4), 0, 1, 4), ((2, 3, 4), 1, 1, 3), ((0, 4), 0, 0, 2),
    ((2, 0, 4), 1, 0, 1),
]


def buffers(layout, seed):
    """Data and indices, with duplicates and padding."""
    shape, n_batch, n_dense, nse = layout
    rng = np.random.default_rng([seed, *shape, n_batch, n_dense])
    batch, sizes, dense = shape[:n_batch], shape[n_batch:len(shape) - n_dense], shape[len(shape) - n_dense:]
    data = rng.integers(-4, 5, (*batch, nse, *dense)).astype("float32")
    indices = rng.integers(0, np.array(sizes, int) + 1, (*batch, nse, len(sizes))).astype("int32")
    padding = (indices >= np.array(sizes, int)).any(-1, keepdims=True)
    return data, np.where(padding, np.array(sizes, "int32"), indices)


def last(x):
    return (((x.ndim - 1,), (0,)), ((), ()))


def contracted(j, x):
    return j.sparse.bcoo_dot_general(x, j.np.ones((x.shape[-1], 2)), dimension_numbers=last(x))


def same_kinds(x):
    n, m = x.n_batch, x.n_batch + x.n_sparse
    return (*range(n)[::-1], *range(n, m)[::-1], *range(m, x.ndim)[::-1])


FUNCTIONS = {
    "todense": lambda j, x: x.todense(),
    "sum_duplicates": lambda j, x: x.sum_duplicates(),
    "sum_duplicates, nse": lambda j, x: x.sum_duplicates(nse=x.nse + 2),
    "sum_duplicates, zeros kept": lambda j, x: x.sum_duplicates(remove_zeros=False),
    "sort_indices": lambda j, x: x.sort_indices(),
    "transpose": lambda j, x: j.sparse.bcoo_transpose(x, permutation=same_kinds(x)),
    "reduce_sum": lambda j, x: j.sparse.bcoo_reduce_sum(x, axes=(x.ndim - 1,)),
    "reduce_sum, first": lambda j, x: j.sparse.bcoo_reduce_sum(x, axes=(0,)),
    "broadcast_in_dim": lambda j, x: j.sparse.bcoo_broadcast_in_dim(
        x, shape=(*x.shape[:x.n_batch], 1, *x.shape[x.n_batch:]),
        broadcast_dimensions=(*range(x.n_batch), *range(x.n_batch + 1, x.ndim + 1))),
    "concatenate": lambda j, x: j.sparse.bcoo_concatenate([x, x], dimension=x.n_batch),
    "concatenate, first": lambda j, x: j.sparse.bcoo_concatenate([x, x], dimension=0),
    "reshape": lambda j, x: j.sparse.bcoo_reshape(
        x, new_sizes=(*x.shape[:x.n_batch], int(np.prod(x.shape[x.n_batch:x.ndim - x.n_dense])),
                      *x.shape[x.ndim - x.n_dense:])),
    "rev": lambda j, x: j.sparse.bcoo_rev(x, dimensions=tuple(range(x.ndim))),
    "slice": lambda j, x: j.sparse.bcoo_slice(
        x, start_indices=[min(1, n) for n in x.shape], limit_indices=x.shape),
    "dynamic_slice": lambda j, x: j.sparse.bcoo_dynamic_slice(
        x, [np.int32(1)] * x.ndim, slice_sizes=[max(0, n - 1) for n in x.shape]),
    "gather": lambda j, x: j.sparse.sparsify(lambda x: x[np.array([0, 1, 0])])(x),
    "index": lambda j, x: x[0] if x.shape[0] else x,
    "newaxis": lambda j, x: x[None],
    "multiply_dense": lambda j, x: j.sparse.bcoo_multiply_dense(
        x, j.np.arange(1.0, np.prod(x.shape) + 1, dtype="float32").reshape(x.shape)),
    "multiply_sparse": lambda j, x: j.sparse.bcoo_multiply_sparse(x, x),
    "extract": lambda j, x: j.sparse.bcoo_extract(
        x, j.np.arange(np.prod(x.shape), dtype="float32").reshape(x.shape)),
    "dot_general": contracted,
    "matmul": lambda j, x: x @ j.np.ones((x.shape[-1], 2)),
    "matmul, mirrored": lambda j, x: j.np.ones((2, x.shape[0])) @ x,
    "update_layout": lambda j, x: j.sparse.bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None),
    "update_layout, dense": lambda j, x: j.sparse.bcoo_update_layout(x, n_batch=0, n_dense=1, on_inefficient=None),
    "fromdense": lambda j, x: j.sparse.bcoo_fromdense(x.todense(), nse=20, n_batch=x.n_batch, n_dense=x.n_dense),
    "fromdense, few": lambda j, x: j.sparse.bcoo_fromdense(x.todense(), nse=2, n_batch=x.n_batch, n_dense=x.n_dense),
    "add": lambda j, x: j.sparse.sparsify(lambda x, y: x + y)(x, x.sort_indices()),
    "sub": lambda j, x: j.sparse.sparsify(lambda x: x - 2 * x)(x),
    "sum": lambda j, x: x.sum(),
    "sum over an axis": lambda j, x: x.sum(0),
    "astype": lambda j, x: x.astype("int32"),
    "abs": lambda j, x: abs(x),
    "bcsr": lambda j, x: j.sparse.BCSR.from_bcoo(x.sum_duplicates()),
    "bcsr, todense": lambda j, x: j.sparse.BCSR.from_bcoo(x.sort_indices()).todense(),
    "bcsr, extract": lambda j, x: j.sparse.bcsr_extract(
        (b := j.sparse.BCSR.from_bcoo(x.sum_duplicates())).indices, b.indptr,
        j.np.arange(np.prod(x.shape), dtype="float32").reshape(x.shape)),
    "bcsr, to bcoo": lambda j, x: j.sparse.BCSR.from_bcoo(x.sum_duplicates()).to_bcoo(),
    "bcsr, product": lambda j, x: j.sparse.BCSR.from_bcoo(x.sum_duplicates()) @ j.np.ones((x.shape[-1], 2)),
    "bcsr, fromdense": lambda j, x: j.sparse.bcsr_fromdense(
        x.todense(), nse=12, n_batch=x.n_batch, n_dense=x.n_dense),
    "gradient of the entries": lambda j, x: j.sparse.grad(lambda x: (x.todense() ** 2).sum())(x),
    "gradient of a product": lambda j, x: j.sparse.grad(
        lambda x: (contracted(j, x) ** 2 * j.np.arange(1.0, 3.0)).sum())(x),
    "jacobian": lambda j, x: j.sparse.jacrev(lambda x: contracted(j, x).sum(-1))(x),
    "vmap": lambda j, x: j.lib.vmap(lambda x: x.sum_duplicates(nse=x.nse).todense())(x),
    "jit of a sum of duplicates": lambda j, x: j.lib.jit(lambda x: x.sum_duplicates(nse=max(x.nse, 1)))(x),
}


class Side:
    """One library."""

    def __init__(self, root):
        self.lib, self.np, self.sparse = [
            importlib.import_module(f"{root}{part}") for part in ("", ".numpy", ".experimental.sparse")
        ]

    def array(self, layout, seed):
        data, indices = buffers(layout, seed)
        return self.sparse.BCOO((self.np.asarray(data), self.np.asarray(indices)), shape=layout[0])

    def call(self, name, layout, seed):
        """The result, or the error."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return FUNCTIONS[name](self, self.array(layout, seed))
            except Exception as error:
                return error


def dense(x):
    return np.asarray(x.todense() if hasattr(x, "todense") else x)


# JAX stores the padding of the first array as entries of the second, where the indices of padding lie in the result.
JOINED = ("concatenate", "concatenate, first")


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_what_it_gives_in_jax(name, layout):
    ours, theirs = Side("handlax"), Side("jax")
    x, y = ours.call(name, layout, 1), theirs.call(name, layout, 1)
    if isinstance(y, Exception):
        pytest.skip("JAX refuses it")
    assert not isinstance(x, Exception), x
    assert type(x).__name__ == type(y).__name__ or not hasattr(y, "indices")
    assert dense(x).dtype == dense(y).dtype and dense(x).shape == dense(y).shape
    if name in JOINED:
        part, axis = dense(ours.array(layout, 1)), 0 if name.endswith("first") else layout[1]
        np.testing.assert_array_equal(dense(x), np.concatenate([part, part], axis))
    else:
        np.testing.assert_allclose(dense(x), dense(y), rtol=1e-5)
