"""Lloyd's algorithm on three clouds of points; empty clusters keep their centre."""

import handlax.numpy as jnp
from handlax import jit, nn, random


@jit
def lloyd(centres, points):
    distances = jnp.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
    nearest = jnp.argmin(distances, axis=1)
    member = nn.one_hot(nearest, len(centres))
    count = member.sum(axis=0)
    means = member.T @ points / jnp.maximum(count, 1.0)[:, None]
    return jnp.where(count[:, None] > 0, means, centres), nearest, jnp.min(distances, axis=1).sum()


def main():
    where, spread = random.split(random.PRNGKey(7))
    corners = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    points = jnp.repeat(corners, 10, axis=0) + 0.5 * random.normal(spread, (30, 2))
    centres = random.choice(where, points, (3,), replace=False)
    costs = []
    for _ in range(5):
        centres, nearest, cost = lloyd(centres, points)
        costs.append(cost)
    return {"centres": centres, "nearest": nearest, "costs": jnp.stack(costs)}
