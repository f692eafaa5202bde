"""The game of life by rolled sums, and the parity of a bit pattern by shifts and xor."""

import handlax.numpy as jnp
from handlax import jit, lax


@jit
def generation(board):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    around = sum(jnp.roll(board, shift, axis=(0, 1)) for shift in shifts)
    return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)


@jit
def mix(x):
    x = x ^ (x << 13)
    x = x ^ (x >> 17)
    return x ^ (x << 5)


def main():
    board = jnp.zeros((8, 8), dtype=jnp.uint8).at[jnp.array([0, 1, 2, 2, 2]), jnp.array([1, 2, 0, 1, 2])].set(1)
    boards = [board]
    for _ in range(4):
        boards.append(generation(boards[-1]))
    words = mix(jnp.arange(1, 9, dtype=jnp.uint32))
    parity = words
    for shift in (16, 8, 4, 2, 1):
        parity = parity ^ (parity >> shift)
    moved = jnp.array_equal(jnp.roll(board, (1, 1), (0, 1)), boards[-1])
    return {
        "boards": jnp.stack(boards),
        "moved": moved,
        "words": words,
        "parity": parity & 1,
        "bits": lax.population_count(words),
    }
