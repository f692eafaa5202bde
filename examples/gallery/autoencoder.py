"""A variational autoencoder of handwritten digits, whose model and training have no keys.

``bound`` is written for one image, and asks for noise by an effect (Kingma & Welling 2014); handlers say what noise is.
``drawn`` carries a key from outside ``jit`` through the scan over all steps and ``grad``, and splits it among the lanes
of ``vmap``. ``silent`` answers zeros: the same encoder gives the codes. ``chosen`` answers numbers: the same generator
reconstructs, and draws the map of all digits. Two hundred lanes of ``bound`` estimate the evidence (Burda et al. 2016).
Without effects five functions here have a key among their arguments, the scan has keys among its inputs and each
``vmap`` among its axes, and encoder and generator are cut where the noise comes in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import pyplot, run, save
from scipy.special import gammaln, ndtri
from sklearn.datasets import load_digits

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.example_libraries import optimizers

LEVELS, HIDDEN, LATENT, BATCH, STEPS = 16, 128, 2, 128, 3000


@hx.effect(vmap="per_lane")
class Noise:
    """Ask for independent standard normal numbers."""

    size: int

    def result_type(op):
        return hx.ArrayType((op.size,), "float32")


def draw_noise(key: Any, op: Noise) -> tuple[Any, Any]:
    following, now = random.split(key)
    return following, random.normal(now, (op.size,))


drawn = hx.handler({Noise: draw_noise}, moves=hx.split(random.split))
silent = hx.handler({Noise: lambda op: hnp.zeros(op.size)})
chosen = lambda numbers: hx.handler({Noise: lambda op: numbers})


def initial(key: Any) -> Any:
    def network(key: Any, *sizes: int) -> Any:
        init = nn.initializers.he_normal()
        keys = random.split(key, len(sizes) - 1)
        return [(init(k, (m, n)), hnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]

    first, second = random.split(key)
    return {"encoder": network(first, 64, HIDDEN, 2 * LATENT), "decoder": network(second, LATENT, HIDDEN, HIDDEN, 64)}


def apply(layers: Any, x: Any) -> Any:
    *hidden, (w, b) = layers
    for v, c in hidden:
        x = nn.gelu(x @ v + c)
    return x @ w + b


def encode(params: Any, x: Any) -> Any:
    """A code of an image, its mean and the logarithm of its deviation."""
    mean, log_scale = hnp.split(apply(params["encoder"], x / LEVELS), 2)
    return mean + hnp.exp(log_scale) * hx.perform(Noise(LATENT)), mean, log_scale


def generate(params: Any) -> Any:
    """The mean of an image whose code is noise."""
    return nn.sigmoid(apply(params["decoder"], hx.perform(Noise(LATENT))))


def bound(params: Any, x: Any) -> Any:
    """An unbiased estimate of a lower bound of log p(x), where x is binomial given its code."""
    z, mean, log_scale = encode(params, x)
    logits = apply(params["decoder"], z)
    ways = gammaln(LEVELS + 1) - lax.lgamma(x + 1) - lax.lgamma(LEVELS - x + 1)
    likelihood = (ways + x * nn.log_sigmoid(logits) + (LEVELS - x) * nn.log_sigmoid(-logits)).sum()
    posterior = -0.5 * ((z - mean) / hnp.exp(log_scale)) ** 2 - log_scale
    return likelihood + (-0.5 * z**2 - posterior).sum()


def evidence(params: Any, x: Any, draws: int) -> Any:
    """An estimate of log p(x) by importance sampling."""
    return nn.logmeanexp(hx.vmap(bound, in_axes=None, axis_size=draws)(params, x))


def train(params: Any, batches: Any, steps: int) -> Any:
    loss = lambda params, images: -hx.vmap(bound, in_axes=(None, 0))(params, images).mean()
    init, update, params_of = optimizers.adam(optimizers.polynomial_decay(2e-3, steps, 1e-4))

    def step(state: Any, number: Any) -> Any:
        value, slopes = hx.value_and_grad(loss)(params_of(state), batches[number % len(batches)])
        return update(number, slopes, state), value

    state, losses = lax.scan(step, init(params), hnp.arange(steps))
    return params_of(state), losses


def tiled(images: Any, columns: int) -> np.ndarray:
    images = np.pad(np.reshape(images, (-1, columns, 8, 8)), [(0, 0), (0, 0), (1, 1), (1, 1)])
    return images.swapaxes(1, 2).reshape(len(images) * 10, columns * 10)


def draw(params: Any, x: Any, labels: Any, picture: str) -> None:
    codes = np.asarray(hx.vmap(lambda x: hx.handle(silent)(encode)(params, x)[0])(x))
    line = ndtri(np.linspace(0.02, 0.98, 11, dtype="float32"))
    grid = np.stack(np.meshgrid(line, line[::-1]), -1).reshape(-1, 2)
    at = hx.vmap(lambda z: hx.handle(chosen(z))(generate)(params))
    _, new = hx.handle(drawn, random.key(3))(hx.vmap(generate, in_axes=None, axis_size=40))(params)
    figure = pyplot.figure(figsize=(9, 3.4))
    axes = figure.subplot_mosaic([["codes", "map", "pairs"], ["codes", "map", "draws"]])
    points = axes["codes"].scatter(codes[:, 0], codes[:, 1], c=labels, cmap="tab10", s=5, vmin=-0.5, vmax=9.5)
    axes["codes"].legend(*points.legend_elements(), loc="upper center", ncols=5, columnspacing=0.5, handletextpad=0)
    axes["codes"].set(title="Codes of test images: no noise", xlabel="$z_1$", ylabel="$z_2$")
    axes["codes"].set_ylim(top=1.4 * codes[:, 1].max())
    pairs = np.stack([x[:20].reshape(2, 10, 64) / LEVELS, at(codes[:20]).reshape(2, 10, 64)], 1)
    titles = {"map": "Digits at chosen codes", "pairs": "Test images above reconstructions", "draws": "Draws"}
    for (name, title), images in zip(titles.items(), (at(grid), pairs, new)):
        axes[name].imshow(tiled(images, 11 if name == "map" else 10), cmap="gray_r")
        axes[name].set_title(title)
        axes[name].axis("off")
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, float]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order].astype("float32"), labels[order]
    batches, test = images[: 11 * BATCH].reshape(11, BATCH, 64), images[11 * BATCH :]
    compiled = hx.handle(drawn, random.key(1))(hx.jit(train, static_argnums=2))
    _, (params, losses) = compiled(initial(random.key(0)), batches, 150 if small else STEPS)
    measured = hx.jit(hx.vmap(evidence, in_axes=(None, 0, None)), static_argnums=2)
    _, lower = hx.handle(drawn, random.key(2))(measured)(params, test, 1)
    _, value = hx.handle(drawn, random.key(2))(measured)(params, test, 10 if small else 200)
    found = {"first loss": losses[0], "loss": losses[-11:].mean(), "bound": lower.mean(), "evidence": value.mean()}
    print(", ".join(f"{name} {float(x):.2f}" for name, x in found.items()))
    if picture:
        draw(params, test, labels[11 * BATCH :], picture)
    return {name: float(x) for name, x in found.items()}


if __name__ == "__main__":
    run(main)
