"""Layer normalisation by hand, with a pullback derived on paper that agrees with vjp."""

import handlax.numpy as jnp
from handlax import jit, random, vjp


def forward(x, gain, bias):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return gain * centred / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5) + bias


def backward(x, gain, ct):
    deviation = jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5)
    unit = (x - jnp.mean(x, axis=-1, keepdims=True)) / deviation
    scaled = gain * ct
    mean, projection = scaled.mean(axis=-1, keepdims=True), (scaled * unit).mean(axis=-1, keepdims=True)
    return (scaled - mean - unit * projection) / deviation, jnp.sum(ct * unit, axis=0), jnp.sum(ct, axis=0)


def main():
    a, b = random.split(random.key(73))
    x, ct = random.normal(a, (4, 6)), random.normal(b, (4, 6))
    gain, bias = jnp.linspace(0.5, 1.5, 6), jnp.linspace(-0.1, 0.1, 6)
    out, pull = vjp(jit(forward), x, gain, bias)
    derived = backward(x, gain, ct)
    names = ("x", "gain", "bias")
    return (
        {"out": out}
        | {f"vjp_{n}": g for n, g in zip(names, pull(ct), strict=True)}
        | {f"paper_{n}": g for n, g in zip(names, derived, strict=True)}
    )


RTOL = 1e-4
