"""Gaussian processes of tinygp."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels

X = jnp.linspace(0, 3, 12)
Y = jnp.sin(2 * X)


def likelihood_and_gradient():
    def loss(params):
        kernel = jnp.exp(params[0]) * kernels.Matern32(jnp.exp(params[1]))
        return -GaussianProcess(kernel, X, diag=0.01).log_probability(Y)

    return jax.jit(jax.value_and_grad(loss))(jnp.array([0.1, -0.3]))


def predictions():
    process = GaussianProcess(kernels.ExpSquared(0.7) + kernels.Constant(0.1), X, diag=0.01)
    _, conditioned = process.condition(Y, jnp.linspace(0, 3, 5))
    return conditioned.mean, conditioned.variance, process.sample(jax.random.key(0))


def state_space_kernels():
    process = GaussianProcess(kernels.quasisep.SHO(omega=2.0, quality=1.0), X, diag=0.01)
    return process.log_probability(Y), process.predict(Y)


def products_of_kernels():
    kernel = kernels.ExpSineSquared(scale=1.0, gamma=0.5) * kernels.RationalQuadratic(alpha=1.0)
    return kernel(X[:3], X[:4])
