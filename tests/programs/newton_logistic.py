"""Logistic regression by Newton's method; the normal equations are solved through a Cholesky factor."""

import handlax.numpy as jnp
from handlax import grad, hessian, jit, lax, nn, random


def loss(w, x, y):
    return jnp.mean(nn.softplus(x @ w) - y * (x @ w)) + 0.01 * w @ w


def solve(matrix, vector):
    factor = lax.linalg.cholesky(matrix)
    half = lax.linalg.triangular_solve(factor, vector[:, None], left_side=True, lower=True)
    return lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[:, 0]


@jit
def newton(w, x, y):
    return w - solve(hessian(loss)(w, x, y), grad(loss)(w, x, y))


def main():
    x = random.normal(random.key(8), (40, 3))
    y = (x @ jnp.array([1.0, -2.0, 0.5]) + 0.3 * jnp.cos(jnp.arange(40.0)) > 0).astype(jnp.float32)
    w = jnp.zeros(3)
    path = [w]
    for _ in range(5):
        w = newton(w, x, y)
        path.append(w)
    return {"path": jnp.stack(path), "slope": jnp.abs(grad(loss)(w, x, y)) < 1e-5, "curvature": hessian(loss)(w, x, y)}


RTOL = 1e-4
