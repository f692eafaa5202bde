"""Roots of polynomials by Newton's method with a while loop, in lanes that end at different times."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, vmap


def newton(f, start, tolerance=1e-5, most=50):
    def more(state):
        _, step, count = state
        return (jnp.abs(step) > tolerance) & (count < most)

    def improve(state):
        x, _, count = state
        step = f(x) / grad(f)(x)
        return x - step, step, count + 1

    x, _, count = lax.while_loop(more, improve, (start, jnp.inf, 0))
    return x, count


def cubic(c):
    return lambda x: x**3 - 2 * x - c


@jit
def roots(cs):
    return vmap(lambda c: newton(cubic(c), 3.0))(cs)


def polished(c):
    """The root, with one more step whose derivative is that of the root."""
    x = lax.stop_gradient(newton(cubic(c), 3.0)[0])
    f = cubic(c)
    return x - f(x) / lax.stop_gradient(grad(f)(x))


def main():
    cs = jnp.array([5.0, 20.0, 1.5, 100.0, 4.0])
    xs, counts = roots(cs)
    return {"roots": xs, "counts": counts, "slopes": vmap(grad(polished))(cs), "alone": newton(cubic(2.0), 3.0)[0]}
