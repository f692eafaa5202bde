"""A discrete Fourier transform as a complex matrix: a low-pass filter, Parseval, and holomorphic derivatives."""

import handlax.numpy as jnp
from handlax import grad, jit


def fourier(n):
    k = jnp.arange(n)
    return jnp.exp(-2j * jnp.pi * ((k[:, None] * k) % n) / n)


@jit
def low_pass(x):
    matrix = fourier(x.size)
    spectrum = matrix @ x
    keep = jnp.minimum(jnp.arange(x.size), x.size - jnp.arange(x.size)) <= 3
    return spectrum, (jnp.conj(matrix.T) @ jnp.where(keep, spectrum, 0)) / x.size


def main():
    t = jnp.arange(16.0) / 16
    x = jnp.sin(4 * jnp.pi * t) + 0.3 * jnp.cos(12 * jnp.pi * t) + 0.1
    spectrum, smooth = low_pass(x)
    power = grad(lambda x: jnp.sum(jnp.abs(fourier(16) @ x) ** 2) / 16)(x)
    z = jnp.array(0.5 + 0.25j)
    return {
        "spectrum": spectrum,
        "smooth": smooth.real,
        "magnitude": jnp.abs(spectrum),
        "power": power,
        "holomorphic": grad(lambda z: z**3 * jnp.exp(1j * z), holomorphic=True)(z),
        "parts": jnp.array([z.real, z.imag, jnp.angle(z), jnp.abs(jnp.conj(z))]),
    }
