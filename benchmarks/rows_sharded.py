"""Arrays and programs over many devices.

Calls of jitted functions with arrays over eight virtual CPU devices, which a process of its own has; a step of training
over them, of a transformer whose heads and hidden units are divided; and what a step of training costs to trace and to
lower for an abstract mesh of 4,096 devices, against one of 8, for handlax alone.
"""

from __future__ import annotations

import math
import os
import runpy
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import handlax as hx
from handlax.sharding import AbstractMesh, AxisType, NamedSharding
from handlax.sharding import PartitionSpec as P

from .rows_start import run_process
from .timing import Pair, Plan, Row

# Only the call is timed: each result is awaited before the next one, so that no queue of programs is waited for.
CALLS = """
import statistics, time
import numpy as np, {lib} as lib
from {lib}.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(lib.devices()).reshape(2, 4), ("a", "b"))
x = lib.device_put(np.ones((16, 8), "float32"), NamedSharding(mesh, P("a", "b")))
f = {function}
x = {argument}
times = []
for _ in range(600):
    start = time.perf_counter()
    y = f(x)
    times.append(time.perf_counter() - start)
    assert y.block_until_ready().sharding == x.sharding
print(statistics.median(times[100:]) * 1e6)
"""

# Two groups of four devices: each has some sequences, each device of it some heads and hidden units. A scan over
# layers, which are computed again for the derivative.
TENSOR_PARALLEL = """
import statistics, time
import numpy as np, {lib} as lib, {lib}.numpy as hnp
from {lib} import lax, nn
from {lib}.sharding import Mesh, NamedSharding, PartitionSpec as P
layers, width, heads, head, hidden, batch, length = 12, 128, 8, 16, 512, 8, 128
mesh = Mesh(np.array(lib.devices()).reshape(2, 4), ("data", "model"))
parts = dict(qkv=P(None, None, None, "model"), out=P(None, "model"), up=P(None, None, "model"), down=P(None, "model"))
sizes = dict(qkv=(3, width, heads, head), out=(heads, head, width), up=(width, hidden), down=(hidden, width))
def normalised(x):
    return x / hnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
def layer(x, w):
    q, k, v = hnp.einsum("btd,cdhk->cbthk", normalised(x), w["qkv"])
    weights = nn.softmax(hnp.einsum("bthk,bshk->bhts", q, k) / 4)
    x = x + lax.psum(hnp.einsum("bhts,bshk,hkd->btd", weights, v, w["out"]), "model")
    return x + lax.psum(nn.gelu(normalised(x) @ w["up"]) @ w["down"], "model"), None
def loss(w, x):
    return lax.pmean((lax.scan(lib.checkpoint(layer), x, w)[0] ** 2).mean(), "data")
def step(w, x):
    value, gradient = lib.value_and_grad(loss)(w, x)
    return value, {{name: w[name] - 0.1 * gradient[name] for name in w}}
f = lib.jit(lib.shard_map(step, mesh=mesh, in_specs=(parts, P("data")), out_specs=(P(), parts)))
normal = np.random.default_rng(0).standard_normal
placed = lambda x, spec: lib.device_put(np.float32(x), NamedSharding(mesh, spec))
w = {{name: placed(normal((layers, *size)) / 16, parts[name]) for name, size in sizes.items()}}
x = placed(normal((batch, length, width)), P("data"))
times = []
for _ in range(8):
    start = time.process_time()
    value, _ = lib.block_until_ready(f(w, x))
    times.append(time.process_time() - start)
print(statistics.median(times[2:]) * 1e6)
"""


def calls(function: str, argument: str = "x") -> Callable[[Plan], Pair]:
    """Microseconds of a call, medians of alternating processes."""
    return over_devices(CALLS, 8, function=function, argument=argument)


def over_devices(program: str, count: int, **words: str) -> Callable[[Plan], Pair]:
    """The first number that a program with several virtual devices prints, medians of alternating processes.

    The others, such as a loss, must be equal to 1e-6.
    """

    def measure(plan: Plan) -> Pair:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
        texts = [program.format(lib=lib, **words) for lib in ("handlax", "jax")]
        times: list[list[float]] = [[], []]
        values: list[list[float]] = [[], []]
        for i in range(plan.rounds):
            for which in (0, 1) if i % 2 == 0 else (1, 0):
                used, *values[which] = map(float, run_process(texts[which], environment, os.getcwd())[1].split())
                times[which].append(used)
        close = [math.isclose(x, y, rel_tol=1e-6) for x, y in zip(*values, strict=True)]
        assert all(close), f"handlax gave {values[0]}, JAX {values[1]}"
        ours, theirs = map(statistics.median, times)
        return Pair(ours, theirs)

    return measure


EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "parallel_transformer.py"
FEW, MANY = (2, 2, 2), (64, 8, 8)  # data, model and pipeline parallel


@cache
def transformer_step(sizes: tuple[int, ...]) -> Any:
    return runpy.run_path(str(EXAMPLE))["planned"](*sizes)


def trace(sizes: tuple[int, ...]) -> Any:
    step, args = transformer_step(sizes)
    return hx.make_program(step)(*args)


def lower(sizes: tuple[int, ...]) -> str:
    step, args = transformer_step(sizes)
    return str(hx.jit(step).lower(*args).as_text())


def against_few(measured: Callable[[tuple[int, ...]], Any]) -> Callable[[Plan], Pair]:
    """Processor time, medians of alternating samples."""

    def sample(sizes: tuple[int, ...]) -> float:
        hx.clear_caches()
        start = time.process_time()
        measured(sizes)
        return (time.process_time() - start) * 1e6

    def measure(plan: Plan) -> Pair:
        for sizes in (MANY, FEW):
            sample(sizes)
        samples = [(sample(MANY), sample(FEW)) for _ in range(9 * plan.rounds)]
        many, few = map(statistics.median, zip(*samples))
        return Pair(many, few, (f"for 8: {few:.3g} us",))

    return measure


def layers(kind: Any) -> Any:
    """Thirty layers over two axes of this kind, whose products are cut by request: along explicit axes the type of
    every value states how it is cut, along automatic ones what is requested alone.
    """
    mesh = AbstractMesh((2, 4), ("data", "model"), (kind, kind))
    rows = NamedSharding(mesh, P("data"))

    def run(x: Any, up: Any, down: Any) -> Any:
        for _ in range(30):
            hidden = hx.nn.gelu(x @ up) * 2.0
            if kind is AxisType.Explicit:
                product = hx.numpy.matmul(hidden, down, out_sharding=rows)
            else:
                product = hx.lax.with_sharding_constraint(hidden @ down, rows)
            x = x + hx.numpy.tanh(product)
        return x

    taken = {(16, 64): P("data"), (64, 128): P(None, "model"), (128, 64): P("model")}
    args = [hx.ShapeDtypeStruct(s, "float32", sharding=NamedSharding(mesh, spec)) for s, spec in taken.items()]
    return hx.jit(run).trace(*args)


def lower_explicit(plan: Plan) -> Pair:
    """Processor time to lower, medians of alternating samples, against automatic axes."""

    def sample(kind: Any) -> float:
        hx.clear_caches()
        traced = layers(kind)
        start = time.process_time()
        traced.lower()
        return (time.process_time() - start) * 1e6

    samples = [(sample(AxisType.Explicit), sample(AxisType.Auto)) for _ in range(9 * plan.rounds)]
    stated, automatic = map(statistics.median, zip(*samples))
    return Pair(stated, automatic, (f"automatic: {automatic:.3g} us",))


def text_sizes(plan: Plan) -> Pair:
    """Without the pairs of the pipeline, a table forward and one backward, of which StableHLO has no symbolic form."""
    many, few = [lower(sizes).split("module @") for sizes in (MANY, FEW)]
    return Pair(len(many[1]), len(few[1]), (f"tables of pairs: {len(many[0]):,}, for 8: {len(few[0]):,}",))


SHARD_MAP = 'lib.jit(lib.shard_map(lambda x: x + 1.0, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b")))'
ROWS_OF_X = "f(np.ones((8, 16), 'float32'))"
ON_ONE = "f(lib.numpy.ones((16, 8), 'float32'))"
ROWS = [
    Row("jit dispatch over 8 devices, 1 argument", 1.00, calls("lib.jit(lambda x: x + 1.0)"), unit="us"),
    Row("shard_map dispatch over 8 devices, 1 argument", 1.00, calls(SHARD_MAP), unit="us"),
    Row("pmap dispatch over 8 devices, 1 argument", 1.00, calls("lib.pmap(lambda x: x + 1.0)", ROWS_OF_X), unit="us"),
    Row("jit dispatch on one of 8 devices, 1 argument", 1.00, calls("lib.jit(lambda x: x + 1.0)", ON_ONE), unit="us"),
    Row(
        "tensor-parallel transformer step over 8 devices, processor time", 1.10, over_devices(TENSOR_PARALLEL, 8), 1.00
    ),
    Row("layers over explicit axes against automatic ones: lower", 1.6, lower_explicit, 1.2, beside=False),
    Row("transformer step for 4,096 devices against 8: trace", 1.1, against_few(trace), beside=False),
    Row("transformer step for 4,096 devices against 8: trace + lower", 1.1, against_few(lower), beside=False),
    Row("transformer step for 4,096 devices against 8: text", 1.1, text_sizes, unit="bytes", beside=False),
]
