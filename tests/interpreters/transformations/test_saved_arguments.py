"""The arguments that a pullback saves: shown, taken out, put back."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument, DTypeMismatch, ShapeMismatch, TreeMismatch

X, W = hnp.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]]), hnp.array([[1.0], [0.5], [-2.0]])
CT = hnp.array([[2.0], [-1.0]])
D_X, D_W = np.asarray(CT) @ np.asarray(W).T, np.asarray(X).T @ np.asarray(CT)


def product(x, w):
    return x @ w


def check(got):
    np.testing.assert_allclose(got[0], D_X, rtol=1e-6)
    np.testing.assert_allclose(got[1], D_W, rtol=1e-6)


def test_arguments_are_the_users_arrays_and_the_rest_is_opaque():
    pull = hx.vjp(lambda x, w, unused: hnp.sin(x) @ w, X, W, {"b": 2.0})[1]
    assert pull.args_res[1] is W and pull.args_res[0] == hx.NotNeeded() and pull.args_res[2] == {"b": hx.NotNeeded()}
    assert sorted(r.shape for r in pull.opaque_residuals) == [(2, 3), (2, 3)]
    assert {id(x) for x in pull.residuals} == {id(W), *map(id, pull.opaque_residuals)}


@pytest.mark.parametrize("take", [
    lambda pull: pull.args_res.__setitem__(1, None),
    lambda pull: setattr(pull, "args_res", [None, None]),
], ids=["one", "all"])
def test_arguments_may_be_taken_out_and_put_back(take):
    pull = hx.vjp(product, X, W)[1]
    take(pull)
    with pytest.raises(TreeMismatch, match="args_res"):
        pull(CT)
    pull.args_res = [X, W]
    check(pull(CT))


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_what_is_not_saveable_is_asked_for(wrap):
    _, pull = wrap(lambda x, w: hx.vjp(product, x, w, saveable_args=(True, False)))(X, W)
    assert pull.args_res[1] == hx.NotSaveable() and len(hx.tree.leaves(pull)) == 1
    with pytest.raises(BadArgument, match=r"args\[1\]"):
        wrap(lambda p, ct: p(ct))(pull, CT)
    pull.args_res[1] = W
    check(wrap(lambda p, ct: p(ct))(pull, CT))


def test_a_custom_node_is_shown_as_a_tuple():
    pull = hx.vjp(lambda p: p.func(*p.args), hx.tree_util.Partial(product, X, W), saveable_args=False)[1]
    assert hx.tree.leaves(pull) == [] and type(pull.args_res[0]) is tuple
    pull.args_res = [((X, W), {})]
    got = pull(CT)[0].args
    check(got)


def test_arguments_without_tangents_say_which_results_depend_on_the_others():
    pull = hx.vjp(lambda x, y: {"a": x * 2, "b": (y * 3, x * y)}, 2.0, 5.0, in_nzs=(True, False))[1]
    assert pull.out_nzs == {"a": True, "b": (False, True)}
    assert [float(ct) for ct in pull({"a": 1.0, "b": (1.0, 1.0)})] == [7.0, 0.0]


@pytest.mark.parametrize("flags", [(True,), (True, (True, True)), (1, True), "ab", {"x": True, "w": False, "v": True}])
@pytest.mark.parametrize("name", ["saveable_args", "in_nzs"])
def test_flags_are_a_prefix_of_booleans(name, flags):
    with pytest.raises(BadArgument, match=name):
        hx.vjp(product, X, W, **{name: flags})


def test_a_loop_saves_its_sequence_as_the_argument():
    xs = hnp.array([0.5, -1.0, 2.0])
    pull = hx.vjp(lambda xs: hx.lax.scan(lambda c, x: (c * x, None), 1.0, xs)[0], xs)[1]
    assert pull.args_res[0] is xs
    np.testing.assert_allclose(pull(1.0)[0], [-2.0, 1.0, -0.5])


TREE = {"a": hnp.float32(2.0), "b": [hnp.float32(3.0)]}


@pytest.mark.parametrize(("wrong", "error", "match"), [
    ([{"z": TREE["a"], "b": [TREE["a"]]}], TreeMismatch, r"args_res\[0\]"),
    ([{"z": [TREE["a"]], "b": TREE["a"]}], TreeMismatch, r"args_res\[0\]"),
    ([[TREE["a"], TREE["a"]]], TreeMismatch, r"args_res\[0\]"),
    ([TREE, TREE], TreeMismatch, "each of 1 arguments"),
    ([{"a": hnp.ones(4), "b": [TREE["a"]]}], ShapeMismatch, r"args\[0\]\['a'\]"),
    ([{"a": TREE["a"], "b": [hnp.int32(4)]}], DTypeMismatch, r"args\[0\]\['b'\]\[0\]"),
    ([{"a": TREE["a"], "b": [hnp.float64(4)]}], DTypeMismatch, r"args\[0\]\['b'\]\[0\]"),
])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_what_is_put_back_has_the_structure_and_types_of_the_arguments(wrap, wrong, error, match):
    pull = hx.vjp(lambda d: d["a"] * d["b"][0], TREE)[1]
    pull.args_res = wrong
    with pytest.raises(error, match=match):
        wrap(lambda p, ct: p(ct))(pull, 1.0)
    pull.args_res = [{"a": 5, "b": [7.0]}]  # other values of the argument's types: Python numbers are of any
    grads = wrap(lambda p, ct: p(ct))(pull, 1.0)[0]
    assert (float(grads["a"]), float(grads["b"][0])) == (7.0, 5.0)


def test_a_custom_node_may_be_put_back_as_itself():
    argument = hx.tree_util.Partial(product, X, W)
    pull = hx.vjp(lambda p: p.func(*p.args), argument, saveable_args=False)[1]
    pull.args_res = [argument]
    check(pull(CT)[0].args)
