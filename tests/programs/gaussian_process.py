"""Gaussian process regression: marginal likelihood, its gradient, and the posterior on a grid."""

import handlax.numpy as jnp
from handlax import jit, lax, value_and_grad, vmap


def kernel(params, a, b):
    return jnp.exp(params["scale"]) * jnp.exp(-0.5 * ((a - b) / jnp.exp(params["length"])) ** 2)


def gram(params, xs, ys):
    return vmap(lambda x: vmap(lambda y: kernel(params, x, y))(ys))(xs)


def solve_lower(factor, b):
    return lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)


def factorise(params, x):
    return lax.linalg.cholesky(gram(params, x, x) + jnp.exp(params["noise"]) * jnp.eye(x.size))


def negative_likelihood(params, x, y):
    factor = factorise(params, x)
    white = solve_lower(factor, y[:, None])
    return 0.5 * jnp.sum(white**2) + jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * x.size * jnp.log(2 * jnp.pi)


@jit
def posterior(params, x, y, grid):
    factor = factorise(params, x)
    across = solve_lower(factor, gram(params, x, grid))
    mean = across.T @ solve_lower(factor, y[:, None])[:, 0]
    return mean, jnp.exp(params["scale"]) - jnp.sum(across**2, axis=0)


def main():
    x = jnp.linspace(-2.0, 2.0, 12)
    y = jnp.sin(2.0 * x) + 0.1 * jnp.cos(17.0 * x)
    params = {"scale": jnp.array(0.0), "length": jnp.array(-0.5), "noise": jnp.array(-3.0)}
    value, slope = jit(value_and_grad(negative_likelihood))(params, x, y)
    mean, variance = posterior(params, x, y, jnp.linspace(-2.2, 2.2, 9))
    return {"value": value, "mean": mean, "variance": variance, **slope}


RTOL = 1e-4
