"""The memory that a device holds at its peak, beside what XLA reserves for the compiled program."""

import pytest

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp
from handlax.sharding import AbstractMesh, AxisType, NamedSharding, P

DEVICES = 8


def f32(*shape, sharding=None):
    return hx.ShapeDtypeStruct(shape, "float32", sharding=sharding)


def mlp():
    def loss(layers, x, y):
        for w, b in layers:
            x = hnp.tanh(x @ w + b)
        return hnp.mean((x - y) ** 2)

    def step(layers, x, y):
        value, gradient = hx.value_and_grad(loss)(layers, x, y)
        return value, hx.tree.map(lambda w, dw: w - 0.1 * dw, layers, gradient)

    return step, [(f32(512, 512), f32(512))] * 4, f32(256, 512), f32(256, 512)


def transformer_block():
    lanes, length, width, heads = 8, 128, 256, 4

    def norm(x):
        x = x - hnp.mean(x, -1, keepdims=True)
        return x * lax.rsqrt(hnp.mean(x**2, -1, keepdims=True) + 1e-5)

    def loss(p, x):
        normed = norm(x)
        split = lambda name: (normed @ p[name]).reshape(lanes, length, heads, -1).transpose(0, 2, 1, 3)
        weights = nn.softmax(0.125 * split("q") @ split("k").swapaxes(-1, -2))
        attended = (weights @ split("v")).transpose(0, 2, 1, 3).reshape(lanes, length, width)
        x = x + attended @ p["o"]
        return hnp.mean((x + nn.gelu(norm(x) @ p["up"]) @ p["down"]) ** 2)

    square = dict.fromkeys("qkvo", f32(width, width))
    parameters = {**square, "up": f32(width, 4 * width), "down": f32(4 * width, width)}
    return hx.value_and_grad(loss), parameters, f32(lanes, length, width)


def scan_of_checkpoints():
    @hx.checkpoint
    def layer(x, w):
        return hnp.sin(hnp.tanh(x @ w) @ w)

    def loss(ws, x):
        return hnp.sum(lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0] ** 2)

    return hx.grad(loss), f32(16, 256, 256), f32(512, 256)


def convolutions():
    def loss(kernels, x):
        for kernel in kernels:
            numbers = ("NHWC", "HWIO", "NHWC")
            x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers))
        return hnp.mean(x**2)

    def step(kernels, x):
        return [k - 0.1 * dk for k, dk in zip(kernels, hx.grad(loss)(kernels, x))]

    return step, [f32(3, 3, 16, 32), f32(3, 3, 32, 32), f32(3, 3, 32, 32)], f32(16, 32, 32, 16)


def divided_products(mesh=None):
    mesh = mesh or hx.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Explicit,))
    cut = lambda *spec: NamedSharding(mesh, P(*spec))
    types = f32(4096, 512, sharding=cut("d")), f32(512, 2048, sharding=cut()), f32(2048, 512, sharding=cut(None, "d"))
    return lambda x, up, down: hnp.tanh(x @ up) @ hx.reshard(down, cut(None, None)), *types


@pytest.mark.parametrize("program", [mlp, transformer_block, scan_of_checkpoints, convolutions, divided_products])
@pytest.mark.optimised
def test_it_is_near_what_xla_reserves(program):
    f, *args = program()
    plan = hx.jit(f).lower(*args).compile().memory_analysis()
    reserved = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    memory = hx.costs(f)(*args).memory
    assert memory.arguments == plan.argument_size_in_bytes
    assert memory.peak == pytest.approx(reserved - plan.alias_size_in_bytes, rel=0.1)


def test_a_device_of_an_abstract_mesh_holds_its_parts():
    f, *args = divided_products()
    memory = hx.costs(f)(*args).memory
    f, *args = divided_products(AbstractMesh((DEVICES,), ("d",), axis_types=(AxisType.Explicit,)))
    assert hx.costs(f)(*args).memory == memory
    assert memory.arguments == 4 * (4096 * 512 // 8 + 512 * 2048 + 2048 * 512 // 8)


def test_in_shard_map_it_is_that_of_one_device():
    mesh = AbstractMesh((4,), ("d",))
    f = hx.shard_map(lambda x: x @ x.T, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    memory = hx.costs(f)(f32(400, 100)).memory
    assert memory == hx.costs(lambda x: x @ x.T)(f32(100, 100)).memory == (40_000, 40_000)


def test_what_is_fused_is_not_held():
    assert hx.costs(lambda x: hnp.sin(hnp.cos(x) + 1.0) * 2.0)(f32(1000)).memory == (4000, 4000)
    chain = lambda x: lax.fori_loop(0, 9, lambda i, x: hnp.tanh(x * 2.0), x)
    assert hx.costs(chain)(f32(1000)).memory.peak <= 3 * 4000 + 16
