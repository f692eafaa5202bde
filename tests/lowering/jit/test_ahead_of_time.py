"""A jitted function stopped at each stage."""

from __future__ import annotations

import os
import time
from concurrent import futures
from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax import lax, stages
from handlax import numpy as hnp
from handlax.errors import (
    BadArgument,
    CompileError,
    DeletedArray,
    DeviceMismatch,
    DTypeMismatch,
    NotAnArray,
    TreeMismatch,
)
from handlax.lowering.jit import ahead_of_time
from handlax.sharding import AbstractMesh, AxisType, NamedSharding
from handlax.sharding import PartitionSpec as P

X = np.arange(3, dtype=np.float32)


def f(x, w):
    return {"y": x * w["a"] + 1, "n": w["a"]}


def test_the_stages_give_what_a_call_gives():
    compiled = hx.jit(f).trace(X, {"a": 2.0}).lower().compile()
    np.testing.assert_array_equal(compiled(X, {"a": 3.0})["y"], [1, 4, 7])
    assert compiled.out_tree == hx.tree.structure({"y": 0, "n": 0})
    assert compiled.in_tree == hx.tree.structure(((0, {"a": 0}), {}))


def test_only_types_count():
    struct = hx.ShapeDtypeStruct((3,), "float32")
    lowered = hx.jit(f).lower(struct, {"a": hx.ShapeDtypeStruct((), "float32")})
    assert lowered.out_info["y"] == struct
    np.testing.assert_array_equal(lowered.compile()(X, {"a": np.float32(1)})["y"], X + 1)
    assert hx.jit(f).eval_shape(struct, {"a": 1.0})["y"] == struct == hx.eval_shape(f, struct, {"a": 1.0})["y"]


@pytest.mark.parametrize("x", [
    SimpleNamespace(shape=(3,), dtype="float32"), hx.ShapeDtypeStruct((3,), "float32"), hx.typeof(X), hnp.asarray(X), X,
], ids=lambda x: type(x).__name__)
def test_whatever_has_a_shape_and_a_dtype_describes_an_argument(x):
    assert hx.jit(lambda x: x + 1).lower(x).in_avals == ((hx.typeof(X),), {})


@pytest.mark.parametrize("x", ["text", SimpleNamespace(shape=(3,)), SimpleNamespace(dtype="float32")], ids=repr)
def test_what_has_none_is_no_argument(x):
    with pytest.raises(NotAnArray):
        hx.jit(lambda x: x).lower(x)


def test_the_program_can_be_read():
    traced = hx.jit(f).trace(X, {"a": 2.0})
    assert traced.program is traced.jaxpr and "mul" in str(traced.program) and traced.fun_name == "f"
    assert "stablehlo.multiply" in traced.lower().as_text()
    assert traced.lower().as_text("hlo").startswith("HloModule")
    assert "stablehlo.multiply" in traced.lower().compiler_ir().operation.get_asm()
    assert traced.lower().compiler_ir("hlo").as_hlo_text() == traced.lower().as_text("hlo")
    executable = traced.lower().compile().runtime_executable()
    assert "multiply" in executable.hlo_modules()[0].to_string()
    with pytest.raises(BadArgument, match="dialect"):
        traced.lower().as_text("fortran")
    with pytest.raises(BadArgument, match="dialect"):
        traced.lower().compiler_ir("fortran")


def test_costs_are_known():
    lowered = hx.jit(f).lower(X, {"a": 2.0})
    assert lowered.cost_analysis()["flops"] >= 6
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] >= 6 and compiled.as_text().startswith("HloModule")
    assert compiled.memory_analysis().output_size_in_bytes >= 12


def test_other_arguments_are_refused_by_name():
    compiled = hx.jit(f).lower(X, {"a": 2.0}).compile()
    with pytest.raises(DTypeMismatch, match=r"argument x must be f32\[3\].*got f32\[4\]"):
        compiled(np.zeros(4, np.float32), {"a": 2.0})
    with pytest.raises(DTypeMismatch, match=r"argument w\['a'\]"):
        compiled(X, {"a": 2})
    with pytest.raises(TreeMismatch):
        compiled(X)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_devices_are_assigned_to_an_abstract_mesh(kind):
    mesh, x = AbstractMesh((2, 4), ("a", "b"), (kind, kind)), np.arange(32, dtype="float32").reshape(8, 4)
    shape = hx.ShapeDtypeStruct((8, 4), "float32", sharding=NamedSharding(mesh, P("a")))
    total = hx.shard_map(lambda x: lax.psum(x.sum(0), "a"), mesh=mesh, in_specs=P("a"), out_specs=P())
    for f, expected in ((lambda x: x * 2, x * 2), (total, x.sum(0))):
        lowered = hx.jit(f).lower(shape)
        with pytest.raises(DeviceMismatch, match="an abstract mesh has no devices"):
            lowered.compile()
        devices = hx.devices()[::-1]
        compiled = lowered.compile(device_assignment=devices)
        assert compiled.memory_analysis().argument_size_in_bytes == 64
        (sharding,), _ = compiled.input_shardings
        assert [*sharding.mesh.devices.flat] == devices and sharding.spec == P("a")
        assert np.array_equal(compiled(x), expected)


def test_what_device_assignment_must_be():
    shape = hx.ShapeDtypeStruct((8,), "float32", sharding=NamedSharding(AbstractMesh((8,), ("a",)), P("a")))
    lowered = hx.jit(lambda x: x + 1).lower(shape)
    with pytest.raises(DeviceMismatch, match="as many devices as the mesh, 8, got 3"):
        lowered.compile(device_assignment=hx.devices()[:3])
    for wrong in (3, [3] * 8):
        with pytest.raises(BadArgument, match="device_assignment must be"):
            lowered.compile(device_assignment=wrong)
    here = hx.jit(lambda x: x + 1).lower(1.0).compile(device_assignment=hx.devices()[3:4])
    assert here(2.0) == 3.0 and here(2.0).devices() == {hx.devices()[3]}
    mesh = hx.sharding.Mesh(np.array(hx.devices()), ("a",))
    named = hx.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P("a"))))
    with pytest.raises(DeviceMismatch, match="must have the same devices"):
        named.lower(np.ones(8)).compile(device_assignment=hx.devices()[::-1])


def test_static_arguments_are_left_out_and_donated_ones_are_gone():
    compiled = hx.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0).lower(X, 3).compile()
    x = hx.device_put(X)
    np.testing.assert_array_equal(compiled(x), X * 3)
    assert x.is_deleted()
    with pytest.raises(DeletedArray):
        compiled(x)


def test_a_compiled_function_can_be_traced():
    compiled = hx.jit(lambda x: x * x).lower(2.0).compile()
    assert float(hx.grad(lambda x: compiled(x))(3.0)) == 6.0


def test_donation_is_told_to_the_compiler():
    lowered = hx.jit(lambda x: x + 1, donate_argnums=0).lower(X)
    assert "tf.aliasing_output = 0" in lowered.as_text() and lowered.donate_argnums == (0,)
    assert lowered.args_info[0][0].donated


def test_each_step_is_of_its_class():
    f = hx.jit(lambda x: x + 1)
    traced = f.trace(2.0)
    lowered = traced.lower()
    compiled = lowered.compile()
    assert isinstance(f, stages.Wrapped) and not isinstance(lambda x: x, stages.Wrapped)
    found = [type(step) for step in (traced, lowered, compiled)]
    assert found == [stages.Traced, stages.Lowered, stages.Compiled]
    ((info,), _) = compiled.args_info
    assert isinstance(info, stages.ArgInfo) and (info.shape, info.dtype, info.donated) == ((), "float32", False)
    assert compiled(2.0) == 3.0


def test_several_functions_are_compiled_at_once():
    x = np.arange(5.0)
    functions = [hx.jit(lambda x, k=k: hnp.sin(k * x)) for k in range(5)]
    compiled = hx.compile_all([f.lower(x) for f in functions])
    for f, g in zip(functions, compiled):
        np.testing.assert_array_equal(f(x), g(x))
    assert hx.compile_all([]) == []


def test_functions_that_are_compiled_at_once_are_so_when_they_are_called(caplog):
    x = np.arange(6.0)
    f = hx.jit(lambda x: hnp.tanh(x) + 17.25)
    assert len(hx.compile_all([f.lower(x), f.lower(x)])) == 2
    with hx.configure(log_compiles=True), caplog.at_level("WARNING"):
        f(x)
    assert "XLA compilation" not in caplog.text


def test_of_several_compilations_the_first_failure_is_raised():
    stages = [hx.jit(lambda x, k=k: x + k).lower(1.5) for k in range(3)]
    with pytest.raises(CompileError, match="no_such_option"):
        hx.compile_all(stages, {"no_such_option": 1})
    with pytest.raises(BadArgument, match="compile_all: every stage must be lowered, got <"):
        hx.compile_all([*stages, hx.jit(abs)])
    with pytest.raises(BadArgument, match="compile_all: a list of stages is needed, got <"):
        hx.compile_all(stages[0])


def test_a_failure_in_a_thread_names_its_stage_and_the_line_of_the_call():
    def cube(x):
        return x * x * x

    stages = [hx.jit(abs).lower(1.5), hx.jit(cube, compiler_options={"no_such_option": 1}).lower(1.5)]
    with pytest.raises(CompileError, match=r"^compile_all: stage 1, cube: .*'no_such_option'") as raised:
        hx.compile_all(stages)
    assert "test_ahead_of_time.py" in raised.value.where


def test_an_interrupt_drops_what_is_not_being_compiled(monkeypatch):
    begun = []

    def compile_slowly(stage, options):
        begun.append(stage)
        time.sleep(0.3)

    def interrupt(compiling):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages.Lowered, "compile", compile_slowly)
    threads = SimpleNamespace(ThreadPoolExecutor=futures.ThreadPoolExecutor, wait=interrupt)
    monkeypatch.setattr(ahead_of_time, "futures", threads)
    stage = hx.jit(lambda x: x).lower(1.0)
    with pytest.raises(KeyboardInterrupt):
        hx.compile_all([stage] * 1000)
    assert len(begun) <= os.cpu_count()
