"""Convolution of images three ways: windows by gather, shifted slices, and einsum; and its two adjoints."""

import handlax.numpy as jnp
from handlax import jit, lax, random, vjp


def windows(image, size):
    rows = jnp.arange(image.shape[0] - size + 1)[:, None] + jnp.arange(size)
    columns = jnp.arange(image.shape[1] - size + 1)[:, None] + jnp.arange(size)
    return image[rows[:, None, :, None], columns[None, :, None, :]]


@jit
def by_gather(image, kernel):
    return jnp.einsum("ijklc,klcd->ijd", windows(image, kernel.shape[0]), kernel)


@jit
def by_slices(image, kernel):
    size = kernel.shape[0]
    height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
    total = 0.0
    for i in range(size):
        for j in range(size):
            part = lax.slice(image, (i, j, 0), (i + height, j + width, image.shape[2]))
            total = total + part @ kernel[i, j]
    return total


def main():
    a, b = random.split(random.key(17))
    image, kernel = random.normal(a, (7, 8, 2)), random.normal(b, (3, 3, 2, 4))
    out, pull = vjp(by_gather, image, kernel)
    back_image, back_kernel = pull(jnp.cos(out))
    return {"gather": out, "slices": by_slices(image, kernel), "image": back_image, "kernel": back_kernel}
