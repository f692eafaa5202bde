"""Solvers of jaxopt."""

import jax
import jax.numpy as jnp
import jaxopt

A = jax.random.normal(jax.random.key(0), (10, 3))
B = jax.random.normal(jax.random.key(1), (10,))
ZEROS = jnp.zeros(3)


def _ridge(w, l2, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w**2)


def gradient_descent_and_its_implicit_derivative():
    solver = jaxopt.GradientDescent(_ridge, maxiter=200, implicit_diff=True)
    solve = lambda l2: solver.run(ZEROS, l2=l2, data=(A, B)).params
    return solve(0.5), jax.jacobian(solve)(0.5)


def limited_memory_bfgs():
    return jaxopt.LBFGS(_ridge, maxiter=50).run(ZEROS, l2=0.1, data=(A, B)).params


def proximal_gradient():
    lasso = jaxopt.ProximalGradient(lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2), jaxopt.prox.prox_lasso)
    return lasso.run(ZEROS, 0.1, (A, B)).params


def projected_gradient():
    solver = jaxopt.ProjectedGradient(lambda w: jnp.sum((A @ w - B) ** 2), jaxopt.projection.projection_simplex)
    return solver.run(jnp.ones(3) / 3).params


def levenberg_marquardt():
    return jaxopt.LevenbergMarquardt(lambda w: jnp.tanh(A @ w) - B, maxiter=20).run(ZEROS).params


def roots_and_fixed_points():
    root = jaxopt.Bisection(lambda x: x**3 - x - 1, 1.0, 2.0).run().params
    return root, jaxopt.AndersonAcceleration(jnp.cos, maxiter=20).run(jnp.array(0.5)).params


def projections():
    return jaxopt.projection.projection_simplex(B), jaxopt.projection.projection_l1_ball(B, 1.0)
