"""Statistics over sliding windows: by index tables, by cumulative sums, and by vmap of dynamic_slice."""

import handlax.numpy as jnp
from handlax import jit, lax, vmap


def table(x, width):
    return x[jnp.arange(x.size - width + 1)[:, None] + jnp.arange(width)]


def mean_by_cumsum(x, width):
    total = jnp.concatenate([jnp.zeros(1), jnp.cumsum(x)])
    return (total[width:] - total[:-width]) / width


def maximum_by_slices(x, width):
    starts = jnp.arange(x.size - width + 1)
    return vmap(lambda i: jnp.max(lax.dynamic_slice(x, (i,), (width,))))(starts)


def main():
    x = jnp.sin(jnp.arange(20.0) ** 1.5)
    windows = table(x, 5)
    return {
        "mean": windows.mean(axis=1),
        "cumsum": jit(mean_by_cumsum, static_argnums=1)(x, 5),
        "deviation": windows.std(axis=1),
        "median": jnp.median(windows, axis=1),
        "maximum": jit(maximum_by_slices, static_argnums=1)(x, 5),
        "running": lax.cummax(x),
        "product": lax.cumprod(1.0 + 0.1 * x),
        "range": jnp.ptp(windows, axis=1),
    }


RTOL = 1e-4
