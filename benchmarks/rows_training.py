"""Steps of training on several virtual CPU devices: data-, FSDP-, tensor-, pipeline- and expert-parallel.

The processor time of a step of all devices, against JAX; the losses after eight steps must be equal to 1e-6.
"""

from __future__ import annotations

from .rows_sharded import over_devices
from .timing import Row

STEP = """
import statistics, time
import numpy as np, {lib} as lib, {lib}.numpy as hnp
from {lib} import lax, nn
from {lib}.sharding import Mesh, NamedSharding, PartitionSpec as P
n, layers, width, tokens = lib.device_count(), 8, 256, 1024
mesh, whole, rows = Mesh(np.array(lib.devices()), ("i",)), P(), P("i")

def scanned(layer, w, x):
    return lax.scan(lib.checkpoint(lambda x, w: (layer(x, w), None)), x, w)[0]

def block(x, w):
    return x + nn.gelu(x @ w["up"]) @ w["down"]

def data(w, x):
    return scanned(block, w, x)

def fsdp(w, x):
    gathered = lambda w: {{name: lax.all_gather(part, "i", tiled=True) for name, part in w.items()}}
    return scanned(lambda x, w: block(x, gathered(w)), w, x)

def tensor(w, x):
    return scanned(lambda x, w: x + lax.psum(nn.gelu(x @ w["up"]) @ w["down"], "i"), w, x)

def pipeline(w, x):
    stage, parts = lax.axis_index("i"), x.reshape(2 * n, -1, width)
    def tick(x, t):
        first = lax.dynamic_index_in_dim(parts, hnp.minimum(t, 2 * n - 1), 0, False)
        y = scanned(block, w, hnp.where(stage == 0, first, x))
        return lax.ppermute(y, "i", [(k, (k + 1) % n) for k in range(n)]), y
    ys = lax.scan(tick, lax.pcast(0 * parts[0], "i", to="varying"), hnp.arange(3 * n - 1))[1]
    return hnp.where(stage == n - 1, ys[n - 1 :], 0)

def expert(w, x):
    def layer(x, w):
        sent = lax.all_to_all(x.reshape(n, -1, width), "i", 0, 0)
        return x + lax.all_to_all(nn.gelu(sent @ w["up"][0]) @ w["down"][0], "i", 0, 0).reshape(x.shape)
    return scanned(layer, w, x)

experts = (n,) if {function} is expert else ()
up, down = (layers, *experts, width, 2 * width), (layers, *experts, 2 * width, width)
cut_up, cut_down, cut = dict(
    data=(whole, whole, rows), fsdp=(P(None, "i"), P(None, "i"), rows),
    tensor=(P(None, None, "i"), P(None, "i"), whole), pipeline=(rows, rows, whole),
    expert=(P(None, "i"), P(None, "i"), rows),
)["{function}"]
cuts = dict(up=cut_up, down=cut_down)

def loss(w, x):
    total = ({function}(w, x) ** 2).sum() / (tokens * width)
    return total if {function} is tensor else lax.psum(total, "i")

def step(w, x):
    value, gradient = lib.value_and_grad(loss)(w, x)
    return value, {{name: w[name] - 0.1 * gradient[name] for name in w}}

f = lib.jit(lib.shard_map(step, mesh=mesh, in_specs=(cuts, cut), out_specs=(P(), cuts)))
normal = np.random.default_rng(0).standard_normal
placed = lambda x, spec: lib.device_put(np.float32(x), NamedSharding(mesh, spec))
w = dict(up=placed(normal(up) / 32, cut_up), down=placed(normal(down) / 32, cut_down))
x = placed(normal((tokens, width)), cut)
times = []
for _ in range(8):
    start = time.process_time()
    value, w = lib.block_until_ready(f(w, x))
    times.append(time.process_time() - start)
print(statistics.median(times[2:]) * 1e6, float(value))
"""
KINDS = {
    "data": "data-parallel", "fsdp": "FSDP", "tensor": "tensor-parallel", "pipeline": "pipeline-parallel",
    "expert": "expert-parallel",
}
ROWS = [
    Row(f"{words} training step over {count} devices, processor time", 1.03, over_devices(STEP, count, function=name))
    for name, words in KINDS.items() for count in (2, 8)
]
