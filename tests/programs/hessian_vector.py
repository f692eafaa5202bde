"""Three ways to multiply a Hessian with a vector, and conjugate gradients that use one of them."""

import handlax.numpy as jnp
from handlax import grad, hessian, jit, jvp, vjp


def rosenbrock(x):
    return jnp.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def forward_over_reverse(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


def reverse_over_forward(f, x, v):
    return grad(lambda x: jvp(f, (x,), (v,))[1])(x)


def reverse_over_reverse(f, x, v):
    _, pull = vjp(grad(f), x)
    return pull(v)[0]


@jit
def conjugate_gradients(x, b):
    y, r = jnp.zeros_like(b), b
    p = r
    for _ in range(4):
        ap = forward_over_reverse(rosenbrock, x, p)
        alpha = (r @ r) / (p @ ap)
        y, s = y + alpha * p, r - alpha * ap
        p, r = s + (s @ s) / (r @ r) * p, s
    return y


def main():
    x, v = jnp.array([1.1, 1.0, 0.9, 1.2, 1.3]), jnp.array([1.0, -1.0, 0.5, 0.0, 2.0])
    return {
        "full": hessian(rosenbrock)(x) @ v,
        "fr": jit(forward_over_reverse, static_argnums=0)(rosenbrock, x, v),
        "rf": reverse_over_forward(rosenbrock, x, v),
        "rr": reverse_over_reverse(rosenbrock, x, v),
        "solved": conjugate_gradients(x, v),
    }


RTOL = 1e-4
