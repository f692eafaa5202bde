"""Root finding and minimisation of optimistix."""

import jax
import jax.numpy as jnp
import optimistix as optx

START = jnp.array([-1.2, 1.0])


def _rosenbrock(x, scale):
    return jnp.sum(scale * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def roots():
    f = lambda x, a: x**3 - a
    newton, chord = optx.Newton(1e-6, 1e-6), optx.Chord(1e-6, 1e-6)
    solve = lambda a: optx.root_find(f, newton, jnp.array(1.0), a).value
    return solve(2.0), jax.grad(solve)(2.0), optx.root_find(f, chord, jnp.array(1.3), 2.0).value


def fixed_points():
    solver = optx.FixedPointIteration(1e-5, 1e-5)
    return optx.fixed_point(lambda x, a: jnp.cos(a * x), solver, jnp.array(0.5), 1.0).value


def minima():
    solvers = (optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-5, 1e-5))
    return [optx.minimise(_rosenbrock, solver, START, 10.0, max_steps=2000).value for solver in solvers]


def least_squares():
    residual = lambda x, _: jnp.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    solvers = (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6))
    return [optx.least_squares(residual, solver, START).value for solver in solvers]
