"""Rearrangements of einops."""

import jax
import jax.numpy as jnp
from einops import einsum, pack, rearrange, reduce, repeat, unpack

X = jnp.arange(48.0).reshape(2, 4, 6)


def rearranged():
    return rearrange(X, "b (h p) w -> (b h) w p", p=2)


def reduced_under_jit_and_grad():
    pooled = lambda x: reduce(x, "b (h p) (w q) -> b h w", "mean", p=2, q=3)
    return jax.jit(pooled)(X), jax.grad(lambda x: (pooled(x) ** 2).sum())(X), reduce(X, "b h w -> h", "max")


def repeated_under_vmap():
    return jax.vmap(lambda x: repeat(x, "h w -> (h copies) w", copies=2))(X)


def products():
    return einsum(X, X, "b h w, b k w -> b h k")


def packed():
    whole, shapes = pack([X, X[:, 0]], "b * w")
    return whole, unpack(whole, shapes, "b * w")
