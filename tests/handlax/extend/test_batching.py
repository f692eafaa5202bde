"""extend.batching: primitives over one more axis, with its name and size, and the words by which they are declared."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.core import ShapedArray
from handlax.extend import batching, mlir
from handlax.extend.core import Primitive

X = hnp.arange(6.0).reshape(2, 3)


def made(name, f, types=lambda *xs, **params: xs[0], several=False):
    p = Primitive(name)
    p.multiple_results = several
    p.def_impl(f)
    p.def_abstract_eval(types)
    mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=several))
    return p


@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (1, None), (None, 0)])
def test_defvectorized_computes_at_each_place(axes):
    p = made("both_places", lambda x, y: [x * y, x + y], lambda x, y: [x, y], several=True)
    batching.defvectorized(p)
    square = hnp.arange(9.0).reshape(3, 3)
    args = [square if axis is not None else hnp.arange(3.0) for axis in axes]
    for y, z in zip(hx.vmap(p.bind, axes)(*args), hx.vmap(lambda x, y: [x * y, x + y], axes)(*args)):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize(("shapes", "axes"), [
    (((2, 3), (2, 3)), (0, 0)), (((2, 3), ()), (0, None)), (((2, 3), (2,)), (0, 0)), (((2, 3), (3,)), (0, None)),
    (((3, 2), (2, 3)), (1, 0)), (((2,), (3,)), (0, None)),
])
def test_defbroadcasting_repeats_scalars(shapes, axes):
    def type_of(x, y):
        return ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype)

    p = made("repeated", hnp.add, type_of)
    batching.defbroadcasting(p)
    args = [hnp.arange(float(np.prod(shape))).reshape(shape) for shape in shapes]
    np.testing.assert_array_equal(hx.vmap(p.bind, axes)(*args), hx.vmap(hnp.add, axes)(*args))
    np.testing.assert_array_equal(hx.jit(hx.vmap(p.bind, axes))(*args), hx.vmap(hnp.add, axes)(*args))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_defreducer_moves_its_axes(axis, axes):
    f = lambda x, *, axes: x.sum(axes)
    p = made("total", f, lambda x, *, axes: ShapedArray([n for i, n in enumerate(x.shape) if i not in axes], x.dtype))
    batching.defreducer(p)
    x = hnp.arange(24.0).reshape(2, 3, 4)
    mapped = lambda f: hx.vmap(lambda x: f(x, axes=axes), axis)(x)
    np.testing.assert_array_equal(mapped(p.bind), mapped(f))


def axis_aware(registry, rule):
    p = made("centred", lambda x: x, lambda x: x)
    registry[p] = rule(p)
    return p


RULES = {
    "fancy": (batching.fancy_primitive_batchers, lambda p: lambda axis, xs, dims: (
        xs[0] - batching.moveaxis(xs[0], dims[0], 0).sum(0, keepdims=True) / axis.size, dims[0])),
    "axis": (batching.axis_primitive_batchers, lambda p: lambda size, name, main, xs, dims: (
        xs[0] - batching.moveaxis(xs[0], dims[0], 0).sum(0, keepdims=True) / size, dims[0])),
}


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("outer", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_rules_know_the_mapped_axis(kind, outer):
    p = axis_aware(*RULES[kind])
    expected = X - X.mean(0)
    np.testing.assert_allclose(outer(hx.vmap(p.bind, axis_name="i"))(X), expected)
    np.testing.assert_allclose(outer(hx.vmap(p.bind))(X), expected)
    in_loop = lambda x: lax.scan(lambda c, _: (p.bind(c), None), x, None, length=2)[0]
    np.testing.assert_allclose(outer(hx.vmap(in_loop, axis_name="i"))(X), expected, atol=1e-6)
    ragged = hx.vmap(lambda x: p.bind(x), axis_name="i")(hnp.ones((3, 1)))
    assert ragged.tolist() == [[0.0]] * 3


def test_rules_know_the_name_of_the_axis():
    seen = []

    def rule(axis, xs, dims):
        seen.append((axis.name, axis.size))
        return p.bind(*xs), dims[0]

    p = made("named", lambda x: x)
    batching.fancy_primitive_batchers[p] = rule
    hx.vmap(hx.vmap(p.bind, axis_name="j"), axis_name="i")(X)
    assert seen == [("j", 3), ("i", 2)]


def test_a_block_may_ask_for_the_mapped_axis_too():
    @hx.operation
    class Lane:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x

        def batch(op, dims, x, *, axis):
            _, size = axis
            return hnp.moveaxis(x, dims[0], 0) + hnp.arange(float(size)), 0

    assert hx.vmap(lambda x: hx.perform(Lane(), x))(hnp.zeros(3)).tolist() == [0.0, 1.0, 2.0]


def test_a_result_may_be_the_same_in_all_lanes():
    p = made("constant", lambda x: [x, x * 0], lambda x: [x, x], several=True)
    batching.primitive_batchers[p] = lambda xs, dims: (
        [xs[0], hnp.zeros(3)], [dims[0], batching.not_mapped])
    y, z = hx.vmap(p.bind, out_axes=[0, None])(X)
    assert y.tolist() == X.tolist() and z.tolist() == [0.0] * 3


def test_axes_are_moved_and_repeated():
    assert batching.bdim_at_front(X, 1, 3).tolist() == X.T.tolist()
    assert batching.bdim_at_front(X, batching.not_mapped, 4).shape == (4, 2, 3)
    assert batching.broadcast(X, 5, 1).shape == (2, 5, 3) and batching.moveaxis(X, 0, 1).shape == (3, 2)


def test_rules_of_the_package_are_read_in_the_form_of_jax():
    y, dim = batching.primitive_batchers[lax.add_p]((X, X.T), (0, 1))
    assert batching.moveaxis(y, dim, 0).tolist() == (2 * X).tolist()
    axis = batching.AxisData("i", 2)
    for y, dim in (
        batching.fancy_primitive_batchers[lax.reduce_sum_p](axis, (X,), (0,), axes=(0,)),
        batching.axis_primitive_batchers[lax.reduce_sum_p](2, "i", None, (X,), (0,), axes=(0,)),
    ):
        assert (y.tolist(), dim) == ([3.0, 12.0], 0)
    ys, dims = batching.primitive_batchers[lax.top_k_p]((X,), (0,), k=1, axis=0)
    assert [batching.moveaxis(y, d, 0).tolist() for y, d in zip(ys, dims)] == [[[2.0], [5.0]], [[2], [2]]]
    p = axis_aware(*RULES["fancy"])
    y, dim = batching.axis_primitive_batchers[p](2, "i", None, (X,), (0,))
    np.testing.assert_allclose(y, X - X.mean(0))
    assert lax.scan_p not in batching.primitive_batchers


@pytest.mark.parametrize("results", [
    lambda x: (x[0][:1], 0), lambda x: (x[0][:, :1], 0), lambda x: x[0], lambda x: (x[0], [0, 0]),
    lambda x: (x[0][0], 0), lambda x: ([x[0]], 0),
])
def test_a_rule_gives_all_lanes_of_each_result(results):
    p = made("fewer_lanes", lambda x: x)
    batching.primitive_batchers[p] = lambda xs, dims: results(xs)
    with pytest.raises(errors.HandlaxError, match="fewer_lanes, primitive_batchers: the rule must"):
        hx.vmap(p.bind)(X)


def test_a_missing_rule_is_registered_as_the_hint_says():
    with pytest.raises(errors.MissingRule, match=r"batching\.primitive_batchers\[no_lanes_p\] = rule"):
        hx.vmap(made("no_lanes", lambda x: x).bind)(X)
