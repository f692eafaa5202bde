"""Train one function: on one device, on eight, and on the devices of four processes.

    python examples/one_function.py

Nothing in ``step`` says where it is executed: the arrays that it is given do. On machines of a cluster each process
calls ``train`` after ``hx.distributed.initialize()``, which is what the processes do that this program starts here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import handlax as hx
from handlax import NamedSharding, P
from handlax import numpy as hnp
from handlax.launch import launch

STEPS, ROWS, RATE = 40, 256, 0.3

Params = dict[str, Any]


def loss(params: Params, x: Any, y: Any) -> Any:
    hidden = hnp.tanh(x @ params["in"])
    return ((hidden @ params["out"] - y) ** 2).mean()


@hx.jit
def step(params: Params, x: Any, y: Any) -> tuple[Params, Any]:
    value, gradient = hx.value_and_grad(loss)(params, x, y)
    return hx.tree.map(lambda p, g: p - RATE * g, params, gradient), value


def data(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that a process reads, as it would from its own files."""
    x = np.random.default_rng(0).standard_normal((ROWS, 8))[first:last].astype(np.float32)
    return x, np.sin(x.sum(1, keepdims=True))


def initial() -> Params:
    """The same in every process, for they have the same seed."""
    generator = np.random.default_rng(1)
    shapes = {"in": (8, 32), "out": (32, 1)}
    return {name: 0.2 * generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def train() -> float:
    """The loss after training by the devices of all processes, each of which has a part of the rows."""
    mesh = hx.make_mesh((hx.device_count(),), ("rows",))
    by_row, whole = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())
    share = ROWS // hx.process_count()
    own = data(hx.process_index() * share, (hx.process_index() + 1) * share)
    x, y = hx.make_array_from_process_local_data(by_row, own)
    params = hx.device_put(initial(), whole)
    for _ in range(STEPS):
        params, value = step(params, x, y)
    return float(value)


def on_one_device() -> float:
    """The same training without a word about devices."""
    params = initial()
    for _ in range(STEPS):
        params, value = step(params, *data(0, ROWS))
    return float(value)


def main() -> int:
    if "--joined" in sys.argv:
        hx.distributed.initialize()
        value = train()
        if hx.process_index() == 0:
            print(f"{hx.process_count()} processes with {hx.local_device_count()} devices each: loss {value:.5f}")
        return 0
    hx.config.update("jax_num_cpu_devices", 8)
    print(f"one device: loss {on_one_device():.5f}")
    print(f"eight devices: loss {train():.5f}", flush=True)
    return launch([__file__, "--joined"], 4, devices=2)


if __name__ == "__main__":
    sys.exit(main())
