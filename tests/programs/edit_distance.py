"""The distance between two words by dynamic programming, one row at a time, and a smooth version of it."""

import handlax.numpy as jnp
from handlax import grad, jit, lax


def letters(word):
    return jnp.array([ord(c) - ord("a") for c in word], dtype=jnp.int32)


@jit
def distance(a, b):
    across = jnp.arange(b.size + 1)
    row = across
    for i in range(a.size):
        changed = row[:-1] + (a[i] != b)
        down = row + 1
        start = down.at[1:].min(changed)
        row = lax.cummin(start - across) + across
    return row


@jit
def smooth(costs, heat):
    def soft_min(*options):
        return -heat * jnp.logaddexp(jnp.logaddexp(*(-o / heat for o in options[:2])), -options[2] / heat)

    n, m = costs.shape
    table = {(0, 0): jnp.float32(0.0)}
    table |= {(i, 0): jnp.float32(i) for i in range(1, n + 1)} | {(0, j): jnp.float32(j) for j in range(1, m + 1)}
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            replaced = table[i - 1, j - 1] + costs[i - 1, j - 1]
            table[i, j] = soft_min(table[i - 1, j] + 1.0, table[i, j - 1] + 1.0, replaced)
    return table[n, m]


def main():
    a, b = letters("kitten"), letters("sitting")
    costs = (a[:4, None] != b[None, :5]).astype(jnp.float32)
    return {
        "row": distance(a, b),
        "same": distance(a, a)[-1],
        "smooth": smooth(costs, 0.2),
        "slope": grad(smooth)(costs, 0.2),
    }
