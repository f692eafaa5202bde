"""Calls of functions that were exported for symbolic sizes, and what must hold of the sizes."""

import numpy as np
import pytest
from helpers.exported_functions import agree, array, exported

import handlax as hx
from handlax import export, lax
from handlax import numpy as hnp
from handlax.errors import BadArgument, ShapeMismatch, TracerBoolConversionError


def test_derivatives_are_exported_with_it():
    f = lambda x, w: hnp.tanh(x @ w)
    read = exported(f, "b, 4", "4, n", vjp_order=2)
    x, w = array(5, 4), array(4, 3)
    once = lambda f: lambda w: (f(x, w) ** 2).sum()
    twice = lambda f: lambda w: hx.grad(lambda v: f(x, v).sum())(w).sum()
    for loss in (once, twice):
        np.testing.assert_allclose(hx.grad(loss(read.call))(w), hx.grad(loss(f))(w), rtol=1e-4)


@pytest.mark.parametrize("other", [hnp.argsort, hnp.argmax, lambda x: x > 0])
def test_results_without_derivatives_have_symbolic_sizes(other):
    read = exported(lambda x: (x**2, other(x), x[1:] > 0), "b", vjp_order=1)
    np.testing.assert_allclose(hx.grad(lambda x: read.call(x)[0].sum())(array(3)), 2 * array(3))


@pytest.mark.parametrize("constraint", ["mod(n, 3) == 0", "3*floordiv(n, 3) == n"])
def test_sizes_are_divided_exactly_where_a_constraint_says_so(constraint):
    scope = export.SymbolicScope([constraint])
    f = lambda x: (x.reshape(3, -1), x.reshape(-1, 3), x[: x.shape[0] // 3])
    read = exported(f, "n", scope=scope)
    program = export.export(hx.jit(f))(hx.ShapeDtypeStruct(export.symbolic_shape("n", scope=scope), "float32"))
    assert [str(t) for t in read.out_avals] == ["f32[3,floordiv(n,3)]", "f32[floordiv(n,3),3]", "f32[floordiv(n,3)]"]
    agree(f, read.call, [array(6)])
    with pytest.raises(ShapeMismatch, match="must be such that"):
        program.call(array(7))


def test_a_call_with_symbolic_sizes_is_exported_again():
    inner = exported(lambda x: hnp.concatenate([x, 2 * x]), "a + 1, 4")
    outer = exported(lambda x: inner.call(x)[: x.shape[0]] + inner.call(x + 1)[x.shape[0] :], "2*b + 2, 4")
    x = array(4, 4)
    np.testing.assert_allclose(outer.call(x), x + 2 * (x + 1), rtol=1e-6)
    np.testing.assert_allclose(hx.vmap(outer.call)(np.stack([x, x]))[1], x + 2 * (x + 1), rtol=1e-6)
    assert [str(t) for t in outer.out_avals] == ["f32[2*b+2,4]"]
    with pytest.raises(ShapeMismatch, match="must be such that a >= 1"):
        exported(lambda x: inner.call(x), "b, 4")


def test_a_program_for_several_platforms_has_symbolic_sizes():
    f = lambda x: lax.cond(x[0] > 0, hnp.sin, hnp.cos, hnp.cumsum(x))
    spec = hx.ShapeDtypeStruct(export.symbolic_shape("b"), "float32")
    both = export.export(hx.jit(f), platforms=["cuda", "cpu"])(spec)
    agree(f, export.deserialize(both.serialize()).call, [array(3)])


@pytest.mark.parametrize(("shapes", "xs", "message"), [
    (("b, 4",), (array(0, 4),), "must be such that b >= 1, as it was exported, got .* b = 0"),
    (("b, b",), (array(2, 3),), r"args\[0\].shape\[1\] == b"),
    (("2*b, 4",), (array(3, 4),), r"args\[0\].shape\[0\] == 2\*b"),
    (("b, 4",), (array(3, 5),), r"argument args\[0\] must be f32\[b,4\], as it was exported, got f32\[3,5\]"),
    (("b, n", "n"), (array(2, 3), array(4)), r"args\[1\].shape\[0\] == n"),
])
def test_sizes_that_do_not_fit_are_refused(shapes, xs, message):
    read = exported(lambda *xs: sum([x.sum() for x in xs]), *shapes)
    for call in (read.call, hx.jit(read.call)):
        with pytest.raises(ShapeMismatch, match=message):
            call(*xs)


def test_constraints_decide_comparisons_and_are_checked_in_calls():
    scope = export.SymbolicScope(["n >= 2*b", "c == 3*b"])
    f = lambda x, y, z: (x[:2] if x.shape[0] >= 2 * y.shape[0] else x, z)
    program = export.export(hx.jit(f))(*[
        hx.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), "float32") for shape in ("n", "b", "c")
    ])
    assert [str(t) for t in program.in_avals] == ["f32[n]", "f32[b]", "f32[3*b]"]
    agree(f, program.call, [array(5), array(2), array(6)])
    with pytest.raises(ShapeMismatch, match=r"n >= 2\*b, as it was exported, got .* n = 3, b = 2"):
        program.call(array(3), array(2), array(6))
    with pytest.raises(ShapeMismatch, match="n >= 2"):  # which the program says, not its types
        hx.jit(export.deserialize(program.serialize()).call)(array(3), array(2), array(6))


def test_a_comparison_that_nothing_decides_is_refused():
    with pytest.raises(TracerBoolConversionError, match="how b compares with 3 must follow from the scope"):
        exported(lambda x: x if x.shape[0] > 3 else -x, "b")


def test_variables_that_do_not_follow_from_the_arguments_are_refused():
    with pytest.raises(BadArgument, match=r"got c\*c of args\[0\]"):
        exported(lambda x: x, "2*a + b, a, c*c")


def test_a_program_without_results_checks_its_sizes():
    read = exported(lambda x: (), "2*n")
    assert read.call(array(4)) == ()
    with pytest.raises(ShapeMismatch, match="must be such that"):
        read.call(array(3))


def test_sizes_of_several_scopes_are_refused():
    types = [hx.ShapeDtypeStruct(export.symbolic_shape(f"n, {m}"), "float32") for m in ("a", "b")]
    with pytest.raises(ShapeMismatch, match="sizes must be of one scope"):
        export.export(hx.jit(lambda x, y: hnp.concatenate([x, y], axis=1)))(*types)


def test_specs_of_a_tree_of_arguments():
    args = {"x": array(8, 4), "w": array(4, 3)}
    specs = export.symbolic_args_specs((args, 1.0), ({"x": "b, _", "w": "..., n"}, None))
    assert str(specs[0]["x"].shape) == "(b, 4)" and str(specs[0]["w"].shape) == "(4, n)" and specs[1].shape == ()
    read = export.deserialize(export.export(hx.jit(lambda a, c: a["x"] @ a["w"] * c))(*specs).serialize())
    np.testing.assert_allclose(read.call(args, 2.0), 2 * args["x"] @ args["w"], rtol=1e-5)
    (spec,) = export.symbolic_args_specs((array(8, 4),), ["b, _"], ["b >= 2"])  # a list for the tuple of arguments
    assert spec.shape[0] >= 2
    with pytest.raises(BadArgument, match="constraints are those of a scope"):
        export.symbolic_args_specs(args, None, ["b >= 2"], export.SymbolicScope())


@pytest.mark.parametrize("f", [
    lambda x: hnp.partition(x, 3), lambda x: hnp.argpartition(x, 3), lambda x: hnp.delete(x, 3),
    lambda x: hnp.insert(x, 4, 1.0),
])
def test_what_needs_a_size_of_four_is_exported_where_the_scope_has_it(f):
    with pytest.raises(TracerBoolConversionError, match="must follow from the scope of the sizes"):
        exported(f, "b")
    agree(f, exported(f, "b", scope=export.SymbolicScope(["b >= 4"])).call, [array(5)])
