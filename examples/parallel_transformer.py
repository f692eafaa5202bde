"""A training step of a transformer over data, tensor and pipeline parallel devices; planned for 4,096, executed on 8.

    python examples/parallel_transformer.py

Each device has some layers (axis "stage"), of these some heads and hidden units (axis "model"), and some sequences of
the batch (axis "data"). Activations go from stage to stage, a microbatch in every tick, so that all stages compute at
once. ``block`` and ``cross_entropy`` are those of one device; ``total`` and ``tick`` are all that knows of several.

Nothing is said about gradients: types tell along which axes a weight is shared, and the derivative of a shared value is
the sum of what devices contribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import handlax as hx
from handlax import P, lax, nn, random
from handlax import numpy as hnp
from handlax.sharding import AbstractMesh

AXES = ("data", "model", "stage")


class Sizes(NamedTuple):
    """A model, and the microbatches of a step."""

    vocabulary: int = 32
    width: int = 16
    heads: int = 4
    head: int = 4
    hidden: int = 32
    layers: int = 4
    microbatches: int = 4
    batch: int = 4
    length: int = 8

    @property
    def weights(self) -> dict[str, tuple[int, ...]]:
        return {
            "embed": (self.vocabulary, self.width),
            "qkv": (self.layers, 3, self.width, self.heads, self.head),
            "out": (self.layers, self.heads, self.head, self.width),
            "up": (self.layers, self.width, self.hidden),
            "down": (self.layers, self.hidden, self.width),
        }

    @property
    def tokens(self) -> tuple[int, ...]:
        return (self.microbatches, self.batch, self.length + 1)


# how weights and tokens are divided
WEIGHTS = {
    "embed": P(),
    "qkv": P("stage", None, None, "model"),
    "out": P("stage", "model"),
    "up": P("stage", None, "model"),
    "down": P("stage", "model"),
}
TOKENS = P(None, "data")


def normalised(x: Any) -> Any:
    return x / hnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def block(w: Any, x: Any, total: Callable[[Any], Any]) -> Any:
    """One layer, of which this device has some heads and hidden units; ``total`` adds up what all of them give."""
    q, k, v = hnp.einsum("btd,cdhk->cbthk", normalised(x), w["qkv"])
    scores = hnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    past = hnp.tril(hnp.ones(scores.shape[-2:], bool))
    weights = nn.softmax(hnp.where(past, scores, -1e9))
    x = x + total(hnp.einsum("bhts,bshk,hkd->btd", weights, v, w["out"]))
    return x + total(nn.gelu(normalised(x) @ w["up"]) @ w["down"])


def layers(w: Any, x: Any, total: Callable[[Any], Any] = lambda y: y) -> Any:
    stacked = {name: w[name] for name in w if name != "embed"}
    return lax.scan(lambda x, one: (block(one, x, total), None), x, stacked)[0]


def cross_entropy(w: Any, x: Any, targets: Any) -> Any:
    """The mean over all tokens."""
    scores = nn.log_softmax(normalised(x) @ w["embed"].T)
    return -hnp.take_along_axis(scores, targets[..., None], -1).mean()


def plain_loss(w: Any, tokens: Any) -> Any:
    """On one device: what the devices together must give."""
    x = w["embed"][tokens[..., :-1]]
    return cross_entropy(w, hx.vmap(lambda x: layers(w, x))(x), tokens[..., 1:])


def device_loss(w: Any, tokens: Any) -> Any:
    """The same, of which this device computes its part."""
    stage, stages, count = lax.axis_index("stage"), lax.axis_size("stage"), tokens.shape[0]
    first = w["embed"][tokens[..., :-1]]
    following = [(i, i + 1) for i in range(stages - 1)]

    def tick(arrived: Any, t: Any) -> Any:
        """Stage s has microbatch t - s."""
        x = hnp.where(stage == 0, first[hnp.minimum(t, count - 1)], arrived)
        y = layers(w, x, lambda part: lax.psum(part, "model"))
        return lax.ppermute(y, "stage", following), y

    nothing = lax.pcast(hnp.zeros_like(first[0]), "stage", to="varying")
    _, ys = lax.scan(tick, nothing, hnp.arange(count + stages - 1))
    own = cross_entropy(w, ys[stages - 1 :], tokens[..., 1:])
    return lax.pmean(lax.psum(hnp.where(stage == stages - 1, own, 0.0), "stage"), "data")


def descend(w: Any, gradient: Any, rate: float = 0.1) -> Any:
    return hx.tree.map(lambda x, dx: x - rate * dx, w, gradient)


def plain_step(w: Any, tokens: Any) -> Any:
    """The loss, and the weights after a step of gradient descent."""
    loss, gradient = hx.value_and_grad(plain_loss)(w, tokens)
    return loss, descend(w, gradient)


def step_over(mesh: Any) -> Callable[..., Any]:
    """``plain_step`` over the devices of a mesh."""

    def device_step(w: Any, tokens: Any) -> Any:
        loss, gradient = hx.value_and_grad(device_loss)(w, tokens)
        return loss, descend(w, gradient)

    return hx.shard_map(device_step, mesh=mesh, in_specs=(WEIGHTS, TOKENS), out_specs=(P(), WEIGHTS))


def initial(sizes: Sizes, seed: int = 0) -> tuple[Any, Any]:
    """Random weights and tokens."""
    *keys, last = random.split(random.key(seed), len(sizes.weights) + 1)
    weights = {name: 0.2 * random.normal(k, shape) for k, (name, shape) in zip(keys, sizes.weights.items())}
    return weights, random.randint(last, sizes.tokens, 0, sizes.vocabulary)


def shapes(sizes: Sizes) -> tuple[Any, Any]:
    """The types of weights and tokens: enough to trace, lower, and count."""
    weights = {name: hx.ShapeDtypeStruct(shape, "float32") for name, shape in sizes.weights.items()}
    return weights, hx.ShapeDtypeStruct(sizes.tokens, "int32")


def planned(data: int, model: int = 8, stage: int = 8) -> tuple[Any, tuple[Any, Any]]:
    """The step over a mesh that nobody has here, and its arguments, of which each device always has as much."""
    large = Sizes(
        vocabulary=32768, width=4096, heads=8 * model, head=64, hidden=2048 * model, layers=2 * stage,
        microbatches=32, batch=2 * data, length=2048,
    )
    return step_over(AbstractMesh((data, model, stage), AXES)), shapes(large)


def main() -> None:
    hx.config.update("jax_num_cpu_devices", 8)

    w, tokens = initial(Sizes())
    loss, updated = hx.jit(step_over(hx.make_mesh((2, 2, 2), AXES)))(w, tokens)
    expected, plain = hx.jit(plain_step)(w, tokens)
    assert hnp.allclose(loss, expected, rtol=1e-5)
    for name in w:
        assert hnp.allclose(updated[name], plain[name], rtol=1e-3, atol=1e-6), name
    print(f"on 8 devices the loss is {float(loss):.6f}, on one {float(expected):.6f}")

    for data in (1, 8, 64):
        step, args = planned(data)
        text = hx.jit(step).lower(*args).as_text()
        costs = hx.costs(step)(*args)
        seconds = costs.seconds(flops=400e12, links={"data": 50e9, "model": 450e9, "stage": 50e9})
        sent = ", ".join(f"{name} {link.bytes / 1e9:.1f}" for name, link in costs.links.items())
        print(f"{64 * data:5} devices: {len(text) / 1e3:.0f} KB of StableHLO; GB sent by each: {sent}; "
              f"at least {seconds.overlapped:.2f} s")
    print(costs)


if __name__ == "__main__":
    main()
