"""Least squares with a Chebyshev basis, Horner's rule, Newton's root finding and the derivatives of a polynomial."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, vmap


def chebyshev(x, degree):
    columns = [jnp.ones_like(x), x]
    for _ in range(degree - 1):
        columns.append(2 * x * columns[-1] - columns[-2])
    return jnp.stack(columns, axis=-1)


def horner(coefficients, x):
    y = jnp.zeros_like(x)
    for c in coefficients:
        y = y * x + c
    return y


@jit
def fit(x, y):
    basis = chebyshev(x, 5)
    factor = lax.linalg.cholesky(basis.T @ basis)
    half = lax.linalg.triangular_solve(factor, (basis.T @ y)[:, None], left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[:, 0]


def root(coefficients, x):
    def f(x):
        return horner(coefficients, x)

    for _ in range(6):
        x = x - f(x) / grad(f)(x)
    return x


def main():
    x = jnp.cos(jnp.pi * (jnp.arange(20) + 0.5) / 20)
    coefficients = jnp.array([1.0, -6.0, 11.0, -6.0])
    third = grad(grad(grad(horner, argnums=1), argnums=1), argnums=1)
    return {
        "weights": fit(x, jnp.exp(x)),
        "basis": chebyshev(x[:4], 3),
        "polyval": jnp.polyval(coefficients, x),
        "vander": jnp.vander(x[:3], 4) @ coefficients,
        "roots": vmap(root, in_axes=(None, 0))(coefficients, jnp.array([0.7, 1.9, 3.5])),
        "third": third(coefficients, 0.5),
    }


RTOL = 1e-4
