"""Messages about trees name their paths without making the user's nodes around what these refuse."""

import dataclasses

import pytest

import handlax as hx
from handlax import errors, lax, tree_util
from handlax import numpy as hnp


@tree_util.register_dataclass
@dataclasses.dataclass
class Checked:
    """A dataclass whose constructor checks its fields."""

    w: object
    b: object = ()

    def __post_init__(self):
        if not hasattr(self.w, "shape"):
            raise RuntimeError("w must have a shape")


@tree_util.register_pytree_with_keys_class
class Keyed:
    """A class with keys whose constructor checks its fields."""

    def __init__(self, w):
        if not hasattr(w, "shape"):
            raise RuntimeError("w must have a shape")
        self.w = w

    def tree_flatten_with_keys(self):
        return [(tree_util.GetAttrKey("w"), self.w)], None

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(*children)


def ones(n):
    return hnp.ones(n)


@hx.custom_vjp
def ruled(x):
    return x.w


ruled.defvjp(lambda x: (x.w, None), lambda _, ct: ((ct,),))


@pytest.mark.parametrize(("node", "where"), [(Checked, ".w"), (Keyed, "[<flat index 0>]")])
def test_errors_about_nodes_that_check_their_fields(node, where):
    def states(call, kind, *words):
        with pytest.raises(kind) as caught:
            call()
        assert all(word in str(caught.value) for word in words), caught.value

    states(lambda: lax.cond(True, lambda: node(ones(2)), lambda: node(ones(3))), errors.StateTypeError, f"at {where}")
    states(lambda: lax.cond(True, lambda: [node(ones(2))], lambda: [ones(3)]), errors.TreeMismatch, "at [0]", "a leaf")
    states(lambda: lax.switch(0, [lambda: node(ones(2)), lambda: ()]), errors.TreeMismatch, f"a {node.__name__} of ")
    states(lambda: lax.scan(lambda c, _: (node(ones(3)), None), node(ones(2)), None, 2), errors.StateTypeError, where)
    states(lambda: lax.while_loop(lambda c: True, lambda c: (c,), node(ones(2))), errors.TreeMismatch, node.__name__)
    states(lambda: lax.fori_loop(0, 3, lambda i, c: node(c.w[:1]), node(ones(2))), errors.StateTypeError, where)
    states(lambda: lax.scan(lambda c, x: (c, x), 0.0, (node(ones(2)), node(ones(3)))), errors.ShapeMismatch, where)
    states(lambda: hx.vmap(lambda x, y: 0)(node(ones(2)), node(ones(3))), errors.ShapeMismatch, f"x{where}")
    states(lambda: hx.jit(lambda x: x)((node(ones(2)), "a")), errors.NotAnArray, "x[1]")
    states(lambda: hx.grad(lambda x: ruled(x).sum())(node(ones(2))), errors.TreeMismatch, "argument 0")


def test_a_compiled_function_names_the_field_of_a_node_that_checks_it():
    compiled = hx.jit(lambda x: x.w).lower(Checked(ones(2))).compile()
    with pytest.raises(errors.DTypeMismatch, match=r"x\.w"):
        compiled(Checked(ones(3)))
