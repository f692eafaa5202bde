"""Exporting jitted functions."""

import numpy as np
import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import export, lax
from handlax import numpy as hnp
from handlax.errors import BadArgument, NotDifferentiable, NotExportable

S = hx.ShapeDtypeStruct
F3 = S((3,), "float32")
X = np.linspace(0.5, 1.5, 3, dtype=np.float32)


def reread(exported, vjp_order=0):
    return export.deserialize(exported.serialize(vjp_order))


def test_an_exported_function_says_what_it_takes_and_gives():
    def scaled(x, *, by):
        return {"y": x * by[0]}

    found = export.export(hx.jit(scaled))(F3, by=(S((), "float32"), S((5,), "int32")))
    assert found.fun_name == "scaled"
    assert found.in_tree == hx.tree.structure(((0.0,), {"by": (0.0, 0.0)}))
    assert found.out_tree == hx.tree.structure({"y": 0.0})
    assert [*map(str, found.in_avals)] == ["f32[3]", "f32[]", "i32[5]"]
    assert [*map(str, found.out_avals)] == ["f32[3]"]
    assert found.module_kept_var_idx == (0, 1)
    assert found.platforms == (export.default_export_platform(),) == ("cpu",)
    assert (found.nr_devices, found.uses_global_constants, found.disabled_safety_checks) == (1, False, ())
    assert (found.ordered_effects, found.unordered_effects) == ((), ())
    assert found.calling_convention_version == export.maximum_supported_calling_convention_version
    assert found.in_shardings_jax() == (None,) * 3 == found.in_shardings_hlo
    assert "func.func public @main" in found.mlir_module()
    assert repr(found) == "Exported(scaled: (f32[3], f32[], i32[5]) -> (f32[3]))"


def test_a_new_process_calls_the_function_without_its_source(tmp_path):
    f = hx.jit(lambda x: {"y": hnp.sin(x) * 2})
    file = tmp_path / "f.bin"
    file.write_bytes(export.export(f)(F3).serialize())
    code = (
        "import handlax as hx, sys; from pathlib import Path;"
        f"f = hx.export.deserialize(Path({str(file)!r}).read_bytes());"
        "print(hx.numpy.round(f.call(hx.numpy.ones(3, 'float32'))['y'], 3).tolist(), 'jax' in sys.modules)"
    )
    rounded = np.float32(round(2 * np.sin(1.0), 3))
    assert in_new_process(code) == f"{[float(rounded)] * 3} False"


def test_a_module_is_refined_where_its_sizes_are_symbolic():
    marked = {
        size: "jax.uses_shape_polymorphism = true" in export.export(hx.jit(hnp.sin))(
            S(export.symbolic_shape(size), "float32")).mlir_module()
        for size in ("3", "b")
    }
    assert marked == {"3": False, "b": True}


def test_unused_arguments_are_kept_where_jit_keeps_them():
    kept = export.export(hx.jit(lambda x, y: x, keep_unused=True))(F3, F3)
    assert kept.module_kept_var_idx == (0, 1)
    np.testing.assert_array_equal(reread(kept).call(X, 2 * X), X)


def test_captured_arrays_are_part_of_the_program():
    weights = np.random.default_rng(0).normal(size=(50, 50)).astype(np.float32)
    f = hx.jit(lambda x: hnp.tanh(x @ hnp.asarray(weights)))
    x = np.ones((2, 50), np.float32)
    read = reread(export.export(f)(x))
    assert read.module_kept_var_idx == (0,)
    np.testing.assert_allclose(read.call(x), f(x), rtol=1e-5)


def test_static_arguments_are_not_among_the_arguments_of_the_program():
    f = hx.jit(lambda x, n: x * n, static_argnums=1)
    np.testing.assert_array_equal(reread(export.export(f)(F3, 4)).call(X), 4 * X)


def test_a_program_for_several_platforms_takes_the_branch_of_the_one_in_force():
    f = hx.jit(lambda x: hnp.linalg.cholesky(x @ x.T + hnp.eye(3)) + hnp.max(x))
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    found = reread(export.export(f, platforms=["cuda", "cpu"])(x))
    assert found.platforms == ("cuda", "cpu")
    assert found.uses_global_constants
    text = found.mlir_module()
    assert "@lapack_spotrf_ffi" in text
    assert "@cusolver_potrf_ffi" in text
    np.testing.assert_allclose(found.call(x), f(x), rtol=1e-5)


def test_a_program_for_another_platform_is_refused_here_unless_the_check_is_left_out():
    f = hx.jit(lambda x: x + 1)
    with pytest.raises(NotExportable, match="which are tpu, got cpu"):
        export.export(f, platforms=["tpu"])(F3).call(X)
    anywhere = export.export(f, platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()])(F3)
    np.testing.assert_array_equal(reread(anywhere).call(X), X + 1)


@pytest.mark.parametrize("platforms", [[], ["cpu", "cpu"], [3]])
def test_platforms_that_are_none_are_refused(platforms):
    with pytest.raises(BadArgument, match="platforms must be different names"):
        export.export(hx.jit(lambda x: x), platforms=platforms)


def test_a_function_that_is_not_jitted_is_refused():
    with pytest.raises(BadArgument, match="a jitted function is needed"):
        export.export(lambda x: x)


def test_calls_of_the_host_are_refused():
    def shows(x):
        hx.debug.print("{}", x)
        return x

    pure = lambda x: hx.pure_callback(np.sin, F3, x)
    ordered = lambda x: hx.experimental.io_callback(np.sin, F3, x, ordered=True)
    for f in (shows, pure, ordered):
        with pytest.raises(NotExportable, match="must not call the host"):
            export.export(hx.jit(f))(F3)


def test_each_call_of_the_host_is_named_once():
    def f(x):
        for _ in range(2):
            hx.debug.print("{}", x)
        return hx.pure_callback(np.sin, F3, x)

    with pytest.raises(NotExportable, match=r"got DebugPrint\([^)]*\)\), PureCallback\([^P]*$"):
        export.export(hx.jit(f))(F3)


@hx.effect
class Tick:
    def result_type(op):
        return None


def test_effects_that_nobody_handles_are_refused():
    with pytest.raises(hx.errors.UnhandledEffect, match="nobody handles Tick"):
        export.export(hx.jit(lambda x: (hx.perform(Tick()), x)[1]))(F3)


def test_what_is_called_by_name_must_be_promised():
    f = hx.jit(hnp.linalg.eigvalsh)
    assert "lapack_ssyevd_ffi" in export.export(f)(S((3, 3), "float32")).mlir_module()
    hessenberg = hx.jit(lambda x: lax.linalg.schur(x)[0])
    export.export(hessenberg)(S((3, 3), "float32"))
    mine, check = hx.jit(hx.ffi.ffi_call("mine", F3)), export.DisabledSafetyCheck.custom_call("mine")
    with pytest.raises(NotExportable, match="must keep its meaning in later versions, got mine"):
        export.export(mine)(F3)
    assert "@mine(" in export.export(mine, disabled_checks=[check])(F3).mlir_module()


def test_a_check_has_a_name():
    check = export.DisabledSafetyCheck.custom_call("my_target")
    assert check.is_custom_call() == "my_target"
    assert export.DisabledSafetyCheck.platform().is_custom_call() is None
    assert str(check) == "custom_call:my_target"
    assert check == export.DisabledSafetyCheck.custom_call("my_target") != export.DisabledSafetyCheck.platform()
    found = export.export(hx.jit(lambda x: x), disabled_checks=[check])(F3)
    assert reread(found).disabled_safety_checks == (check,)


def test_derivatives_are_written_up_to_an_order():
    f = export.export(hx.jit(lambda x: hnp.sum(x**3)))(F3)
    second = lambda g: hx.grad(lambda x: hx.grad(g)(x).sum())
    np.testing.assert_allclose(hx.grad(f.call)(X), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(second(reread(f, 2).call)(X), 6 * X, rtol=1e-6)
    np.testing.assert_allclose(hx.grad(reread(f, 1).call)(X), 3 * X**2, rtol=1e-6)
    for g in (lambda: hx.grad(reread(f).call)(X), lambda: second(reread(f, 1).call)(X), lambda: reread(f).serialize(1)):
        with pytest.raises(NotDifferentiable, match="must be exported with it"):
            g()
    for order in (-1, "1"):
        with pytest.raises(BadArgument, match="vjp_order must be an integer"):
            f.serialize(order)


def test_the_pullback_takes_arguments_and_cotangents():
    f = export.export(hx.jit(lambda x, n: (x * n, n)))(F3, S((), "int32"))
    pull = reread(f, 1).vjp()
    assert [*map(str, pull.in_avals)] == ["f32[3]", "i32[]", "f32[3]", "float0[]"]
    assert [*map(str, pull.out_avals)] == ["f32[3]", "float0[]"]
    derivative = hx.grad(lambda x: reread(f, 1).call(x, 3)[0].sum())(X)
    np.testing.assert_array_equal(derivative, [3.0, 3.0, 3.0])


@pytest.fixture
def mesh():
    return hx.make_mesh((4, 2), ("a", "b"))


def test_shardings_are_kept_over_a_mesh_without_devices(mesh):
    rows, columns = hx.NamedSharding(mesh, hx.P("a")), hx.NamedSharding(mesh, hx.P(None, "b"))
    x, w = np.ones((8, 6), np.float32), np.full((6, 4), 0.1, np.float32)
    f = hx.jit(lambda x, w: hnp.tanh(x @ w), in_shardings=(rows, columns), out_shardings=rows)
    read = reread(export.export(f)(x, w), 1)
    assert read.nr_devices == 8
    assert read.in_shardings_jax(mesh) == (rows, columns)
    assert read.out_shardings_jax(mesh) == (rows,)
    assert read.in_shardings_jax()[0].mesh == mesh.abstract_mesh
    placed = [hx.device_put(v, s) for v, s in zip((x, w), read.in_shardings_jax(mesh))]
    for call in (read.call, hx.jit(read.call)):
        y = call(*placed)
        assert y.sharding.is_equivalent_to(rows, 2)
        np.testing.assert_allclose(y, np.tanh(x @ w), rtol=1e-5)
    derivative = hx.jit(hx.grad(lambda x, w: read.call(x, w).sum()))(*placed)
    np.testing.assert_allclose(derivative, hx.grad(lambda x: hnp.tanh(x @ w).sum())(x), rtol=1e-5)
    with pytest.raises(hx.errors.DeviceMismatch, match="exported for 8 devices must be called on as many, got 1"):
        read.call(x, w)
    auto = hx.make_mesh((4, 2), ("a", "b"), axis_types=(hx.sharding.AxisType.Auto,) * 2)
    for other in (hx.make_mesh((8,), ("a",)), auto):
        with pytest.raises(BadArgument, match="the mesh must have the axes"):
            read.in_shardings_jax(other)


def test_of_shardings_those_that_are_said_are_kept(mesh):
    rows = hx.NamedSharding(mesh, hx.P("a"))
    w = np.ones((1000, 3), np.float32)  # an argument of the compiled program, before those of the call
    f = hx.jit(lambda x, y: (x + y + hnp.asarray(w)[0, 0]), in_shardings=(rows, None))
    x = np.arange(4, dtype=np.float32)
    read = reread(export.export(f)(x, x))
    assert read.in_shardings_jax(mesh) == (rows, None)
    np.testing.assert_array_equal(f(x, x), 2 * x + 1)


@pytest.mark.parametrize(("axes", "spec", "message"), [
    (("a", "b"), hx.P(hx.P.UNCONSTRAINED), "must say how every dimension is cut"),
    ((0, 1), hx.P(0), "the axes of a mesh must have strings as names, got 0"),
])
def test_shardings_that_no_bytes_say_are_refused(axes, spec, message):
    mesh = hx.make_mesh((4, 2), axes)
    made = export.export(hx.jit(lambda x: x + 1, out_shardings=hx.NamedSharding(mesh, spec)))(np.ones(4, np.float32))
    with pytest.raises(NotExportable, match=message):
        made.serialize()


def test_a_dtype_that_jax_lacks_is_refused():
    with pytest.raises(NotExportable, match="must be one that JAX has, got int2"):
        export.export(hx.jit(lambda x: x))(S((3,), "int2")).serialize()


def test_a_function_of_the_package_needs_no_jit():
    np.testing.assert_allclose(reread(export.export(lax.sin)(F3)).call(X), np.sin(X), rtol=1e-6)


def test_a_mesh_of_one_device_is_none_to_the_program():
    one = hx.make_mesh((1,), ("a",), devices=hx.devices()[:1])
    cut = hx.NamedSharding(one, hx.P("a"))
    f = hx.jit(lambda x: x + 1, in_shardings=cut, out_shardings=cut)
    found = reread(export.export(f)(F3))
    assert "sdy" not in found.mlir_module() and "sdy" not in f.lower(X).as_text()
    assert found.nr_devices == 1 and found.in_shardings_jax(one) == found.out_shardings_jax(one) == (cut,)
    assert f(X).sharding == cut and f(X).tolist() == (X + 1).tolist()


def test_a_program_of_one_device_is_called_on_several(mesh):
    read = reread(export.export(hx.jit(hnp.sin))(S((8,), "float32")))
    x = hx.device_put(np.arange(8, dtype=np.float32), hx.NamedSharding(mesh, hx.P("a")))
    np.testing.assert_allclose(read.call(x), np.sin(np.arange(8)), rtol=1e-5)


def test_the_derivative_of_a_shard_map_is_exported(mesh):
    def f(x):
        return hx.shard_map(
            lambda x: hnp.sin(x) - lax.pmean(hnp.mean(x), "a"), mesh=mesh, in_specs=hx.P("a"), out_specs=hx.P("a"))(x)

    cut = hx.NamedSharding(mesh, hx.P("a"))
    x = hx.device_put(np.arange(8, dtype="float32"), cut)
    exported = export.export(hx.jit(f, in_shardings=cut))(x)
    read = export.deserialize(exported.serialize(vjp_order=1))
    expected = hx.grad(lambda x: (f(x) ** 2).sum())(x)
    np.testing.assert_allclose(hx.grad(lambda x: (read.call(x) ** 2).sum())(x), expected, rtol=1e-6)


@pytest.mark.parametrize("sizes", [None, ("2, a", "a, 4")])
def test_derivatives_by_integers_of_any_size_are_exported(sizes):
    def f(n, x):
        return 2 * n.T, x.T * x.T

    n, x = np.arange(6, dtype="int32").reshape(2, 3), np.arange(12, dtype="float32").reshape(3, 4)
    types = (n, x) if sizes is None else export.symbolic_args_specs((n, x), sizes)
    read = reread(export.export(hx.jit(f))(*types), vjp_order=2)
    cts = np.zeros((3, 2), hx.dtypes.float0), np.ones((4, 3), "float32")
    found, expected = [hx.vjp(g, n, x)[1](cts) for g in (read.call, f)]
    for slopes in (found, read.vjp().call(n, x, *cts)):
        assert slopes[0].dtype == hx.dtypes.float0 and slopes[0].shape == (2, 3)
        np.testing.assert_allclose(slopes[1], expected[1])
    second = [hx.vjp(hx.vjp(g, n, x)[1], cts)[1](expected)[0][1] for g in (read.call, f)]
    np.testing.assert_allclose(*second)
