"""Products, einsum, norms and mapped functions give NumPy's values, with no more operations than needed."""

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax import errors

PAIRS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (7, 3, 4)), ((5, 7, 2, 3), (1, 7, 3, 4)),
    ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((1, 2, 3), (1, 3, 4)), ((1, 1, 2, 3), (6, 1, 3, 4)), ((0, 2, 3), (3, 4)),
]
SUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)),
    ("ij->", (2, 3)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bjk->ik", (5, 2, 3), (5, 3, 4)),
    ("bij,bjk->kib", (5, 2, 3), (5, 3, 4)), ("...i,...i", (5, 2, 3), (2, 3)), ("...ij,...jk", (5, 1, 2, 3), (7, 3, 4)),
    ("i,j,ij->", (2,), (3,), (2, 3)), ("i,j->ij", (2,), (3,)), ("ij,jk,kl->il", (2, 9), (9, 9), (9, 1)),
    ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 5), (5, 6)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->ji", (2, 3), (2, 3)),
    ("iij,jk->ik", (2, 2, 3), (3, 4)), ("ij,ik,il->jkl", (2, 3), (2, 4), (2, 5)), ("ij,kl->", (2, 3), (4, 5)),
    (",ij->ij", (), (2, 3)), ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)), ("kb,ab->ak", (3, 4), (5, 4)),
]


def close(found, wanted, rtol=1e-11):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-12)
    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_matrix_products_broadcast_as_in_numpy(left, right, rng):
    a, b = rng.normal(size=left), rng.normal(size=right)
    close(hnp.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", SUMS, ids=lambda case: case[0])
def test_einsum_sums_as_in_numpy(case, optimize, rng):
    word, *shapes = case
    xs = [rng.normal(size=shape) for shape in shapes]
    close(hnp.einsum(word, *xs, optimize=optimize), np.einsum(word, *xs))


@pytest.mark.parametrize("word", ["ij,jk->ik", "bqhd,bkhd->bhqk", "bij,bjk->bik"])
def test_one_contraction_is_one_operation(word):
    left, right = word.partition("->")[0].split(",")
    sizes = dict(zip("ijkbqhd", range(2, 9), strict=True))
    shapes = [np.ones([sizes[c] for c in w], "float32") for w in (left, right)]
    text = str(hx.make_program(lambda a, b: hnp.einsum(word, a, b))(*shapes))
    assert [line.split("=")[1].split("[")[0].strip() for line in text.splitlines()[1:-2]] == ["dot_general"]


@pytest.mark.parametrize("sum_", ["bsd,3dkh->bs3kh", "bs_,3_kh->bs3kh", "bs*, 3*kh -> bs3kh", "bsα,3αkh->bs3kh"])
def test_indices_of_einsum_may_be_digits_and_other_characters(sum_, rng):
    x, w = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4, 5, 6))
    close(hnp.einsum(sum_, x, w), np.einsum("bsd,qdkh->bsqkh", x, w))


@pytest.mark.parametrize("sum_", ["i-,-j", "i>,>j->ij", "i.,.j", "i..,..j"])
def test_indices_of_einsum_are_no_punctuation(sum_):
    shape = (2,) * len(sum_.partition(",")[0])
    with pytest.raises(errors.BadArgument, match="an index must be a character other than"):
        hnp.einsum(sum_, np.ones(shape), np.ones(shape))


def test_einsum_refuses_what_does_not_fit():
    with pytest.raises(hx.errors.ShapeMismatch, match="one size"):
        hnp.einsum("ij,jk", np.ones((2, 3)), np.ones((4, 2)))
    with pytest.raises(hx.errors.BadArgument, match="does not fit"):
        hnp.einsum("ijk", np.ones((2, 3)))
    with pytest.raises(hx.errors.BadArgument, match="result's indices"):
        hnp.einsum("ij->il", np.ones((2, 3)))


def test_the_cheapest_pair_comes_first():
    shapes = [np.ones(s) for s in ((2, 9), (9, 9), (9, 1))]
    assert hnp.einsum_path("ij,jk,kl->il", *shapes)[0] == [(1, 2), (0, 1)]


def test_other_products(rng):
    x, y = rng.normal(size=(5, 2, 3)), rng.normal(size=(2, 3))
    close(hnp.kron(x, y), np.kron(x, y))
    close(hnp.cross(x, y), np.cross(x, y))
    close(hnp.inner(x, y), np.inner(x, y))
    close(hnp.outer(x, y), np.outer(x, y))
    close(hnp.dot(x, y.T), np.dot(x, y.T))
    close(hnp.vecdot(x, y), np.sum(x * y, -1))
    close(hnp.matvec(x, y[0]), x @ y[0])
    close(hnp.vecmat(y[:, 0], x), y[:, 0] @ x)
    close(hnp.tensordot(x, y, ((1, 2), (0, 1))), np.tensordot(x, y, ((1, 2), (0, 1))))
    for axes in ((1, 2), (2, 0), (0, 1)):
        close(hnp.trace(x, 1, *axes), np.trace(x, 1, *axes))
    z = x[0] + 1j * y
    close(hnp.vdot(z, z), np.vdot(z, z))


@pytest.mark.parametrize("order", [None, 1, 2, 3, 0, np.inf, -np.inf, 0.5])
def test_norms_of_vectors(order, rng):
    x = rng.normal(size=(3, 4))
    for axis in (0, 1):
        close(hnp.linalg.norm(x, order, axis, True), np.linalg.norm(x, order, axis, True))
        close(hnp.linalg.norm(x + 1j * x, order, axis), np.linalg.norm(x + 1j * x, order, axis))


@pytest.mark.parametrize("order", [None, "fro", 1, -1, np.inf, -np.inf])
def test_norms_of_matrices(order, rng):
    x = rng.normal(size=(3, 4, 5))
    for axis in ((0, 1), (1, 0), (2, 0), (-1, 1)):
        close(hnp.linalg.norm(x, order, axis, True), np.linalg.norm(x, order, axis, True))


def test_factors_and_powers_of_matrices(rng):
    x = rng.normal(size=(4, 6))
    s = x @ x.T + np.eye(4)
    close(hnp.linalg.cholesky(s), np.linalg.cholesky(s))
    close(hnp.linalg.cholesky(s, upper=True), np.linalg.cholesky(s).T)
    close(hnp.linalg.matrix_power(s, 5), np.linalg.matrix_power(s, 5))
    close(hnp.linalg.multi_dot([x[0], x.T, s, s[0]]), np.linalg.multi_dot([x[0], x.T, s, s[0]]))


def test_indices_beyond_the_alphabet(rng):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    close(hnp.einsum(x, [100, 53], y, [53, 900], [900, 100]), (x @ y).T)
    close(hnp.einsum(x, [0, -1]), x.T)
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    close(hnp.linalg.multi_dot([turn] * 54), turn @ turn)


def test_a_function_of_rows_is_mapped_over_what_broadcasts(rng):
    a, v = rng.normal(size=(4, 1, 2, 3)), rng.normal(size=(5, 3))
    close(hnp.vectorize(hnp.dot, signature="(n,k),(k)->(n)")(a, v), np.einsum("abnk,bk->abn", np.repeat(a, 5, 1), v))
    scaled = hnp.vectorize(lambda x, factor, power=1: factor * x**power, excluded={"power"})
    close(scaled(v, 2.0, power=2), 2 * v**2)
    with pytest.raises(hx.errors.ShapeMismatch, match="'k'"):
        hnp.vectorize(hnp.dot, signature="(n,k),(k)->(n)")(a, v[:, :2])
    close(hnp.apply_along_axis(hnp.sort, 1, a[:, 0]), np.sort(a[:, 0], 1))


def test_vectorize_leaves_none_and_excluded_arguments_alone():
    f = hnp.vectorize(lambda x, y: x if y is None else x + y)
    assert f(np.arange(3), None).tolist() == [0, 1, 2] and f(np.arange(3), np.arange(3)).tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="takes 2 operands, got 1"):
        hnp.vectorize(hnp.dot, signature="(n),(n)->()")(np.ones(3))
    with pytest.raises(TypeError, match="positions and names"):
        hnp.vectorize(f, excluded={1.5})
    with pytest.raises(ValueError, match="not be negative"):
        hnp.vectorize(f, excluded={-1})


@pytest.mark.parametrize("optimize", [None, "dp", ("greedy", 1e5), ["einsum_path", (0, 1)], [(0, 1)]])
def test_orders_of_einsum_are_those_of_numpy(optimize, rng):
    x = rng.normal(size=(3, 3))
    np.testing.assert_allclose(hnp.einsum("ij,jk", x, x, optimize=optimize), x @ x)


@pytest.mark.parametrize("optimize", ["foo", 3, ("greedy", "foo")])
def test_unknown_orders_of_einsum_are_refused(optimize):
    for f in (hnp.einsum, hnp.einsum_path):
        with pytest.raises(errors.BadArgument, match="optimize must be"):
            f("ij,jk", np.ones((2, 2)), np.ones((2, 2)), optimize=optimize)


@pytest.mark.parametrize("names", [(0, 1, 2), ("i", "k", "j"), (7, 30_000, -3), (("t", 0), ("s", 1), ("t", 1))])
def test_indices_of_einsum_in_lists_are_any_values_in_their_order(names, rng):
    a, b = rng.normal(size=(2, 3)).astype("f"), rng.normal(size=(3, 4)).astype("f")
    i, k, j = names
    np.testing.assert_allclose(hnp.einsum(a, [i, k], b, [k, j], [j, i]), (a @ b).T, rtol=1e-5)
    implied = hnp.einsum(a, [i, k], b, [k, j])
    np.testing.assert_allclose(implied, a @ b if sorted([i, j]) == [i, j] else (a @ b).T, rtol=1e-5)
    assert hnp.einsum(a, [..., k], [k, ...]).shape == (3, 2)


@pytest.mark.parametrize("word", [[1, "a"], [{}, 1], "ij"])
def test_indices_of_einsum_that_have_no_order_are_refused(word):
    with pytest.raises(errors.BadArgument, match="einsum"):
        hnp.einsum(np.ones((2, 3)), word)
