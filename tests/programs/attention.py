"""Causal multi-head attention, its weights, and its gradient in the queries."""

import handlax.numpy as jnp
from handlax import grad, jit, nn, random


def split_heads(x, heads):
    length, width = x.shape
    return x.reshape(length, heads, width // heads).transpose(1, 0, 2)


def attend(q, k, v, heads=2):
    q, k, v = (split_heads(t, heads) for t in (q, k, v))
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    mask = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
    weights = nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    out = jnp.einsum("hqk,hkd->qhd", weights, v)
    return out.reshape(out.shape[0], -1), weights


def main():
    q, k, v = random.normal(random.key(3), (3, 6, 8))
    out, weights = jit(attend)(q, k, v)
    slope = jit(grad(lambda q: jnp.sum(jnp.sin(attend(q, k, v)[0]))))(q)
    return {"out": out, "weights": weights, "slope": slope}
