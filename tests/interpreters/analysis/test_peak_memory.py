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


def convolutional_network():
    def loss(p, x, y):
        for kernel in p["kernels"]:
            numbers = ("NHWC", "HWIO", "NHWC")
            x = nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers))
            x = lax.reduce_window(x, -hnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = x.reshape(x.shape[0], -1) @ p["dense"]
        return -hnp.mean(hnp.sum(nn.log_softmax(logits) * y, -1))

    p = {"kernels": [f32(3, 3, 8, 16), f32(3, 3, 16, 32)], "dense": f32(8 * 8 * 32, 10)}
    return hx.value_and_grad(loss), p, f32(32, 32, 32, 8), f32(32, 10)


def recurrence():
    def loss(p, xs, h):
        cell = lambda h, x: 2 * (hnp.tanh(x @ p["x"] + h @ p["h"] + p["b"]),)
        return hnp.mean(lax.scan(cell, h, xs)[1] ** 2)

    return hx.grad(loss), {"x": f32(64, 128), "h": f32(128, 128), "b": f32(128)}, f32(50, 32, 64), f32(32, 128)


def rematerialised_attention():
    @hx.checkpoint
    def attend(p, x):
        q, k, v = [(x @ p[name]).reshape(4, 128, 4, 32).transpose(0, 2, 1, 3) for name in "qkv"]
        attended = nn.softmax(q @ k.swapaxes(-1, -2) / 6.0) @ v
        return x + attended.transpose(0, 2, 1, 3).reshape(4, 128, 128) @ p["o"]

    def loss(layers, x):
        for p in layers:
            x = attend(p, x)
        return hnp.mean(x**2)

    return hx.grad(loss), [dict.fromkeys("qkvo", f32(128, 128))] * 3, f32(4, 128, 128)


def linear_systems():
    return hx.vmap(hnp.linalg.solve), f32(64, 32, 32), f32(64, 32)


def loop_of_unknown_length():
    unsettled = lambda c: hnp.max(hnp.abs(c[1])) > 1e-3
    step = lambda c: (c[0] - 0.1 * c[1], hnp.tanh(c[0] @ c[0].T) @ c[0])
    return lambda x: lax.while_loop(unsettled, step, (x, x))[0], f32(256, 256)


def convolution_by_ffts():
    return lambda x, k: hnp.fft.irfft2(hnp.fft.rfft2(x) * hnp.fft.rfft2(k)), f32(8, 128, 128), f32(8, 128, 128)


def sorts():
    def f(x):
        ordered = hnp.take_along_axis(x, hnp.argsort(x, axis=-1), axis=-1)
        return ordered.cumsum(-1), hnp.median(x, axis=-1)

    return f, f32(64, 4096)


def embeddings():
    def loss(p, tokens):
        logits = nn.relu(p["words"][tokens] @ p["dense"]) @ p["words"].T
        return -hnp.mean(hnp.take_along_axis(nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], axis=-1))

    tokens = hx.ShapeDtypeStruct((8, 64), "int32")
    return hx.value_and_grad(loss), {"words": f32(2000, 64), "dense": f32(64, 64)}, tokens


def donated_optimiser_step():
    def loss(p, x):
        for w in p:
            x = hnp.tanh(x @ w)
        return hnp.mean(x**2)

    def step(p, m, v, x):
        gradient = hx.grad(loss)(p, x)
        m = hx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
        v = hx.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, gradient)
        return hx.tree.map(lambda p, m, v: p - 0.1 * m / (hnp.sqrt(v) + 1e-8), p, m, v), m, v

    weights = [f32(256, 256)] * 4
    return hx.jit(step, donate_argnums=(0, 1, 2)), weights, weights, weights, f32(128, 256)


def mixed_precision():
    def loss(p, x):
        x = x.astype("bfloat16")
        for w in p:
            x = nn.gelu(x @ w.astype("bfloat16"))
        return hnp.mean(x.astype("float32") ** 2)

    step = lambda p, x: hx.tree.map(lambda w, dw: w - 0.1 * dw, p, hx.grad(loss)(p, x))
    return step, [f32(256, 256)] * 4, f32(256, 256)


CLOSE = [mlp, transformer_block, scan_of_checkpoints, convolutions, divided_products]
NEAR = [
    convolutional_network, recurrence, rematerialised_attention, linear_systems, loop_of_unknown_length,
    convolution_by_ffts, sorts, embeddings, donated_optimiser_step, mixed_precision,
]


def reserved(f, args):
    """The bytes of arguments, and those of all that XLA reserves."""
    plan = (f if hasattr(f, "lower") else hx.jit(f)).lower(*args).compile().memory_analysis()
    both = plan.output_size_in_bytes + plan.temp_size_in_bytes - plan.alias_size_in_bytes
    return plan.argument_size_in_bytes, plan.argument_size_in_bytes + both


@pytest.mark.parametrize(("program", "off"), [*[(each, 0.1) for each in CLOSE], *[(each, 0.25) for each in NEAR]])
@pytest.mark.optimised
def test_it_is_near_what_xla_reserves(program, off):
    f, *args = program()
    memory = hx.costs(f)(*args).memory
    arguments, peak = reserved(f, args)
    assert memory.arguments == arguments and memory.peak == pytest.approx(peak, rel=off)


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
