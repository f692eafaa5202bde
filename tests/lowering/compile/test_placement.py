"""Programs over the devices of a mesh: what is emitted, where they run, how their results are cut."""

from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax import debug, errors, lax, random
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import AbstractMesh, AxisType, Mesh
from handlax.effects.sharding.named_sharding import NamedSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P
from handlax.effects.types.array_type import array_type
from handlax.interpreters.core.record import record
from handlax.lowering.arrays.sharding_constraints import with_sharding_constraint
from handlax.lowering.compile.compile import closed_at, compile_program, lower
from handlax.lowering.compile.placement import meshes, on_device, over, placed_as_typed
from handlax.lowering.compile.stablehlo_modules import lower_program
from handlax.lowering.xla import jaxlib_runtime
from handlax.lowering.xla.lazy import runtime

GRID = Mesh(np.array(hx.devices()).reshape(2, 4), ("a", "b"))
LINE = Mesh(np.array(hx.devices()), ("c",))
X = np.arange(32, dtype="float32").reshape(8, 4)


def cut(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def constrained(x, *cuts):
    for sharding in cuts:
        x = with_sharding_constraint(x * 2, sharding)
    return x


def program(f, x=X):
    return record(lambda x: [f(x)], [hnp.asarray(x).type])


def emitted(program, placement=None, options=None):
    """The text of the program, for the devices of its meshes."""
    closed, _, settled = closed_at(program, "f", placement)
    return lower(closed, "f", (), False, settled, options).module.text


def spec(x):
    return jaxlib_runtime.named_sharding(x.buffer).spec


def test_a_mesh_is_declared_once_with_its_axes_in_both_dialects():
    text = emitted(program(lambda x: constrained(x, cut(GRID, "a"), cut(GRID, ("a", "b")))))
    assert text.count("sdy.mesh @") == 1 and "mhlo.num_partitions = 8" in text
    assert 'sdy.mesh @mesh = <["a"=2, "b"=4]>' in text
    assert 'stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 4 : i64}]}' in text
    assert '<@mesh, [{"a"}, {}]>' in text and '<@mesh, [{"a", "b"}, {}]>' in text


def test_functions_of_a_module_share_its_meshes():
    inner = hx.jit(lambda x: constrained(x, cut(GRID, "b"), cut(LINE, "c")))
    text = emitted(program(lambda x: inner(constrained(x, cut(GRID, "a")))))
    assert text.count("sdy.mesh @") == 2 and '@mesh_1 = <["c"=8]>' in text and '<@mesh_1, [{"c"}, {}]>' in text


def test_a_program_of_one_device_knows_of_no_mesh():
    text = emitted(program(lambda x: x + 1))
    assert "sdy" not in text and "mhlo.num_partitions = 1" in text


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_stored_is_behind_a_barrier_or_a_call_where_xla_removes_barriers(keeps, monkeypatch):
    monkeypatch.setattr(runtime, "KEEPS_BARRIERS", keeps)
    draw = record(lambda key: [random.key_data(random.split(key))], [random.key(0).type])
    for platform, barrier in (("cpu", keeps), ("cuda", True)):
        text = lower_program(draw, "f", platform=platform).text
        assert ("optimization_barrier" in text, "call @boundary" in text) == (barrier, not barrier)


@pytest.mark.parametrize("options", [None, {"split_repeats": False}])
def test_a_program_is_emitted_for_the_platform_of_its_device(options, monkeypatch):
    monkeypatch.setattr(runtime, "KEEPS_BARRIERS", False)
    largest = program(hnp.max, np.ones(4096, "float32"))  # on a CPU with a witness of NaN
    for_devices = lambda where: emitted(largest, where, options)
    assert "stablehlo.or" in for_devices(None) and "stablehlo.or" in for_devices(over(LINE))
    for name in ("gpu", "cuda"):
        assert "stablehlo.or" not in for_devices(on_device(SimpleNamespace(platform=name)))


def test_a_loop_without_a_carry_ends_at_once(capfd):
    stopped = lambda: lax.while_loop(lambda _: hnp.asarray(False), lambda _: debug.print("run") or (), ())
    assert hx.jit(lambda x: (stopped(), x + 1)[1])(1.0) == 2
    hx.effects_barrier()
    assert "run" not in capfd.readouterr().out


def test_meshes_are_found_inside_of_bodies():
    step = lambda x, _: (constrained(x, cut(GRID, "a")), None)
    assert meshes(program(lambda x: hx.lax.scan(step, x, None, 3)[0])) == (GRID,)
    assert meshes(program(lambda x: x + 1)) == ()


def test_an_abstract_mesh_is_emitted_and_not_compiled():
    mesh = AbstractMesh((64, 64), ("a", "b"), (AxisType.Auto, AxisType.Auto))
    large = program(lambda x: hnp.sum(constrained(x, cut(mesh, "a", "b"))), np.zeros((128, 128)))
    assert "mhlo.num_partitions = 4096" in emitted(large)
    with pytest.raises(errors.DeviceMismatch, match="abstract"):
        compile_program(large)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: constrained(x, cut(GRID, "a")), P("a")),
        (lambda x: constrained(x, cut(GRID, "b")).T, P(None, "b")),
        (lambda x: constrained(x, cut(GRID, ("b", "a"))), P(("b", "a"))),
        (lambda x: constrained(x, cut(GRID, "a", "b")).sum(0), P("b")),
        (lambda x: constrained(x, cut(GRID, "a")).sum(), P()),
        (lambda x: constrained(x, cut(LINE, "c")), P("c")),
        (lambda x: constrained(x, cut(LINE)), P()),
    ],
)
def test_a_program_that_names_a_mesh_runs_on_it_and_its_results_tell_how_they_are_cut(f, expected):
    y = hx.jit(f)(X)
    assert spec(y) == expected and y.devices() == {*hx.devices()}
    np.testing.assert_allclose(y, f(hnp.asarray(X)), rtol=1e-6)


def test_arguments_and_results_are_cut_as_the_placement_says():
    placement = over(GRID, [cut(GRID, "a"), None])._replace(results=(cut(GRID, None, "b"), None))
    compiled = compile_program(
        record(lambda x, y: [x + y, x * 2], [hnp.asarray(X).type] * 2), placement=placement
    )
    one, two = compiled(hnp.asarray(X), hnp.asarray(X) * 2)
    assert (spec(one), spec(two)) == (P(None, "b"), P("a"))
    assert one.tolist() == (X * 3).tolist() and two.tolist() == (X * 2).tolist()
    assert "jax.buffer_donor" not in compiled.loaded.text


@pytest.mark.parametrize("spec_of_x", [P("a"), P("a", None), P(None, ("b",)), P(("a", "b")), P()])
def test_a_result_that_is_cut_as_an_argument_has_the_very_sharding_of_it(spec_of_x):
    x = with_sharding_constraint(X, NamedSharding(GRID, spec_of_x))
    y = hx.jit(lambda x: x + 1)(x)
    assert y.buffer._sharding is x.buffer._sharding


def test_one_program_has_the_devices_of_one_order():
    backwards = Mesh(np.array(hx.devices()[::-1]), ("c",))
    with pytest.raises(errors.DeviceMismatch, match="same devices in the same order"):
        hx.jit(lambda x: constrained(x, cut(LINE, "c"), cut(backwards, "c")))(X)
    with pytest.raises(errors.DeviceMismatch, match="same devices in the same order"):
        compile_program(program(lambda x: constrained(x, cut(LINE, "c"))), placement=on_device(hx.devices()[3]))
    y = hx.jit(lambda x: constrained(x, cut(backwards, "c")))(X)
    assert y.tolist() == (X * 2).tolist()


def test_collective_programs_are_launched_one_after_the_other_without_harm():
    step = lambda x: x @ (x.T @ x) / hnp.sum(x * x)
    f = hx.jit(step)
    y, z = with_sharding_constraint(X, cut(GRID, "a")), hnp.asarray(X)
    for _ in range(30):
        y, z = f(y), step(z)
    np.testing.assert_allclose(y, z, rtol=1e-3)


def test_what_devices_cannot_reduce_together_is_named():
    bits = hx.device_put(np.arange(8), NamedSharding(GRID, P("a")))
    with pytest.raises(errors.CompileError, match="got and of s64") as error:
        hx.jit(lambda x: hx.lax.reduce_and(x, (0,)))(bits)
    assert "reshard" in error.value.hint


def test_arguments_and_results_are_placed_as_their_types_state():
    mesh = hx.make_mesh((2,), ("a",), devices=hx.devices("cpu")[:2])
    stated = cut(mesh, "a").cut(1)
    types = [array_type((4,), "float32", cut=stated), array_type((4,), "float32")]
    whole = NamedSharding(mesh, P())
    assert placed_as_typed(over(mesh), types, types).results == (cut(mesh, "a"), None)
    assert placed_as_typed(over(mesh), types, types).arguments == (cut(mesh, "a"), None)
    assert placed_as_typed(over(mesh, [whole, None]), types, types).arguments == (whole, None)
    for other in (types[1], types[0].cut_by(stated.hidden)):
        assert placed_as_typed(over(mesh), [other], [other]) == over(mesh)


@pytest.mark.parametrize("spec", [P("a"), P(unreduced={"a"}), P(reduced={"a"})], ids=str)
def test_a_program_is_where_the_arrays_are_that_it_captured(spec):
    x = hx.device_put(X, NamedSharding(hx.make_mesh((2, 4), ("a", "b")), spec))
    for y in (hx.jit(lambda: x + x)(), lax.cond(True, lambda: x + x, lambda: x)):
        assert y.type == x.type and y.devices() == x.devices()
        np.testing.assert_array_equal(y, 2 * X)
