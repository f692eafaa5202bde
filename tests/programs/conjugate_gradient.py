"""Conjugate gradients with a while loop, differentiated through ``custom_linear_solve``; ridge regression with it."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, random, vmap


def conjugate_gradient(matvec, b, tolerance=1e-6, most=60):
    def more(state):
        _, _, _, size, count = state
        return (size > tolerance**2) & (count < most)

    def step(state):
        x, residual, direction, size, count = state
        image = matvec(direction)
        rate = size / jnp.vdot(direction, image)
        x, residual = x + rate * direction, residual - rate * image
        smaller = jnp.vdot(residual, residual)
        return x, residual, residual + smaller / size * direction, smaller, count + 1

    start = jnp.zeros_like(b), b, b, jnp.vdot(b, b), 0
    return lax.while_loop(more, step, start)[0]


def solve(matvec, b):
    return lax.custom_linear_solve(matvec, b, conjugate_gradient, symmetric=True)


def ridge(strength, features, targets):
    matvec = lambda w: features.T @ (features @ w) + strength * w
    return solve(matvec, features.T @ targets)


def held_out(strength, data):
    (train, y), (test, z) = data
    return jnp.mean((test @ ridge(strength, train, y) - z) ** 2)


def main():
    a, b = random.split(random.key(17))
    features = random.normal(a, (24, 5))
    targets = features @ jnp.arange(1.0, 6.0) + random.normal(b, (24,))
    data = (features[:16], targets[:16]), (features[16:], targets[16:])
    strengths = jnp.array([0.1, 1.0, 10.0])
    return {
        "weights": jit(ridge)(1.0, features, targets),
        "errors": jit(vmap(held_out, in_axes=(0, None)))(strengths, data),
        "slopes": jit(vmap(grad(held_out), in_axes=(0, None)))(strengths, data),
        "bend": jit(grad(grad(held_out)))(1.0, data),
    }


RTOL = 2e-3
