"""A hidden Markov model: forward probabilities, posterior marginals as gradients, and the most likely path."""

import handlax.numpy as jnp
from handlax import grad, jit, nn


def forward(log_start, log_move, log_seen):
    alpha = log_start + log_seen[0]
    for row in log_seen[1:]:
        alpha = nn.logsumexp(alpha[:, None] + log_move, axis=0) + row
    return nn.logsumexp(alpha)


@jit
def most_likely(log_start, log_move, log_seen):
    score, back = log_start + log_seen[0], []
    for row in log_seen[1:]:
        options = score[:, None] + log_move
        back.append(jnp.argmax(options, axis=0))
        score = jnp.max(options, axis=0) + row
    path = [jnp.argmax(score)]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return jnp.stack(path[::-1]), jnp.max(score)


def main():
    log_start = jnp.log(jnp.array([0.6, 0.3, 0.1]))
    log_move = jnp.log(jnp.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]))
    log_emit = jnp.log(jnp.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]]))
    seen = jnp.array([0, 0, 1, 2, 2, 1, 0, 2])
    log_seen = log_emit.T[seen]
    path, score = most_likely(log_start, log_move, log_seen)
    return {
        "likelihood": jit(forward)(log_start, log_move, log_seen),
        "marginals": jit(grad(forward, argnums=2))(log_start, log_move, log_seen),
        "path": path,
        "score": score,
    }
