"""Gauss-Newton fits a damped oscillation; its matrix comes from jvp and vjp alone."""

import handlax.numpy as jnp
from handlax import jacfwd, jit, jvp, lax, vjp, vmap


def model(p, t):
    return p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t)


def residual(p, t, y):
    return model(p, t) - y


def gauss_newton_matrix(p, t, y):
    def product(v):
        _, pushed = jvp(lambda p: residual(p, t, y), (p,), (v,))
        _, pull = vjp(lambda p: residual(p, t, y), p)
        return pull(pushed)[0]

    return vmap(product)(jnp.eye(p.size))


@jit
def step(p, t, y):
    r, pull = vjp(lambda p: residual(p, t, y), p)
    matrix = gauss_newton_matrix(p, t, y) + 1e-3 * jnp.eye(3)
    factor = lax.linalg.cholesky(matrix)
    half = lax.linalg.triangular_solve(factor, pull(r)[0][:, None], left_side=True, lower=True)
    full = lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)
    return p - full[:, 0], 0.5 * r @ r


def main():
    t = jnp.linspace(0.0, 3.0, 25)
    y = model(jnp.array([1.5, 0.4, 2.0]), t)
    p = jnp.array([1.2, 0.3, 1.8])
    jacobian = jacfwd(residual)(p, t, y)
    costs = []
    for _ in range(3):
        p, cost = step(p, t, y)
        costs.append(cost)
    return {"p": p, "costs": jnp.stack(costs), "matrix": jacobian.T @ jacobian}


RTOL = 1e-4
