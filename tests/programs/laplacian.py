"""Image derivatives: finite-difference Laplacian, Sobel edges, and denoising by a flow of the total variation."""

import handlax.numpy as jnp
from handlax import grad, jit, random


def laplacian(u):
    padded = jnp.pad(u, 1, mode="edge")
    return padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - 4.0 * u


def sobel(u):
    p = jnp.pad(u, ((1, 1), (1, 1)))
    across = p[:, 2:] - p[:, :-2]
    down = p[2:] - p[:-2]
    gx = across[:-2] + 2.0 * across[1:-1] + across[2:]
    gy = down[:, :-2] + 2.0 * down[:, 1:-1] + down[:, 2:]
    return jnp.hypot(gx, gy)


def variation(u):
    dx, dy = jnp.diff(u, axis=0)[:, :-1], jnp.diff(u, axis=1)[:-1]
    return jnp.sum(jnp.sqrt(dx**2 + dy**2 + 1e-2))


@jit
def denoise(noisy):
    u = noisy
    for _ in range(8):
        u = u - 0.05 * (grad(variation)(u) + (u - noisy))
    return u


def main():
    i, j = jnp.indices((9, 10))
    clean = jnp.where((i > 3) & (j < 6), 1.0, 0.0)
    noisy = clean + 0.1 * random.normal(random.key(103), clean.shape)
    return {
        "laplacian": jit(laplacian)(noisy),
        "sobel": sobel(clean),
        "denoised": denoise(noisy),
        "rolled": jnp.roll(noisy, 2, axis=1) - noisy,
    }
