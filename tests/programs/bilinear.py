"""Bilinear sampling of an image at warped places, differentiable in the image and in the warp."""

import handlax.numpy as jnp
from handlax import grad, jit, random, vmap


def sample(image, row, column):
    i, j = jnp.floor(row), jnp.floor(column)
    u, v = row - i, column - j
    height, width = image.shape

    def at(a, b):
        inside = (a >= 0) & (a < height) & (b >= 0) & (b < width)
        a = jnp.clip(a, 0, height - 1).astype(jnp.int32)
        b = jnp.clip(b, 0, width - 1).astype(jnp.int32)
        return jnp.where(inside, image[a, b], 0.0)

    top = (1 - v) * at(i, j) + v * at(i, j + 1)
    bottom = (1 - v) * at(i + 1, j) + v * at(i + 1, j + 1)
    return (1 - u) * top + u * bottom


def warp(image, angle):
    height, width = image.shape
    rows, columns = jnp.meshgrid(jnp.arange(height) - 2.5, jnp.arange(width) - 2.5, indexing="ij")
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    turned = cosine * rows - sine * columns + 2.5, sine * rows + cosine * columns + 2.5
    return vmap(vmap(sample, (None, 0, 0)), (None, 0, 0))(image, *turned)


def main():
    image = random.uniform(random.key(61), (6, 6))
    score = jit(lambda image, angle: jnp.sum(warp(image, angle) ** 2))
    by_image, by_angle = grad(score, argnums=(0, 1))(image, 0.3)
    return {"warped": jit(warp)(image, 0.3), "by_image": by_image, "by_angle": by_angle}
