"""Calls of exported functions in programs and under transformations."""

import dataclasses

import numpy as np
import pytest
from helpers.foreign_library import calls_of, count

import handlax as hx
from handlax import export, lax
from handlax import numpy as hnp
from handlax.errors import DTypeMismatch, NotDifferentiable, NotExportable, ShapeMismatch, TreeMismatch
from handlax.lowering.export.artifact_schema import FOREIGN_EFFECT
from handlax.lowering.export.call_exported import CallExportedEffect

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
SINE = export.deserialize(export.export(hx.jit(hnp.sin))(X).serialize(vjp_order=1))


def test_a_call_stands_in_loops_branches_and_checkpoints():
    def chained(f):
        step = lambda x, _: (hx.checkpoint(f)(x) * 2, None)
        return lambda x: lax.cond(x[0] > 0, lambda x: lax.scan(step, x, None, length=3)[0], lambda x: x, x).sum()

    np.testing.assert_allclose(hx.jit(chained(SINE.call))(X), chained(hnp.sin)(X), rtol=1e-6)
    np.testing.assert_allclose(hx.grad(chained(SINE.call))(X), hx.grad(chained(hnp.sin))(X), rtol=1e-5)


def test_lanes_are_called_one_by_one():
    rows = np.stack([X, 2 * X])
    np.testing.assert_allclose(hx.vmap(SINE.call)(rows), np.sin(rows), rtol=1e-6)
    np.testing.assert_allclose(hx.vmap(hx.grad(lambda x: SINE.call(x).sum()))(rows), np.cos(rows), rtol=1e-5)
    np.testing.assert_allclose(hx.grad(lambda x: hx.vmap(SINE.call)(x).sum())(rows), np.cos(rows), rtol=1e-5)


def test_forward_mode_is_refused():
    with pytest.raises(NotDifferentiable, match="call_exported"):
        hx.jvp(SINE.call, (X,), (X,))


def test_a_call_is_executed_without_jit_too():
    with hx.disable_jit():
        np.testing.assert_allclose(SINE.call(X), np.sin(X), rtol=1e-6)


def test_a_program_of_calls_is_exported_again():
    again = export.export(hx.jit(lambda x: SINE.call(SINE.call(x)) + 1))(X)
    assert again.mlir_module().count("stablehlo.sine") == 1  # its functions are in the program once
    read = export.deserialize(again.serialize(vjp_order=1))
    np.testing.assert_allclose(read.call(X), np.sin(np.sin(X)) + 1, rtol=1e-6)
    expected = hx.grad(lambda x: hnp.sin(hnp.sin(x)).sum())(X)
    np.testing.assert_allclose(hx.grad(lambda x: read.call(x).sum())(X), expected, rtol=1e-5)


def test_two_programs_of_the_same_name_are_called_in_one():
    cosine = export.export(hx.jit(lambda x: lax.top_k(hnp.cos(x), 1)))(X)
    sine = export.export(hx.jit(lambda x: lax.top_k(hnp.sin(x), 1)))(X)
    f = hx.jit(lambda x: cosine.call(x)[0] + sine.call(x)[0] + lax.top_k(x, 1)[0])
    np.testing.assert_allclose(f(X), [np.cos(X).max() + np.sin(X).max() + X.max()], rtol=1e-6)


def test_a_program_for_several_platforms_is_called_in_one_for_several():
    inner = export.export(hx.jit(lambda x: hnp.max(hnp.linalg.cholesky(x))), platforms=["cuda", "cpu"])
    x = np.eye(3, dtype=np.float32) * 4
    outer = export.export(hx.jit(lambda x: inner(x).call(x) + 1), platforms=["cpu", "cuda"])(x)
    assert float(export.deserialize(outer.serialize()).call(x)) == 3.0


def test_a_slice_of_a_scalar_is_called():  # its short form does not parse
    f = hx.jit(lambda x: lax.dynamic_slice(x, (), ()) + 1)
    assert float(export.deserialize(export.export(f)(np.float32(2)).serialize()).call(np.float32(2))) == 3.0


@pytest.mark.parametrize(("arguments", "kind", "message"), [
    ((X[:2],), ShapeMismatch, r"argument args\[0\] must be f32\[3\], as it was exported, got f32\[2\]"),
    ((X[None],), ShapeMismatch, r"must be f32\[3\], as it was exported, got f32\[1,3\]"),
    ((X.astype("int32"),), DTypeMismatch, r"must be f32\[3\], as it was exported, got i32\[3\]"),
    ((X, X), TreeMismatch, "takes arguments of structure"),
    (([X],), TreeMismatch, "takes arguments of structure"),
])
def test_arguments_of_other_types_are_refused(arguments, kind, message):
    for call in (SINE.call, hx.jit(SINE.call)):
        with pytest.raises(kind, match=message) as found:
            call(*arguments)
        assert found.value.hint
        assert "test_call_exported.py" in found.value.where


@pytest.mark.parametrize("kind", ["ordered_effects", "unordered_effects"])
def test_a_function_with_effects_of_others_is_kept_but_not_called(kind):
    with_effects = dataclasses.replace(SINE, **{kind: ("<class 'theirs.Effect'>",)}, _get_vjp=None)
    read = export.deserialize(with_effects.serialize())
    assert getattr(read, kind) == ("<class 'theirs.Effect'>",)
    with pytest.raises(NotExportable, match=r"but those of foreign functions, got <class 'theirs\.Effect'>"):
        read.call(X)


def test_side_effects_of_foreign_functions_are_called_in_every_call():
    check = export.DisabledSafetyCheck.custom_call("test_count")
    made = export.export(hx.jit(lambda x: (count(x), 2 * x)[1]), disabled_checks=[check])(1.0)
    read = export.deserialize(made.serialize())
    assert made.unordered_effects == read.unordered_effects == (FOREIGN_EFFECT,)
    for f in (made.call, read.call):
        assert len(hx.effects_of(f)(1.0)) == 1
        assert calls_of(lambda x: f(x), 1.0) == calls_of(hx.jit(lambda x: (f(x), x)[1]), 1.0) == 1
        assert calls_of(hx.jit(lambda x: (f(x), f(x), x)[2]), 1.0) == 2
        assert calls_of(hx.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (f(x), c)[1], x)), 1.0) == 3
        assert calls_of(hx.jit(hx.vmap(lambda x: (f(x), x)[1])), np.ones(4, "float32")) == 4
    written = hx.handler({CallExportedEffect: lambda s, op, x: (10 * s + x, (x,))})
    nested = hx.vmap(hx.vmap(read.call))
    assert float(hx.handle(written, 0.0)(nested)(hnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]) == 1234
    again = export.export(hx.jit(lambda x: (read.call(x), x)[1]), disabled_checks=[check])(1.0)
    assert again.unordered_effects == (FOREIGN_EFFECT,) and calls_of(again.call, 1.0) == 1
