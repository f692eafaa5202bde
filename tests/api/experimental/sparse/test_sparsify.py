"""sparsify: a handler, which gives operations a sparse meaning within all others."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import CannotCross, NotSparse, TreeMismatch
from handlax.experimental import sparse
from handlax.experimental.sparse import BCOO, sparsify

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
    return hx.tree.map(sparse.todense, y, is_leaf=lambda x: isinstance(x, BCOO))


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
    with pytest.raises(TreeMismatch, match="must have its very indices"):
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


def test_trees_of_sparse_and_dense_arrays_go_in_and_out():
    y = sparsify(lambda tree: {"b": tree["a"][0] * 2, "c": tree["a"][1]})({"a": (X, V)})
    assert (y["b"].todense() == 2 * DENSE).all() and (y["c"] == V).all()
