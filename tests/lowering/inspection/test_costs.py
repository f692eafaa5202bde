"""Costs of programs whose arrays the compiler divides, beside what XLA reserves and computes on each device."""

import pytest

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp
from handlax.library import LinkCost
from handlax.lowering.inspection.costs import _groups
from handlax.sharding import AbstractMesh, AxisType, NamedSharding, P

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def on_devices(sizes, names, kind=AUTO):
    return hx.make_mesh(sizes, names, axis_types=(kind,) * len(sizes))


def abstract(sizes, names, kind=AUTO):
    return AbstractMesh(sizes, names, (kind,) * len(sizes))


def f32(mesh, shape, *spec):
    return hx.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))


def data_parallel_step(make):
    def loss(layers, x, y):
        for w, b in layers:
            x = hnp.tanh(x @ w + b)
        return hnp.mean((x - y) ** 2)

    def step(layers, x, y):
        value, gradient = hx.value_and_grad(loss)(layers, x, y)
        return value, hx.tree.map(lambda w, dw: w - 0.1 * dw, layers, gradient)

    mesh = make((8,), ("data",))
    layers = [(f32(mesh, (256, 256)), f32(mesh, (256,)))] * 3
    return step, layers, f32(mesh, (512, 256), "data"), f32(mesh, (512, 256), "data")


def tensor_parallel_block(make):
    def loss(p, x):
        q, k, v = [(x @ p[name]).reshape(4, 64, 8, 16).transpose(0, 2, 1, 3) for name in "qkv"]
        y = (nn.softmax(q @ k.swapaxes(-1, -2) / 4) @ v).transpose(0, 2, 1, 3).reshape(4, 64, 128)
        x = x + y @ p["o"]
        return hnp.mean((x + nn.gelu(x @ p["up"]) @ p["down"]) ** 2)

    mesh = make((8,), ("model",))
    columns = {**dict.fromkeys("qkv", (128, 128)), "up": (128, 512)}
    rows = {"o": (128, 128), "down": (512, 128)}
    p = {name: f32(mesh, shape, None, "model") for name, shape in columns.items()}
    p |= {name: f32(mesh, shape, "model") for name, shape in rows.items()}
    return hx.value_and_grad(loss), p, f32(mesh, (4, 64, 128))


def fully_sharded_scan(make):
    def loss(ws, x):
        return hnp.sum(lax.scan(lambda x, w: (hnp.tanh(x @ w), None), x, ws)[0] ** 2)

    mesh = make((8,), ("data",))
    return hx.grad(loss), f32(mesh, (16, 128, 128), None, "data"), f32(mesh, (256, 128), "data")


def sharded_product(make):
    mesh = make((2, 4), ("x", "y"))
    cut = NamedSharding(mesh, P("x"))
    f = lambda a, b: lax.with_sharding_constraint(a @ b, cut)
    return f, f32(mesh, (512, 256), "x", "y"), f32(mesh, (256, 1024), "y")


def expert_parallel(make):
    mesh = make((8,), ("expert",))
    cut = NamedSharding(mesh, P("expert"))
    exchanged = lambda x: lax.with_sharding_constraint(x.reshape(8, 64, 8, 64).swapaxes(0, 2), cut)

    def f(up, down, x):
        x = exchanged(x).reshape(8, 512, 64)
        y = hnp.einsum("ecf,efd->ecd", nn.relu(hnp.einsum("ecd,edf->ecf", x, up)), down)
        return exchanged(y).reshape(4096, 64)

    return f, *[f32(mesh, shape, "expert") for shape in ((8, 64, 128), (8, 128, 64), (4096, 64))]


PROGRAMS = [data_parallel_step, tensor_parallel_block, fully_sharded_scan, sharded_product, expert_parallel]
SENT = {
    data_parallel_step: {"data": {"all-reduce"}},
    tensor_parallel_block: {"model": {"all-reduce"}},
    fully_sharded_scan: {"data": {"all-gather", "all-reduce"}},
    sharded_product: {"y": {"all-reduce"}},
    expert_parallel: {"expert": {"all-to-all"}},
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_device_of_an_abstract_mesh_holds_and_computes_what_one_of_real_ones_does(program):
    f, *args = program(abstract)
    costs = hx.costs(f)(*args)
    f, *args = program(on_devices)
    assert hx.costs(f)(*args) == costs
    compiled = hx.jit(f).lower(*args).compile()
    plan = compiled.memory_analysis()
    reserved = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    assert costs.memory.arguments == plan.argument_size_in_bytes
    assert costs.memory.peak == pytest.approx(reserved - plan.alias_size_in_bytes, rel=0.1)
    by_axis = {}
    for (axis, _), name in costs.sent:
        by_axis.setdefault(axis, set()).add(name)
    assert by_axis == SENT[program]
    if program is not fully_sharded_scan:  # of a loop XLA counts one iteration
        assert costs.flops == pytest.approx(compiled.cost_analysis()["flops"], rel=0.02)


def test_each_device_computes_its_part_and_loops_count_every_iteration():
    f, *args = fully_sharded_scan(abstract)
    whole = hx.costs(f)(*hx.tree.map(lambda t: t.update(sharding=None), args))
    product = 2 * 256 * 128 * 128
    assert hx.costs(f)(*args).flops == pytest.approx(whole.flops / 8, rel=0.02)
    assert whole.flops >= 48 * product and hx.costs(f)(*args).operations["dot"] == 48
    assert hx.costs(f)(*args).links["data"].number == 48  # of each iteration two gathers, and one sum of gradients


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("make", [abstract, on_devices])
def test_explicit_and_automatic_axes_cost_the_same(make, kind):
    mesh = make((2, 4), ("x", "y"), kind)
    f = lambda a, b: (a @ b).sum()
    costs = hx.costs(f)(f32(mesh, (64, 32), "x"), f32(mesh, (32, 128), None, "y"))
    assert costs.operations["dot"] == 1
    ((_, cost),) = [(name, cost) for (_, name), cost in costs.classes.items() if name == "dot"]
    assert cost.flops == 2 * 64 * 32 * 128 // 8
    assert costs.links == {"x": LinkCost(1, 2, 4), "y": LinkCost(1, 6, 6)}


def test_shardings_of_jit_and_of_nested_jit_divide():
    mesh = abstract((8,), ("d",))
    cut = NamedSharding(mesh, P("d"))
    x = hx.ShapeDtypeStruct((64, 8), "float32")
    for f in (
        hx.jit(hnp.sin, in_shardings=cut), hx.jit(hnp.sin, out_shardings=cut),
        lambda x: hx.jit(hnp.sin, in_shardings=cut)(x),
        lambda x: hnp.sin(lax.with_sharding_constraint(x, cut)),
    ):
        assert {name: cost.flops for (_, name), cost in hx.costs(f)(x).classes.items()}["sine"] == 64


def test_a_shard_map_is_counted_by_its_operations_also_of_divided_arguments():
    mesh = abstract((4,), ("d",))
    f = hx.shard_map(lambda x: lax.psum(hnp.sin(x), "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
    costs = hx.costs(f)(f32(mesh, (64,), "d"))
    assert costs.operations["psum"] == 1 and costs == hx.costs(f)(hx.ShapeDtypeStruct((64,), "float32"))


def test_what_no_loop_says_and_what_a_library_computes_is_assumed():
    mesh = abstract((4,), ("d",))
    until = lambda x: lax.while_loop(lambda x: x.sum() < 9.0, lambda x: x + 1.0, x)
    assert not hx.costs(until)(f32(mesh, (64,), "d")).exact
    (assumed,) = hx.costs(hnp.linalg.eigvalsh)(f32(mesh, (8, 4, 4), "d")).assumed - {
        "a loop of unknown length counts as one iteration, lanes of unknown lengths as their mean",
    }
    assert assumed.startswith("a call of lapack_ssyevd")


def test_scopes_of_a_divided_program():
    def f(x):
        with hx.named_scope("encoder"), hx.named_scope("norm"):
            return hnp.sin(x) * 2.0

    scopes = hx.costs(f)(f32(abstract((4,), ("d",)), (64,), "d")).by_scope()
    assert scopes["encoder/norm"].flops == 32


GROUPS = {
    "replica_groups={}": None,
    "replica_groups={{0,1},{2,3}}": [[0, 1], [2, 3]],
    "replica_groups=[2,2]<=[4]": [[0, 1], [2, 3]],
    "replica_groups=[2,2]<=[2,2]T(1,0)": [[0, 2], [1, 3]],
    "replica_groups=mesh['a'=2,'b'=2] {'b'}": [[0, 1], [2, 3]],
    "replica_groups=mesh['a'=2,'b'=2] {'a'}": [[0, 2], [1, 3]],
    "replica_groups=mesh['a'=2,'b'=2] {'a','b'}": [[0, 1, 2, 3]],
    "replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "replica_groups=mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'b'}": [[3, 1], [2, 0]],
    "replica_groups=mesh['a'=8] {'a':(1)2}": [[0, 4], [1, 5], [2, 6], [3, 7]],
    "replica_groups=mesh['a'=8] {'a':(2)2}": [[0, 2], [1, 3], [4, 6], [5, 7]],
}


@pytest.mark.parametrize("text", GROUPS)
def test_the_groups_of_a_collective_are_read_in_each_form(text):
    assert _groups(f"channel_id=1, {text}, use_global_device_ids=true") == GROUPS[text]


def test_a_collective_along_the_last_axis_of_a_mesh_is_of_that_axis():  # whose devices XLA may list in another order
    mesh = abstract((2, 4), ("d", "m"))
    whole = hx.NamedSharding(mesh, hx.P())
    product = lambda a, b: hnp.matmul(a, b, out_sharding=whole)
    sent = hx.costs(product)(f32(mesh, (8, 8), None, "m"), f32(mesh, (8, 8), "m")).sent
    assert {axis: cost.bytes for (axis, _), cost in sent.items()} == {("m", 4): 384}
