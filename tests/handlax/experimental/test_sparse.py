"""Sparse arrays: every function gives what the dense one gives, with its derivatives, in every layout.

Layouts are drawn with duplicates, with padding, and with batch dimensions that the buffers have once.
"""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import (
    BadCall,
    ConcretizationError,
    DTypeMismatch,
    Immutable,
    NotAFunction,
    NotSparse,
    ShapeMismatch,
)
from handlax.experimental import sparse
from handlax.experimental.sparse import BCOO, BCSR

SHAPES = (5,), (3, 4), (2, 3, 2)
LAYOUTS = [(shape, n_batch, n_dense) for shape in SHAPES for n_batch in range(len(shape) + 1)
           for n_dense in range(len(shape) + 1 - n_batch)]


def drawn(shape, n_batch=0, n_dense=0, nse=4, once=(), dtype=np.float32, seed=0):
    """Draw an array with duplicates and padding; ``once``: batch dimensions of size 1 of its data, of its indices."""
    rng = np.random.default_rng([seed, *shape, n_batch, n_dense])
    n_sparse = len(shape) - n_batch - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:n_batch + n_sparse], shape[n_batch + n_sparse:]
    batch_d, batch_i = [tuple(1 if (d, b) in once else n for d, n in enumerate(batch)) for b in ("data", "indices")]
    data = rng.integers(-4, 5, (*batch_d, nse, *dense)).astype(dtype)
    indices = rng.integers(0, np.array(sizes, int) + 1, (*batch_i, nse, n_sparse))
    return BCOO((hnp.asarray(data), hnp.asarray(indices.astype(np.int32))), shape=shape)


def oracle(x):
    """The dense array, by NumPy and the definition."""
    y = np.zeros(x.shape, x.dtype)
    lead = x.shape[:x.n_batch]
    data, indices = np.broadcast_to(x.data, (*lead, *x.data.shape[x.n_batch:])), np.broadcast_to(
        x.indices, (*lead, *x.indices.shape[x.n_batch:]))
    for b in np.ndindex(*lead):
        for e in range(x.nse):
            if (indices[b][e] < x.sparse_shape).all():
                y[(*b, *indices[b][e])] += data[b][e]
    return y


def contracted(x, v, d):
    """``x`` contracted with a vector along dimension d."""
    dot = sparse.bcoo_dot_general if isinstance(x, BCOO) else lax.dot_general
    return dot(x, v, dimension_numbers=(((d,), (0,)), ((), ())))


def mirrored(x, v, d):
    """A matrix contracted with ``x`` along dimension d."""
    numbers = (((1,), (d,)), ((), ()))
    dot = sparse.bcoo_dot_general if isinstance(x, BCOO) else lax.dot_general
    return dot(v, x, dimension_numbers=numbers)


def swapped(x):
    """The dimensions of each kind in reverse order."""
    n, m = x.n_batch, x.n_batch + x.n_sparse
    return [*range(n)[::-1], *range(n, m)[::-1], *range(m, x.ndim)[::-1]]


def cut(x):
    return tuple([slice(n > 2, None, 1 + (n > 3)) for n in x.shape])


S = sparse.sparsify
# name -> (of a sparse array the function of it and of the dense one, where it applies)
FUNCTIONS = {
    "todense": (lambda s: lambda x: x, None),
    "mul scalar": (lambda s: S(lambda x: x * 3), None),
    "mul itself": (lambda s: S(lambda x: x * x), None),
    "mul dense": (lambda s: S(lambda x: x * hnp.arange(1.0, s.size + 1, dtype=np.float32).reshape(s.shape)), None),
    "mul row": (lambda s: S(lambda x: x * hnp.arange(2.0, s.shape[-1] + 2, dtype=np.float32)), None),
    "div": (lambda s: S(lambda x: x / hnp.arange(1.0, s.size + 1, dtype=np.float32).reshape(s.shape)), None),
    "sin": (lambda s: S(hnp.sin), None),
    "neg": (lambda s: S(hnp.negative), None),
    "power": (lambda s: S(lambda x: x**3), None),
    "relu": (lambda s: S(lambda x: hnp.maximum(x, 0.0)), None),
    "astype": (lambda s: S(lambda x: x.astype(np.float64)), None),
    "add": (lambda s: S(lambda x: x + 2 * x), None),
    "add dense": (lambda s: S(lambda x: x + hnp.ones(s.shape, np.float32)), None),
    "sub": (lambda s: S(lambda x: x - 2 * x), None),
    "sum": (lambda s: S(lambda x: x.sum()), None),
    **{f"sum {axes}": (lambda s, axes=axes: S(lambda x: x.sum(axes)), lambda s, axes=axes: max(axes) < s.ndim)
       for axes in ((0,), (1,), (2,), (0, 2), (1, 2))},
    **{f"contract {d}": (lambda s, d=d: partial(contracted, v=hnp.arange(s.shape[d]) + 1.0, d=d),
                         lambda s, d=d: d < s.ndim) for d in range(3)},
    **{f"mirrored {d}": (lambda s, d=d: partial(mirrored, v=hnp.arange(2.0 * s.shape[d]).reshape(2, -1), d=d),
                         lambda s, d=d: d < s.ndim) for d in range(3)},
    "transpose": (lambda s: S(lambda x: x.transpose(swapped(s))), None),
    "rev": (lambda s: S(lambda x: lax.rev(x, tuple(range(s.ndim)))), None),
    "slice": (lambda s: S(lambda x: x[cut(s)]), None),
    "first": (lambda s: S(lambda x: x[1]), None),
    "last": (lambda s: S(lambda x: x[..., -1]), None),
    "rows": (lambda s: S(lambda x: x[hnp.array([1, 0, 1])]), None),
    "dynamic": (lambda s: S(lambda x: lax.dynamic_slice(x, [hnp.int32(1)] * s.ndim, [n - 1 for n in s.shape])), None),
    "expand": (lambda s: S(lambda x: x[None]), None),
    "stretch": (lambda s: S(lambda x: lax.broadcast_in_dim(x, (2, *s.shape), range(1, s.ndim + 1))), None),
    "concatenate": (lambda s: S(lambda x: hnp.concatenate([x, 2 * x])), lambda s: s.n_dense < s.ndim),
    "split": (lambda s: S(lambda x: hnp.split(x, [1])[1]), None),
    "reshape": (lambda s: S(lambda x: x.reshape(-1)), lambda s: s.n_sparse == s.ndim),
}
CASES = [(name, *layout) for name in FUNCTIONS for layout in LAYOUTS]


def densely(f, s):
    """The function on dense arrays, which is the same text."""
    return lambda data: hnp.asarray(f(s.replaced(data=data).todense()))


def sparsely(f, s):
    return lambda data: sparse.todense(f(s.replaced(data=data)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_sparse_array_is_that_of_the_dense_one_and_so_are_its_derivatives(name):
    make, applies = FUNCTIONS[name]
    for shape, n_batch, n_dense in LAYOUTS:
        s = drawn(shape, n_batch, n_dense)
        if applies is not None and not applies(s):
            continue
        f = make(s)
        want, ours = densely(f, s), sparsely(f, s)
        (y, pull), (z, push) = hx.vjp(want, s.data), hx.vjp(ours, s.data)
        np.testing.assert_allclose(z, y, rtol=1e-5, atol=1e-5, err_msg=str(s))
        if shape == SHAPES[-1] and n_batch + n_dense > 1:
            continue  # enough was differentiated
        ct = hnp.arange(1.0, y.size + 1, dtype=y.dtype).reshape(y.shape)
        np.testing.assert_allclose(push(ct)[0], pull(ct)[0], rtol=1e-5, atol=1e-5, err_msg=str(s))
        tangent = hnp.cos(s.data)
        forward = [hx.jvp(g, (s.data,), (tangent,))[1] for g in (ours, want)]
        np.testing.assert_allclose(*forward, rtol=1e-5, atol=1e-5, err_msg=str(s))


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), LAYOUTS)
def test_the_dense_array_is_the_sum_of_the_entries_and_what_is_extracted_its_adjoint(shape, n_batch, n_dense):
    for once in (set(), *[{(d, buffer)} for d in range(n_batch) for buffer in ("data", "indices")]):
        x = drawn(shape, n_batch, n_dense, once=once)
        assert (x.todense() == oracle(x)).all()
        y = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
        taken = sparse.bcoo_extract(x, y, assume_unique=True)
        repeated = np.broadcast_to(x.data, taken.data.shape)
        assert (taken.data * repeated).sum() == (oracle(x) * y).sum()
        assert (sparse.bcoo_extract(x, y, assume_unique=False).todense() == np.where(oracle(
            x.replaced(data=hnp.ones_like(x.data))) != 0, y, 0)).all()


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), LAYOUTS)
def test_other_layouts_are_the_same_array(shape, n_batch, n_dense):
    x = drawn(shape, n_batch, n_dense)
    same = [x.sort_indices(), x.sum_duplicates(), x.sum_duplicates(remove_zeros=False), x.sum_duplicates(nse=12)]
    same += [x.update_layout(n_batch=b, n_dense=d, on_inefficient=None)
             for b, d in itertools.product(range(len(shape) + 1), repeat=2) if b + d <= len(shape)]
    same += [BCOO.fromdense(x.todense(), n_batch=n_batch, n_dense=n_dense)]
    same += [hx.jit(partial(BCOO.fromdense, n_batch=n_batch, n_dense=n_dense, nse=math.prod(shape)))(x.todense())]
    for y in same:
        assert (y.todense() == x.todense()).all(), y
    for y in same[1:4]:
        for rows in [rows.tolist() for b in np.ndindex(y.indices.shape[:-2]) for rows in [y.indices[b]]]:
            assert rows == sorted(rows)
            real = [tuple(row) for row in rows if all(i < n for i, n in zip(row, y.sparse_shape))]
            assert len(real) == len(set(real)) or not y.n_sparse


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), [(s, b, d) for s, b, d in LAYOUTS if len(s) - b - d == 2])
def test_rows_are_the_same_array_and_have_the_same_products(shape, n_batch, n_dense):
    x = drawn(shape, n_batch, n_dense)
    y = BCSR.from_bcoo(x)
    assert (y.todense() == x.todense()).all() and (y.to_bcoo().todense() == x.todense()).all()
    assert (sparse.bcsr_sum_duplicates(y).todense() == x.todense()).all()
    v = hnp.arange(1.0, shape[-1] + 1)
    assert (y @ v == x.todense() @ v).all()
    assert isinstance(y * 2, BCSR) and isinstance(S(hnp.sin)(y), BCSR)
    assert (BCSR.fromdense(x.todense(), n_batch=n_batch, n_dense=n_dense).todense() == x.todense()).all()


PAIRS = [((3, 4), (4, 2)), ((3, 4), (4,)), ((4,), (4, 3)), ((4,), (4,))]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_a_product_of_two_sparse_arrays_is_sparse(left, right):
    x, y = drawn(left), drawn(right, seed=1)
    z = x @ y
    assert isinstance(z, BCOO) if z.shape else True
    assert (sparse.todense(z) == x.todense() @ y.todense()).all()
    f = lambda a, b: (sparse.todense(x.replaced(data=a) @ y.replaced(data=b)) ** 2).sum()
    g = lambda a, b: ((x.replaced(data=a).todense() @ y.replaced(data=b).todense()) ** 2).sum()
    for found, want in zip(hx.grad(f, (0, 1))(x.data, y.data), hx.grad(g, (0, 1))(x.data, y.data)):
        np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize(("left", "right", "n", "m"), [
    ((3, 4), (3, 4), 0, 0), ((3, 4), (1, 4), 0, 0), ((3, 1), (1, 4), 0, 0), ((2, 3, 4), (2, 3, 4), 1, 0),
    ((2, 3, 4), (2, 1, 4), 1, 1)])
def test_an_elementwise_product_of_two_sparse_arrays_is_sparse(left, right, n, m):
    x, y = drawn(left, n), drawn(right, m, seed=1)
    assert (sparse.bcoo_multiply_sparse(x, y).todense() == x.todense() * y.todense()).all()
    if n == m == 0 and left == right:
        assert (hx.jit(lambda x, y: x * y)(x, y).todense() == x.todense() * y.todense()).all()


@pytest.mark.parametrize("batch", [0, 1])
def test_batched_products_contract_each_position(batch):
    x, y = drawn((2, 3, 4), 1), drawn((2, 4, 3), 1, seed=1)
    numbers = (((2,), (1,)), ((0,), (0,)))
    want = lax.dot_general(x.todense(), y.todense(), numbers)
    for a, b in ((x, y), (x, y.todense()), (x.todense(), y))[batch:]:
        assert (sparse.todense(sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)) == want).all()


def test_a_sampled_product_is_that_at_the_places():
    rng = np.random.default_rng(0)
    a, b = [rng.integers(-3, 4, s).astype(np.float32) for s in ((2, 3, 5), (2, 5, 4))]
    numbers = (((2,), (1,)), ((0,), (0,)))
    want = lax.dot_general(a, b, numbers)
    for n_batch, n_dense in ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1)):
        s = drawn((2, 3, 4), n_batch, n_dense)
        found = sparse.bcoo_dot_general_sampled(a, b, s.indices, dimension_numbers=numbers)
        assert (found == sparse.bcoo_extract(s, want, assume_unique=True).data).all()


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), [(s, b, d) for s, b, d in LAYOUTS if b])
def test_vmap_maps_batch_dimensions(shape, n_batch, n_dense):
    x = drawn(shape, n_batch, n_dense, once={(0, "indices")})
    total = sparse.todense(hx.vmap(lambda row: sparse.todense((row * 2).sum()))(x))
    assert (total == 2 * x.todense().sum(tuple(range(1, len(shape))))).all()
    assert (hx.vmap(S(hnp.sin))(x).todense() == hnp.sin(x.todense())).all()
    with pytest.raises(NotSparse, match="a sparse array is mapped along a batch dimension, got axis=1"):
        hx.vmap(lambda x: x, in_axes=1)(drawn((3, 4), 1))


@pytest.mark.parametrize(("shape", "n_batch", "n_dense"), LAYOUTS)
def test_the_derivative_of_fromdense_is_that_of_the_entries_which_are_stored(shape, n_batch, n_dense):
    x = drawn(shape, n_batch, n_dense).todense()
    y, dy = hx.jvp(lambda x: BCOO.fromdense(x, nse=12, n_batch=n_batch, n_dense=n_dense).todense(), (x,), (x * 0 + 1,))
    stored = (np.asarray(x) != 0).any(tuple(range(len(shape) - n_dense, len(shape))), keepdims=True)
    assert (y == x).all() and (dy == (stored | (n_batch + n_dense == len(shape)))).all()


def test_derivatives_by_a_sparse_array_are_sparse():
    x = BCOO.fromdense(hnp.array([[0.0, 1.0], [2.0, 0.0]]))
    f = lambda x, v: S(lambda x, v: hnp.sin(x) @ v)(x, v)
    v = hnp.array([1.0, 3.0])
    g = sparse.grad(lambda x, v: f(x, v).sum())(x, v)
    assert isinstance(g, BCOO) and (g.data == hnp.cos(x.data) * v[x.indices[:, 1]]).all()
    value, (g, gv) = sparse.value_and_grad(lambda x, v: f(x, v).sum(), (0, 1))(x, v)
    assert value == f(x, v).sum() and (gv == hnp.sin(x.todense()).sum(0)).all()
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        j = jacobian(f)(x, v)
        assert isinstance(j, BCOO) and j.shape == (2, 2, 2)
        np.testing.assert_allclose(j.todense() != 0, [[[0, 1], [0, 0]], [[0, 0], [1, 0]]])
    assert sparse.grad(lambda x: (x.sum(), "aux"), has_aux=True)(x)[1] == "aux"


@pytest.mark.parametrize("format", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_every_format_makes_zeros_and_diagonals(format):
    for n, m, k in ((3, 4, 0), (3, 4, 2), (4, 3, -1), (2, 2, 5), (3, 0, 0)):
        x = sparse.eye(n, m, k, sparse_format=format)
        assert (x.todense() == np.eye(n, m, k)).all()
        assert (x.T.todense() == np.eye(n, m, k).T).all() if format != "bcsr" else True
        assert (x @ hnp.arange(float(m)) == np.eye(n, m, k) @ np.arange(m)).all()
        assert not sparse.empty((n, m), sparse_format=format).todense().any()
    assert sparse.eye(3, sparse_format=format).dtype == np.float32


@pytest.mark.parametrize("format", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices_have_products_with_derivatives(format):
    rng = np.random.default_rng(0)
    dense = hnp.asarray(np.where(rng.random((4, 3)) < 0.5, rng.normal(size=(4, 3)), 0).astype(np.float32))
    x = format.fromdense(dense)
    assert (x.todense() == dense).all()
    for v in (rng.normal(size=3).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32)):
        np.testing.assert_allclose(x @ v, dense @ v, rtol=1e-5)
        g = sparse.grad(lambda x: ((x @ v) ** 2).sum())(x)
        want = hx.grad(lambda d: ((d @ v) ** 2).sum())(dense)
        np.testing.assert_allclose(g.todense(), np.where(dense != 0, want, 0), rtol=1e-4)
    assert (x.T.todense() == dense.T).all()


@pytest.mark.parametrize("format", [BCOO, BCSR, sparse.COO, sparse.CSR, sparse.CSC])
def test_as_many_entries_are_stored_as_are_asked_for(format):
    dense = hnp.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    take = partial(format.fromdense, nse=5, index_dtype=np.int64)
    for x in (take(dense), hx.jit(take)(dense)):
        indices = [y for y in hx.tree.leaves(x) if y.dtype != dense.dtype]
        assert x.nse == 5 and (x.todense() == dense).all() and {y.dtype for y in indices} == {np.dtype(np.int64)}


def test_functions_of_matrices_are_their_products():
    dense = hnp.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    coo, csr = sparse.coo_fromdense(dense), sparse.csr_fromdense(dense, nse=4)
    v, w, B = hnp.arange(3.0), hnp.arange(2.0), hnp.arange(6.0).reshape(3, 2)
    for m, vec, mat, todense in ((coo, sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense),
                                 (csr, sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense)):
        assert (vec(m, v) == dense @ v).all() and (vec(m, w, transpose=True) == w @ dense).all()
        assert (mat(m, B) == dense @ B).all() and (todense(m) == dense).all()
    assert sparse.csr_fromdense(dense, nse=4).nse == 4


def test_arrays_of_scipy_are_read():
    m = scipy.sparse.random(5, 4, 0.4, random_state=0, format="csr", dtype=np.float32)
    assert (BCOO.from_scipy_sparse(m).todense() == m.toarray()).all()
    assert (BCSR.from_scipy_sparse(m).todense() == m.toarray()).all()


def test_a_convolution_of_sparse_lines():
    x, y = drawn((1, 1, 7)), drawn((1, 1, 3), seed=1)
    for padding in ([(0, 0)], [(2, 1)], "SAME"):
        want = lax.conv_general_dilated(x.todense(), y.todense(), (1,), padding)
        for a, b in ((x, y), (x, y.todense()), (x.todense(), y)):
            found = sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding=padding)
            np.testing.assert_allclose(found.todense(), want, rtol=1e-6)


def test_random_arrays_have_the_entries_that_are_asked_for():
    x = sparse.random_bcoo(hx.random.key(0), (3, 20, 2), n_batch=1, n_dense=1, nse=0.5, sorted_indices=True)
    assert (x.nse, x.n_batch, x.n_dense, x.indices_sorted) == (10, 1, 1, True)
    assert all(len(set(rows)) == 10 and rows == sorted(rows) for rows in x.indices[..., 0].tolist())


def test_operators_of_numpy_and_of_arrays_give_way():
    x = BCOO.fromdense(hnp.eye(2))
    for two in (2, np.float32(2), hnp.float32(2)):
        assert isinstance(two * x, BCOO)
    assert ((np.ones(2) @ x) == 1).all() and ((hnp.ones(2) @ x) == 1).all()


def test_the_number_of_entries_has_to_be_known():
    x = BCOO.fromdense(hnp.eye(2))
    with pytest.raises(ConcretizationError, match=r"hint: pass it: nse="):
        hx.jit(BCOO.fromdense)(hnp.eye(2))
    with pytest.raises(ConcretizationError, match="bcoo_sum_duplicates: the number of stored entries"):
        hx.jit(lambda x: x.sum_duplicates())(x)


@pytest.mark.parametrize(("error", "match", "call"), [
    (ShapeMismatch, "buffers are data", lambda x: BCOO((x.data, x.indices), shape=(2,))),
    (DTypeMismatch, "indices are integers", lambda x: BCOO((x.data, x.indices * 1.0), shape=(2, 2))),
    (Immutable, "sparse arrays are immutable", lambda x: setattr(x, "data", 0)),
    (NotSparse, "exp: it has no sparse result, got BCOO", lambda x: S(hnp.exp)(x)),
    (NotSparse, "sort: it has no sparse result", lambda x: S(hnp.sort)(x)),
    (NotAFunction, "sparsify", lambda x: S(3)),
    (BadCall, "the first argument is a BCOO", lambda x: sparse.bcoo_extract(x.todense(), x.todense())),
    (NotSparse, "integer_pow", lambda x: x**-1),
    (NotSparse, "div: it has", lambda x: 1 / x),
    (NotSparse, "add: it has", lambda x: x + 1),
    (sparse.SparseEfficiencyError, "stores many zeros", lambda x: x.update_layout(n_batch=1)),
    (NotSparse, "are permuted among themselves", lambda x: x.update_layout(n_batch=1, on_inefficient=None).T),
    (ShapeMismatch, "paired sizes must agree", lambda x: sparse.bcoo_dot_general(
        x, hnp.ones(3), dimension_numbers=(((0,), (0,)), ((), ())))),
])
def test_what_has_no_meaning_is_refused(error, match, call):
    with pytest.raises(error, match=match):
        call(BCOO.fromdense(hnp.eye(2)))


def test_an_inefficient_layout_is_warned_of():
    with pytest.warns(sparse.SparseEfficiencyWarning, match="stores many zeros"):
        BCOO.fromdense(hnp.eye(2)).update_layout(n_dense=1, on_inefficient="warn")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_empty_arrays(shape):
    for n_batch, n_dense in itertools.product(range(len(shape) + 1), repeat=2):
        if n_batch + n_dense <= len(shape):
            x = BCOO.fromdense(hnp.zeros(shape), n_batch=n_batch, n_dense=n_dense)
            assert x.todense().shape == shape and (x * 2).sum_duplicates(nse=2).todense().shape == shape
            assert sparse.todense(x.sum(0)).shape == shape[1:]
            assert (x @ hnp.zeros((shape[-1], 2))).shape == (*shape[:-1], 2)


def test_a_sparse_system_is_solved_with_derivatives():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((6, 6)) < 0.4, rng.normal(size=(6, 6)), 0) + 4 * np.eye(6)
    x, b = sparse.CSR.fromdense(hnp.asarray(dense)), hnp.asarray(rng.normal(size=6))
    solve = lambda data, b: sparse.linalg.spsolve(data, x.indices, x.indptr, b)
    want = lambda data, b: hnp.linalg.solve(x.replaced(data=data).todense(), b)
    np.testing.assert_allclose(solve(x.data, b), np.linalg.solve(dense, b), rtol=1e-10)
    np.testing.assert_allclose(hx.jit(solve)(x.data, b), np.linalg.solve(dense, b), rtol=1e-10)
    total = lambda f: lambda *args: (f(*args) ** 2).sum()
    found, expected = [hx.grad(total(f), (0, 1))(x.data, b) for f in (solve, want)]
    for g, h in zip(found, expected):
        np.testing.assert_allclose(g, h, rtol=1e-8)
    found, expected = [hx.jvp(f, (x.data, b), (hnp.cos(x.data), b))[1] for f in (solve, want)]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    rows = hnp.stack([b, 2 * b])
    np.testing.assert_allclose(hx.vmap(solve, (None, 0))(x.data, rows)[1], 2 * solve(x.data, b), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_eigenvalues_are_those_of_the_dense_matrix(dtype):
    rng = np.random.default_rng(0)
    half = np.where(rng.random((40, 40)) < 0.2, rng.normal(size=(40, 40)), 0).astype(dtype)
    dense = half + half.T + np.diag(np.arange(40)).astype(dtype)
    A, X = BCOO.fromdense(hnp.asarray(dense)), hnp.asarray(rng.normal(size=(40, 3)).astype(dtype))
    want = np.linalg.eigvalsh(dense)[::-1][:3]
    for given in (A, A.todense(), lambda x: A @ x):
        theta, U, count = sparse.linalg.lobpcg_standard(given, X)
        np.testing.assert_allclose(theta, want, rtol=100 * np.finfo(dtype).eps)
        np.testing.assert_allclose(dense @ U, U * theta, atol=0.01 if dtype == np.float32 else 1e-10)
        assert 0 < count < 100


@pytest.mark.parametrize("n_dense", [0, 1])
def test_without_sparse_dimensions_padding_is_not_unique(n_dense):
    """Its entries have the one coordinate, and what is extracted there is given to the first of them."""
    dense = hnp.array([[1.0, 2.0], [3.0, 4.0]])
    for x in (
        BCOO.fromdense(dense, n_batch=2 - n_dense, n_dense=n_dense, nse=3),
        BCOO.fromdense(dense, n_batch=2 - n_dense, n_dense=n_dense).sum_duplicates(nse=3),
    ):
        np.testing.assert_array_equal(sparse.bcoo_extract(x, dense).todense(), dense)


@pytest.mark.parametrize(("shape", "n_batch", "n_dense", "new"), [
    ((0, 4), 1, 0, (0, 2, 2)), ((0, 3, 4), 2, 0, (0, 2, 2)), ((0, 3, 4), 1, 0, (0, 12)), ((3, 0, 4), 2, 0, (0, 3, 4)),
    ((2, 3, 0), 1, 0, (2, 0)), ((2, 0, 3), 1, 1, (2, 0, 3, 1)), ((2, 1, 3), 1, 0, (2, 3, 1)),
])
def test_reshape_of_empty_dimensions(shape, n_batch, n_dense, new):
    x = sparse.BCOO.fromdense(np.zeros(shape, np.float32), n_batch=n_batch, n_dense=n_dense)
    y = sparse.bcoo_reshape(x, new_sizes=new)
    assert y.shape == new and y.n_dense >= n_dense
    np.testing.assert_array_equal(y.todense(), np.zeros(new))
