"""A deep residual network as a scan over layers, each block under ``checkpoint`` with a policy, trained a few steps."""

import handlax.numpy as jnp
from handlax import checkpoint, checkpoint_policies, grad, jit, lax, nn, random, tree, value_and_grad


def block(h, layer):
    normed = (h - jnp.mean(h, -1, keepdims=True)) / jnp.sqrt(jnp.var(h, -1, keepdims=True) + 1e-5)
    return h + nn.gelu(normed @ layer["up"]) @ layer["down"], None


def run(layers, x, wrap):
    return lax.scan(wrap(block), x, layers)[0]


def loss(layers, x, y, wrap):
    return jnp.mean((run(layers, x, wrap) - y) ** 2)


def kept(f):
    return checkpoint(f, policy=checkpoint_policies.dots_with_no_batch_dims_saveable)


def main():
    a, b, c, d = random.split(random.key(29), 4)
    layers = {"up": 0.3 * random.normal(a, (6, 8, 16)), "down": 0.3 * random.normal(b, (6, 16, 8))}
    x, y = random.normal(c, (10, 8)), random.normal(d, (10, 8))
    slopes = [jit(grad(lambda w, f=f: loss(w, x, y, f)))(layers) for f in (lambda f: f, checkpoint, kept)]

    @jit
    def train(layers):
        def step(layers, _):
            value, slope = value_and_grad(loss)(layers, x, y, kept)
            return tree.map(lambda p, g: p - 0.05 * g, layers, slope), value

        return lax.scan(step, layers, None, length=5)

    trained, losses = train(layers)
    names = ("plain", "recomputed", "kept")
    return {"losses": losses, "trained": trained["up"]} | {name: slope["up"] for name, slope in zip(names, slopes)}


RTOL = 1e-3
