"""ravel_pytree: a tree as one vector, and back."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.flatten_util import ravel_pytree

TREES = [
    1.5, [1, 2], (hnp.ones((2, 3)), np.arange(2, dtype="float32")), {"b": True, "a": [False]}, [], None,
    {"a": hnp.ones((0, 2)), "b": 2.0}, [hnp.arange(3), 2.5], [1j, hnp.float32(2)],
    [hnp.ones(2, "bfloat16"), hnp.zeros((1, 1), "float16")], [hnp.array([-7], "int8"), hnp.array([200], "uint8")],
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_unravel_is_the_inverse_of_ravel(tree, wrap):
    leaves, structure = hx.tree.flatten(tree)
    flat, unravel = ravel_pytree(tree)
    assert flat.shape == (sum(np.size(leaf) for leaf in leaves),)
    assert flat.dtype == (hx.numpy.result_type(*[hx.lax.dtype(leaf) for leaf in leaves]) if leaves else np.float32)
    back = wrap(unravel)(flat)
    assert hx.tree.structure(back) == structure
    for x, y in zip(leaves, hx.tree.leaves(back)):
        assert y.dtype == hx.lax.dtype(x) and y.shape == np.shape(x)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def test_a_vector_of_another_dtype_gives_leaves_of_it_where_all_have_one():
    _, unravel = ravel_pytree((hnp.ones(2), hnp.ones((1, 2))))
    assert [y.dtype.name for y in unravel(hnp.arange(4, dtype="float16"))] == ["float16", "float16"]


@pytest.mark.parametrize(("tree", "flat", "error"), [
    ((hnp.ones(2), hnp.ones(3)), hnp.ones(4), errors.ShapeMismatch),
    ((hnp.ones(2), hnp.ones(3)), hnp.ones((5, 1)), errors.ShapeMismatch),
    ((hnp.ones(2), hnp.ones(3, "int32")), hnp.ones(5, "float16"), errors.DTypeMismatch),
    ((hnp.ones(2), hnp.ones(3)), [1.0] * 5, errors.NotAnArray),
])
def test_what_does_not_fit_is_refused(tree, flat, error):
    with pytest.raises(error):
        ravel_pytree(tree)[1](flat)


def test_functions_back_of_equal_trees_are_equal_and_static_arguments():
    back = hx.jit(lambda flat, unravel: unravel(flat), static_argnums=1)
    (_, one), (_, two), (_, other) = (ravel_pytree({"a": hnp.ones(n), "b": 1}) for n in (2, 2, 3))
    assert one == two and hash(one) == hash(two) and one != other
    np.testing.assert_array_equal(np.asarray(back(hnp.arange(3.0), one)["a"]), [0.0, 1.0])


def test_the_derivative_passes_through():
    point = {"w": hnp.array([[1.0, 2.0]]), "b": 3.0}
    flat, unravel = ravel_pytree(point)
    want = ravel_pytree(hx.grad(lambda p: (p["w"] ** 2).sum() * p["b"])(point))[0]
    got = hx.grad(lambda v: (unravel(v)["w"] ** 2).sum() * unravel(v)["b"])(flat)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
    assert hx.vmap(lambda v: ravel_pytree(unravel(v))[0])(hnp.stack([flat, 2 * flat])).shape == (2, 3)
