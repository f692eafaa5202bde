"""The forward probabilities of a hidden Markov model by ``associative_scan``, against a scan; counts as gradients."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, nn, random


def combine(a, b):
    """Matrices of log probabilities, multiplied."""
    return nn.logsumexp(a[..., :, :, None] + b[..., None, :, :], axis=-2)


def parallel(log_start, log_move, log_seen):
    steps = log_move[None] + log_seen[1:, None, :]
    products = lax.associative_scan(combine, steps)
    first = log_start + log_seen[0]
    later = nn.logsumexp(first[None, :, None] + products, axis=1)
    return jnp.concatenate([first[None], later])


def serial(log_start, log_move, log_seen):
    first = log_start + log_seen[0]

    def step(alpha, row):
        alpha = nn.logsumexp(alpha[:, None] + log_move, axis=0) + row
        return alpha, alpha

    return jnp.concatenate([first[None], lax.scan(step, first, log_seen[1:])[1]])


def main():
    log_start = nn.log_softmax(jnp.array([0.3, 0.1, -0.5]))
    log_move = nn.log_softmax(random.normal(random.key(3), (3, 3)), axis=1)
    log_emit = nn.log_softmax(random.normal(random.key(4), (3, 4)), axis=1)
    seen = jnp.array([0, 3, 2, 2, 1, 0, 3, 3, 1])
    log_seen = log_emit.T[seen]
    total = lambda f: lambda moves: nn.logsumexp(f(log_start, moves, log_seen)[-1])
    return {
        "parallel": jit(parallel)(log_start, log_move, log_seen),
        "serial": jit(serial)(log_start, log_move, log_seen),
        "counts": jit(grad(total(parallel)))(log_move),
        "counts_serial": jit(grad(total(serial)))(log_move),
    }


RTOL = 1e-4
