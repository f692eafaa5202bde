"""Ridge regression for a path of penalties at once, with leave-one-out errors from the hat matrix."""

import handlax.numpy as jnp
from handlax import jit, lax, random, vmap


def solve(matrix, columns):
    factor = lax.linalg.cholesky(matrix)
    half = lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)


def ridge(penalty, x, y):
    matrix = x.T @ x + penalty * jnp.eye(x.shape[1])
    weights = solve(matrix, (x.T @ y)[:, None])[:, 0]
    hat = jnp.einsum("ij,ji->i", x, solve(matrix, x.T))
    return weights, jnp.mean(((y - x @ weights) / (1.0 - hat)) ** 2), jnp.sum(hat)


def main():
    a, b = random.split(random.key(89))
    x = random.normal(a, (20, 4))
    y = x @ jnp.array([1.0, 0.0, -1.0, 0.5]) + 0.2 * random.normal(b, (20,))
    penalties = jnp.logspace(-2.0, 2.0, 9)
    weights, error, freedom = jit(vmap(ridge, in_axes=(0, None, None)))(penalties, x, y)
    return {"weights": weights, "error": error, "freedom": freedom, "best": penalties[jnp.argmin(error)]}


RTOL = 2e-4
