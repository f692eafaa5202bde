"""The measured programs, each written once over ``np``, the NumPy namespace of either library."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy

Params = dict[str, Any]
Program = Callable[..., Any]


def chain_lax(lax: Any, length: int) -> Program:
    """``length`` equations of one type, performed by name."""

    def chain(x):
        for _ in range(length // 4):
            x = lax.mul(lax.sin(x), lax.add(x, lax.cos(x)))
        return x

    return chain


def chain_operators(length: int) -> Program:
    """``length`` equations by infix operators, half of them with a Python number."""

    def chain(x):
        y = x
        for _ in range(length // 4):
            x, y = (x + y) * 0.5, (y - x) * 0.25
        return x + y

    return chain


def chain_numpy(np: Any, length: int) -> Program:
    """``length`` equations by functions of ``numpy``."""

    def chain(x):
        for _ in range(length // 4):
            x = np.multiply(np.sin(x), np.add(x, np.cos(x)))
        return x

    return chain


def mlp_params(sizes: tuple[int, ...] = (32, 128, 128, 10)) -> list[dict[str, Any]]:
    rng = numpy.random.default_rng(0)
    return [
        {"w": (rng.normal(size=(a, b)) / a**0.5).astype("float32"), "b": numpy.zeros(b, "float32")}
        for a, b in itertools.pairwise(sizes)
    ]


def mlp_data(batch: int = 64, inputs: int = 32, classes: int = 10) -> tuple[Any, Any]:
    rng = numpy.random.default_rng(1)
    return rng.normal(size=(batch, inputs)).astype("float32"), rng.integers(0, classes, batch).astype("int32")


def mlp(np: Any) -> Program:
    """Mean cross entropy of a perceptron with tanh."""

    def loss(params, x, labels):
        for layer in params[:-1]:
            x = np.tanh(x @ layer["w"] + layer["b"])
        return cross_entropy(np, x @ params[-1]["w"] + params[-1]["b"], labels)

    return loss


def cross_entropy(np: Any, logits: Any, labels: Any) -> Any:
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_normaliser = np.log(np.sum(np.exp(shifted), axis=-1))
    chosen = np.take_along_axis(shifted, labels[..., None], axis=-1)[..., 0]
    return np.mean(log_normaliser - chosen)


def transformer_params(blocks: int, width: int = 64, vocabulary: int = 128, length: int = 32) -> Params:
    rng = numpy.random.default_rng(2)

    def matrix(rows, columns):
        return (rng.normal(size=(rows, columns)) / rows**0.5).astype("float32")

    def norm():
        return {"scale": numpy.ones(width, "float32"), "shift": numpy.zeros(width, "float32")}

    def block():
        return {
            "norm1": norm(), "norm2": norm(), "qkv": matrix(width, 3 * width), "out": matrix(width, width),
            "up": matrix(width, 4 * width), "up_bias": numpy.zeros(4 * width, "float32"),
            "down": matrix(4 * width, width), "down_bias": numpy.zeros(width, "float32"),
        }

    return {
        "tokens": matrix(vocabulary, width), "positions": matrix(length, width),
        "blocks": [block() for _ in range(blocks)], "norm": norm(), "head": matrix(width, vocabulary),
    }


def transformer_data(batch: int = 4, length: int = 32, vocabulary: int = 128) -> tuple[Any, Any]:
    tokens = numpy.random.default_rng(3).integers(0, vocabulary, (batch, length + 1)).astype("int32")
    return tokens[:, :-1], tokens[:, 1:]


def transformer(np: Any, heads: int = 4) -> Program:
    """Mean cross entropy of a decoder that normalises before each part."""

    def layer_norm(p, x):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * p["scale"] + p["shift"]

    def attention(p, x):
        batch, length, width = x.shape
        size = width // heads
        q, k, v = [
            np.transpose(np.reshape(part, (batch, length, heads, size)), (0, 2, 1, 3))
            for part in np.split(x @ p["qkv"], 3, axis=-1)
        ]
        scores = q @ np.swapaxes(k, -1, -2) / size**0.5
        positions = np.arange(length)
        scores = np.where(positions[:, None] >= positions[None, :], scores, -1e9)
        weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        weights = weights / np.sum(weights, axis=-1, keepdims=True)
        mixed = np.reshape(np.transpose(weights @ v, (0, 2, 1, 3)), (batch, length, width))
        return mixed @ p["out"]

    def feed_forward(p, x):
        h = x @ p["up"] + p["up_bias"]
        h = 0.5 * h * (1.0 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        return h @ p["down"] + p["down_bias"]

    def loss(params, tokens, labels):
        x = np.take(params["tokens"], tokens, axis=0) + params["positions"]
        for p in params["blocks"]:
            x = x + attention(p, layer_norm(p["norm1"], x))
            x = x + feed_forward(p, layer_norm(p["norm2"], x))
        return cross_entropy(np, layer_norm(params["norm"], x) @ params["head"], labels)

    return loss


def nested(lib: Any, np: Any, depth: int, renew: Callable[[Any], Any], factor: float = 1.0) -> Program:
    """``(sum . grad . jit)^depth`` of a small function: every level differentiates the ones inside, each jitted.

    ``renew`` gives each level code that no cache has seen; another ``factor`` gives programs that none has seen.
    """

    def base(x):
        return np.sum(np.sin(x) * x * factor)

    def level(inner):
        jitted = lib.jit(renew(inner))

        def outer(x):
            return np.sum(lib.grad(jitted)(x))

        return outer

    f = base
    for _ in range(depth):
        f = level(f)
    return f
