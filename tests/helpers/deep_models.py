"""Models written as Python loops over their blocks or steps: name -> (loss, parameters, data)."""

from __future__ import annotations

import numpy as np

from handlax import lax, nn
from handlax import numpy as hnp

RANDOM = np.random.default_rng(0)


def weights(*shape, scale=0.05):
    return (scale * RANDOM.normal(size=shape)).astype("float32")


def norm(x, axes=-1):
    return (x - hnp.mean(x, axes, keepdims=True)) * lax.rsqrt(hnp.var(x, axes, keepdims=True) + 1e-5)


def mean_square(block):
    def loss(ps, x):
        for p in ps:
            x = block(p, x)
        return hnp.mean(x * x)

    return loss


def attention(p, x):
    h = norm(x)
    q, k, v = [(h @ p[n]).reshape(16, 4, 8).transpose(1, 0, 2) for n in "qkv"]
    y = nn.softmax(q @ k.transpose(0, 2, 1) / 3.0, axis=-1) @ v
    x = x + y.transpose(1, 0, 2).reshape(16, 32) @ p["o"]
    return x + nn.gelu(norm(x) @ p["a"]) @ p["b"]


def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def residual(p, x):
    h = nn.relu(norm(convolution(x, p[0]), (0, 1, 2)))
    return nn.relu(x + norm(convolution(h, p[1]), (0, 1, 2)) * p[2])


def lstm(p, xs):
    h = c = hnp.zeros((4, 16), "float32")
    for t in range(len(xs)):
        i, f, g, o = hnp.split(xs[t] @ p[0] + h @ p[1] + p[2], 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * hnp.tanh(g)
        h = nn.sigmoid(o) * hnp.tanh(c)
    return hnp.mean(h * h)


def runge_kutta(p, y):
    f = lambda y: hnp.tanh(y @ p[0] + p[1])
    for _ in range(20):
        k1 = f(y)
        k2 = f(y + 0.025 * k1)
        k3 = f(y + 0.025 * k2)
        y = y + 0.05 / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + 0.05 * k3))
    return hnp.mean(y * y)


def predators(rates, state):
    """Euler's method for the equations of Lotka and Volterra; no product stores its states."""
    a, b, c, d = rates
    x, y = state
    for _ in range(20):
        x, y = x + 0.01 * (a * x - b * x * y), y + 0.01 * (c * x * y - d * y)
    return hnp.mean(x + y)


def nested(p, x):
    for w, b in p[:-1]:
        x = norm(x + nn.gelu(x @ w + b))
    return nn.softmax(x @ p[-1], axis=-1) * x


def transformer_block():
    return {**{n: weights(32, 32) for n in "qkvo"}, "a": weights(32, 128), "b": weights(128, 32)}


MODELS = {
    "transformer": (mean_square(attention), [transformer_block() for _ in range(8)], weights(16, 32, scale=1.0)),
    "residual network": (
        mean_square(residual), [(weights(3, 3, 8, 8), weights(3, 3, 8, 8), weights(8, scale=1.0)) for _ in range(8)],
        weights(2, 8, 8, 8, scale=1.0),
    ),
    "recurrent": (lstm, (weights(16, 64), weights(16, 64), weights(64)), weights(24, 4, 16, scale=1.0)),
    "differential equation": (runge_kutta, (weights(16, 16), weights(16)), weights(4, 16, scale=1.0)),
    "predators": (predators, hnp.array([1.0, 0.1, 0.2, 0.5]), weights(2, 1000, scale=0.3)),
    "perceptron": (
        mean_square(lambda p, x: hnp.tanh(x @ p[0] + p[1])), [(weights(16, 16), weights(16)) for _ in range(60)],
        weights(8, 16, scale=1.0),
    ),
    "nested": (
        mean_square(nested), [[*[(weights(16, 16), weights(16)) for _ in range(4)], weights(16, 16)] for _ in range(6)],
        weights(8, 16, scale=1.0),
    ),
}
