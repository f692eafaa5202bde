"""Many small linear systems at once: Gaussian elimination under vmap, checked against a Cholesky solve."""

import handlax.numpy as jnp
from handlax import jacrev, jit, lax, random, vmap


def eliminate(matrix, vector):
    n = vector.size
    table = jnp.concatenate([matrix, vector[:, None]], axis=1)
    for i in range(n):
        pivot = i + jnp.argmax(jnp.abs(table[i:, i]))
        upper, lower = table[i], table[pivot]
        table = table.at[i].set(lower).at[pivot].set(upper)
        table = table.at[i].divide(table[i, i])
        others = table[:, i].at[i].set(0.0)
        table = table - jnp.outer(others, table[i])
    return table[:, -1]


def by_cholesky(matrix, vector):
    factor = lax.linalg.cholesky(matrix)
    half = lax.linalg.triangular_solve(factor, vector[..., None], left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[..., 0]


def main():
    a, b = random.split(random.key(43))
    roots = random.normal(a, (5, 4, 4))
    matrices = roots @ jnp.swapaxes(roots, -1, -2) + 2.0 * jnp.eye(4)
    vectors = random.normal(b, (5, 4))
    return {
        "eliminated": jit(vmap(eliminate))(matrices, vectors),
        "cholesky": jit(by_cholesky)(matrices, vectors),
        "inverse": jacrev(eliminate, argnums=1)(matrices[0], vectors[0]),
        "slope": jacrev(by_cholesky)(matrices[0], vectors[0]),
    }


RTOL = 2e-4
