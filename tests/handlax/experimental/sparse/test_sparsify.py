"""sparsify: a handler, which gives operations a sparse meaning within all others."""

from functools import partial

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import CannotCross, NotSparse, TreeMismatch
from handlax.experimental import sparse
from handlax.experimental.sparse import BCOO, BCSR, COO, CSC, CSR, JAXSparse, sparsify

DENSE = hnp.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
X = BCOO.fromdense(DENSE)
V = hnp.array([0.5, 1.0, 2.0])

PROGRAMS = {
    "jit": lambda x: hx.jit(lambda x: hnp.sin(x) * 2)(x),
    "cond": lambda x: lax.cond(hnp.sum(V) > 1, lambda x: x * 2, lambda x: x * 3, x),
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1],
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, x: hnp.sin(x), x),
    "scan with a sparse carry": lambda x: lax.scan(lambda x, v: (x * v, x @ V), x, V),
    "checkpoint": lambda x: hx.checkpoint(lambda x: hnp.tanh(x) * 3)(x),
    "custom_jvp": lambda x: scaled(x),
    "todense": lambda x: hnp.exp(sparse.todense(x)),
    "todense in jit": lambda x: hx.jit(lambda x: hnp.exp(sparse.todense(x)))(x),
    "captured": lambda x: lax.map(lambda v: x @ (v * V), V),
}


@hx.custom_jvp
def scaled(x):
    return x * 3


@scaled.defjvp
def _(primals, tangents):
    return scaled(*primals), tangents[0] * 5


def todense(y):
    return hx.tree.map(sparse.todense, y, is_leaf=lambda x: isinstance(x, JAXSparse))


def by_columns(x):
    """A matrix with the entries of a BCOO, by columns."""
    rows = BCSR.from_bcoo(x.T)
    return CSC((rows.data, rows.indices, rows.indptr), shape=x.shape)


def by_rows(x):
    rows = BCSR.from_bcoo(x)
    return CSR((rows.data, rows.indices, rows.indptr), shape=x.shape)


# how a BCOO is stored otherwise, entry by entry
FORMATS = {
    "BCOO": lambda x: x,
    "BCSR": BCSR.from_bcoo,
    "COO": lambda x: COO((x.data, x.indices[:, 0], x.indices[:, 1]), shape=x.shape),
    "CSR": by_rows,
    "CSC": by_columns,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_a_sparse_array_is_that_of_the_dense_one(name):
    f = PROGRAMS[name]
    ours = lambda data: todense(sparsify(f)(X.replaced(data=data)))
    theirs = lambda data: f(X.replaced(data=data).todense())
    for g, h in ((theirs, ours), (theirs, hx.jit(ours))):
        hx.tree.map(lambda y, z: np.testing.assert_allclose(z, y, rtol=1e-6), g(X.data), h(X.data))
    total = lambda g: lambda data: sum([y.sum() for y in hx.tree.leaves(g(data))])
    if name != "while":
        np.testing.assert_allclose(hx.grad(total(ours))(X.data), hx.grad(total(theirs))(X.data), rtol=1e-5)
    tangents = [hx.jvp(total(g), (X.data,), (hnp.cos(X.data),))[1] for g in (ours, theirs)]
    np.testing.assert_allclose(*tangents, rtol=1e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("format", [format for format in FORMATS if format != "BCOO"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_of_every_format(name, format):
    f = PROGRAMS[name]
    y, z = f(DENSE), todense(sparsify(f)(FORMATS[format](X)))
    hx.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), z, y)


# of entries that are stored twice, of which the sums are not exact, or wrap: name -> the function, for which dtypes
INTEGERS, FLOATS = ("int8", "uint8", "int32"), ("float16", "float32")
OF_SUMS = {
    "div": (lambda x: lax.div(x, hnp.asarray(2, x.dtype)), INTEGERS + FLOATS),
    "div by a number that is not known": (lambda x: hx.jit(lambda y: lax.div(x, y))(np.asarray(2, x.dtype)), INTEGERS),
    "div by a vector": (lambda x: lax.div(x, hnp.broadcast_to(hnp.array([2, 3, 5], x.dtype), x.shape)), INTEGERS),
    "rem": (lambda x: lax.rem(x, hnp.asarray(3, x.dtype)), INTEGERS),
    "sign": (hnp.sign, INTEGERS + FLOATS),
    "square": (hnp.square, INTEGERS + FLOATS),
    "power": (lambda x: x**3, INTEGERS + FLOATS),
    "maximum": (lambda x: hnp.maximum(x, 0), INTEGERS + FLOATS),
    "maximum of two": (lambda x: lax.max(x, x * 2), INTEGERS + FLOATS),
    "itself": (lambda x: x * x, INTEGERS + FLOATS),
    "negative": (hnp.negative, INTEGERS + FLOATS),
    "wider": (lambda x: x.astype(np.int64), INTEGERS),
    "to floats": (lambda x: x.astype(np.float32), INTEGERS + FLOATS),
    "narrower": (lambda x: x.astype(hnp.bfloat16), FLOATS),
    "rounded": (lambda x: lax.reduce_precision(x, 8, 4), FLOATS),
    "sum": (lambda x: x.sum(), INTEGERS),
    "sum in its dtype": (lambda x: x.sum(0, dtype=x.dtype), INTEGERS),
    "product of another dtype": (lambda x: lax.dot_general(
        x, hnp.ones((x.shape[1],), x.dtype), (((1,), (0,)), ((), ())), preferred_element_type=np.int32), INTEGERS),
    "product": (lambda x: x @ hnp.arange(3, dtype=x.dtype), INTEGERS),
    "mul": (lambda x: x * hnp.array([[7, 8, 9]], x.dtype), INTEGERS),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", OF_SUMS)
def test_entries_that_are_stored_twice_are_summed_before_what_is_not_additive(name, format):
    f, dtypes = OF_SUMS[name]
    indices = hnp.array([[0, 1], [-1, 0], [0, 1], [1, 2], [1, 0], [0, 3], [1, 0], [2, 2]])
    for dtype in dtypes[:: 1 if format == "BCOO" else 4]:
        data = [1, 5, 100, 7, -1 + 2**-10, 9, 1, 3] if dtype in FLOATS else [1, 5, 101, 7, 100, 9, 101, 3]
        x = FORMATS[format](BCOO((hnp.array(data, dtype), indices), shape=(2, 3)))
        want = f(x.todense())
        y = todense(sparsify(f)(x))
        assert y.dtype == want.dtype
        np.testing.assert_array_equal(y, want, err_msg=dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("f", [lambda x: x @ hnp.ones(3), lambda x: hnp.ones((2, 2)) @ x, lambda x: x.sum(0),
                               lambda x: x[:1], lambda x: hnp.sin(x) @ V, lambda x: x * V])
def test_padding_is_nothing_whatever_its_data_are(f, format):
    indices = hnp.array([[0, 1], [-1, 0], [0, 3], [1, 2], [1, -1], [2, 2]])
    x = FORMATS[format](BCOO((hnp.array([1.0, np.inf, np.nan, 2.0, -np.inf, np.nan]), indices), shape=(2, 3)))
    dense = np.array([[0, 1, 0], [0, 0, 2]], np.float32)
    np.testing.assert_array_equal(x.todense(), dense)
    np.testing.assert_allclose(todense(sparsify(f)(x)), f(hnp.asarray(dense)), rtol=1e-6)


def test_the_padding_of_a_batch_is_nothing():
    indices = hnp.array([[[0, 1], [0, 3]], [[1, 2], [-1, 0]]])
    x = BCOO((hnp.array([[1.0, np.inf], [2.0, np.nan]]), indices), shape=(2, 2, 3))
    for y in (x, BCSR.from_bcoo(x)):
        np.testing.assert_array_equal(y @ V, [[1.0, 0.0], [0.0, 4.0]])
        np.testing.assert_array_equal(hx.vmap(lambda y: y @ V)(y), [[1.0, 0.0], [0.0, 4.0]])


def test_a_loop_takes_slices_along_a_batch_dimension_and_stacks_results_along_one():
    x = BCOO.fromdense(DENSE, n_batch=1)
    total, ys = sparsify(lambda x: lax.scan(lambda c, row: (c + row @ V, row * 2), 0.0, x))(x)
    assert total == (DENSE @ V).sum() and isinstance(ys, BCOO) and ys.n_batch == 1
    assert (ys.todense() == 2 * DENSE).all()
    with pytest.raises(CannotCross, match="a loop takes slices along a batch dimension, got BCOO"):
        sparsify(lambda x: lax.map(lambda row: row * 2, x))(X)


def test_indices_stay_sorted_and_unique_where_all_iterations_leave_them_so():
    y = sparsify(lambda x: lax.fori_loop(0, 2, lambda i, x: -x, x))(X)
    assert y.indices_sorted and y.unique_indices
    z = sparsify(lambda x: lax.fori_loop(0, 2, lambda i, x: lax.rev(x, (0,)), x))(X)
    assert not z.indices_sorted and (z.todense() == DENSE).all()


def doubled(x):
    return x + lax.rev(x, (0,))


@pytest.mark.parametrize(("f", "match"), [
    (lambda x: lax.cond(V.sum() > 1, doubled, lambda x: x, x), "must agree on the layout"),
    (lambda x: lax.cond(V.sum() > 1, sparse.todense, lambda x: x, x), "must agree whether a value is sparse"),
    (lambda x: lax.fori_loop(0, 2, lambda i, x: doubled(x), x), "must agree on the layout"),
])
def test_branches_and_iterations_agree_on_the_layout(f, match):
    with pytest.raises(TreeMismatch, match=match):
        sparsify(lambda x: f(x[0]))(X)


def test_what_chooses_is_dense():
    with pytest.raises(CannotCross, match="what chooses is a dense value"):
        sparsify(lambda x: lax.cond(x.sum(0)[0] > 0, lambda: 1.0, lambda: 2.0))(X)


def test_a_tangent_has_the_indices_of_its_value():
    f = hx.custom_jvp(lambda x: x * 3)
    f.defjvp(lambda primals, tangents: (f(*primals), lax.rev(lax.rev(tangents[0], (0,)), (0,))))
    with pytest.raises(TreeMismatch, match="must have the very same indices"):
        hx.grad(lambda data: sparsify(f)(X.replaced(data=data)).todense().sum())(X.data)


def test_a_backward_rule_of_sparse_arguments_is_refused():
    f = hx.custom_vjp(lambda x: x * 3)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 3,))
    assert (sparsify(f)(X).todense() == 3 * DENSE).all()
    with pytest.raises(CannotCross, match="a backward rule has dense arguments"):
        hx.grad(lambda data: sparsify(f)(X.replaced(data=data)).todense().sum())(X.data)


def test_effects_of_a_user_are_performed_within():
    @hx.effect(vmap="per_lane")
    class Tick:
        by: int = 1

        def result_type(op):
            return None

    counter = hx.handler({Tick: lambda n, op: (n + op.by, None)})

    def f(x):
        def body(x, v):
            hx.perform(Tick())
            return x * v, None

        return lax.scan(body, x, V)[0]

    for g in (f, hx.jit(f)):
        n, y = hx.handle(counter, 0)(sparsify(g))(X)
        assert n == 3 and (y.todense() == DENSE * V.prod()).all()
        n, y = sparsify(hx.handle(counter, 0)(g))(X)
        assert n == 3 and (y.todense() == DENSE * V.prod()).all()


def test_clauses_answer_what_the_sparse_meaning_performs():
    doubled = hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)})
    assert (hx.handle(doubled)(sparsify(hnp.sin))(X).todense() == 2 * hnp.sin(DENSE)).all()
    assert (sparsify(hx.handle(doubled)(hnp.sin))(X).todense() == 2 * hnp.sin(DENSE)).all()


def test_vmap_is_crossed_on_both_sides():
    x = BCOO.fromdense(hnp.stack([DENSE, 2 * DENSE]), n_batch=1)
    f = lambda x, v: hnp.sin(x) @ v
    want = hx.vmap(f, (0, None))(x.todense(), V)
    np.testing.assert_allclose(hx.vmap(sparsify(f), (0, None))(x, V), want, rtol=1e-6)
    scaled = sparsify(lambda x: hx.vmap(lambda v: x @ (v * V))(V))(X)
    np.testing.assert_allclose(scaled, hx.vmap(lambda v: DENSE @ (v * V))(V), rtol=1e-6)


def test_a_rule_may_be_given_in_a_scope():
    with pytest.raises(NotSparse, match=r"@hx.columns.sparse.rule\(Exp\)"):
        sparsify(hnp.exp)(X)
    with hx.rules(sparse={hx.operations.Exp: lambda op, x: hx.perform(op, x.todense())}):
        assert (sparsify(hnp.exp)(X) == hnp.exp(DENSE)).all()
        np.testing.assert_allclose(sparsify(hx.jit(hnp.exp))(X), hnp.exp(DENSE), rtol=1e-6)


def test_arrays_with_the_same_indices_are_added_and_multiplied_entry_by_entry():
    x, y = X, X.replaced(data=X.data * 2)
    assert (x + y).nse == (x * y).nse == X.nse and (x + y).indices is X.indices
    assert ((x + y).todense() == 3 * DENSE).all() and ((x * y).todense() == 2 * DENSE**2).all()


@pytest.mark.parametrize("f", [
    hx.jit(lambda x: 2 * x), lambda x: lax.cond(V.sum() > 1, lambda x: 2 * x, lambda x: -x, x),
    lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), hx.checkpoint(hnp.sin),
    lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, -s[1]), (0, x))[1],
], ids=["jit", "cond", "fori_loop", "checkpoint", "while_loop"])
def test_indices_that_bodies_pass_on_are_those_that_they_got(f):
    y = sparsify(lambda x: x + f(x))(X)
    assert y.indices is X.indices
    np.testing.assert_allclose(y.todense(), DENSE + f(DENSE), rtol=1e-6)


def test_trees_of_sparse_and_dense_arrays_go_in_and_out():
    y = sparsify(lambda tree: {"b": tree["a"][0] * 2, "c": tree["a"][1]})({"a": (X, V)})
    assert (y["b"].todense() == 2 * DENSE).all() and (y["c"] == V).all()
