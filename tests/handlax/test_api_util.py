"""Functions of trees as functions of leaves."""

import inspect

import pytest

from handlax import api_util, tree
from handlax.errors import BadArgument, BadCall
from handlax.extend import linear_util


def total(x, y, *more, scale=1):
    return {"sum": (x["a"] + y) * scale, "more": more}


def test_a_function_of_trees_is_one_of_leaves():
    arguments = ({"a": 1}, 2, 3), {"scale": 10}
    flat, out_tree = api_util.flatten_fun(total, tree.structure(arguments))
    with pytest.raises(BadCall, match="total must be called"):
        out_tree()
    assert flat.call_wrapped(*tree.leaves(arguments)) == [3, 30] and flat.__name__ == "total"
    assert out_tree() == tree.structure(total(*arguments[0], **arguments[1]))


def test_what_is_known_of_a_function_stays_with_it():
    info = api_util.debug_info("test", total, ({"a": 1}, 2, 3), {"scale": 10, "static": 0}, static_argnames=("static",))
    assert info.arg_names == ("x['a']", "y", "more[0]", "scale") and info.traced_for == "test"
    wrapped = linear_util.wrap_init(total, {"scale": 2}, debug_info=info)
    flat, _ = api_util.flatten_fun_nokwargs(wrapped, tree.structure(({"a": 1}, 2)))
    assert flat.call_wrapped(1, 2) == [6] and flat.debug_info is info


def test_positions_of_donated_arguments_leave_out_the_static_ones():
    assert api_util.rebase_donate_argnums((0, 2, 5), (1, 3)) == (0, 1, 3)
    with pytest.raises(BadArgument, match=r"\[2\] as both"):
        api_util.rebase_donate_argnums((2, 4), (2,))


def test_safe_map_needs_sequences_of_one_length():
    assert api_util.safe_map(lambda x, y: x - y, (3, 4), [1, 1]) == [2, 3]
    with pytest.raises(ValueError, match="one length"):
        api_util.safe_map(max, [1], [2, 3])
    assert api_util.shaped_abstractify(1.0).weak_type


def test_arguments_are_inferred_from_a_signature():
    sig = inspect.signature(lambda x, y, *, z: x)
    assert api_util.infer_argnums_and_argnames(sig, None, "y") == ((1,), ("y",))
    assert api_util.infer_argnums_and_argnames(sig, (0, 1), None) == ((0, 1), ("x", "y"))
    assert api_util.infer_argnums_and_argnames(sig, 0, "z") == ((0,), ("z",))
    assert api_util.infer_argnums_and_argnames(sig, None, None) == ((), ())
    with pytest.raises(BadArgument, match="the function"):
        api_util.infer_argnums_and_argnames(sig, 5, None)
