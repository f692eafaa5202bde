"""A recurrence that explodes, tamed by a rule of its own: ``custom_vjp`` clips the gradient at every step of a scan."""

from functools import partial

import handlax.numpy as jnp
from handlax import checkpoint, custom_jvp, custom_vjp, grad, jit, lax, nn, value_and_grad


@partial(custom_vjp, nondiff_argnums=(0,))
def clipped(bound, x):
    return x


def clipped_fwd(bound, x):
    return x, None


def clipped_bwd(bound, residual, ct):
    size = jnp.sqrt(jnp.sum(ct**2))
    return (ct * jnp.minimum(1.0, bound / size),)


clipped.defvjp(clipped_fwd, clipped_bwd)


@custom_jvp
def smooth_relu(x):
    return jnp.maximum(x, 0.0)


@smooth_relu.defjvp
def smooth_relu_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return smooth_relu(x), nn.sigmoid(4.0 * x) * dx


def run(weights, xs, bound):
    def step(h, x):
        h = smooth_relu(weights @ h + x)
        h = h if bound is None else clipped(bound, h)
        return h, jnp.sum(h)

    return lax.scan(step, jnp.ones(3), xs)


def loss(weights, xs, bound=None):
    return jnp.mean(run(weights, xs, bound)[1] ** 2)


def main():
    weights = jnp.array([[0.9, 0.4, -0.2], [0.1, 1.1, 0.3], [-0.3, 0.2, 0.8]])
    xs = 0.1 * jnp.sin(jnp.arange(30.0)).reshape(10, 3)
    value, free = jit(value_and_grad(loss))(weights, xs)
    tame = jit(grad(partial(loss, bound=0.5)))(weights, xs)
    saved = jit(grad(checkpoint(loss)))(weights, xs)
    return {"value": value, "free": free, "tame": tame, "saved": saved}


RTOL = 1e-4
