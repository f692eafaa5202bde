"""A Kalman filter as a scan forwards and a smoother as a scan backwards; the noise is learned from the likelihood."""

import handlax.numpy as jnp
from handlax import jit, lax, random, value_and_grad

MOVE = jnp.array([[1.0, 0.1], [0.0, 1.0]])
DRIFT = 0.02 * jnp.eye(2)


def forwards(noise, seen):
    def step(state, y):
        mean, cov, total = state
        mean, cov = MOVE @ mean, MOVE @ cov @ MOVE.T + DRIFT
        spread = cov[0, 0] + noise
        gain, surprise = cov[:, 0] / spread, y - mean[0]
        updated = mean + gain * surprise, cov - jnp.outer(gain, cov[0])
        total = total - 0.5 * (surprise**2 / spread + jnp.log(spread))
        return (*updated, total), (*updated, mean, cov)

    (_, _, total), path = lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), seen)
    return total, path


def backwards(path):
    means, covs, predicted, spreads = path

    def step(later, row):
        mean, cov, ahead, spread = row
        (a, b), (c, d) = spread
        inverse = jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)
        smooth = mean + cov @ MOVE.T @ inverse @ (later - ahead)
        return smooth, smooth

    rows = means[:-1], covs[:-1], predicted[1:], spreads[1:]
    _, smooth = lax.scan(step, means[-1], rows, reverse=True)
    return jnp.concatenate([smooth, means[-1:]])


@jit
def learn(seen):
    def step(log_noise, _):
        value, slope = value_and_grad(lambda s: -forwards(jnp.exp(s), seen)[0])(log_noise)
        return log_noise - 0.02 * slope, value

    return lax.scan(step, jnp.float32(0.0), None, length=10)


def main():
    times = 0.1 * jnp.arange(30)
    seen = jnp.sin(times) + 0.3 * random.normal(random.key(7), times.shape)
    log_noise, losses = learn(seen)
    total, path = jit(forwards)(jnp.exp(log_noise), seen)
    return {"losses": losses, "noise": jnp.exp(log_noise), "total": total, "means": path[0], "smooth": backwards(path)}


RTOL = 1e-4
