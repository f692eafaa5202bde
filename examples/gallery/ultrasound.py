"""A handwritten digit that is hidden in a medium is found by the sound that passes through it.

Sound is slower where there is ink. Each of 12 loudspeakers on a ring sends a pulse, 36 microphones hear it, and descent
along gradients of the wave equation finds the speed at each point. The solver is a ``while_loop`` that ends when it has
become quiet, after a number of steps that nobody knows before; with ``checkpoints=10`` reverse mode crosses it in the
memory of ten states. A step performs the effect ``Hear``: one handler around the solver writes a record, another one
compares with it and is differentiated. Their states are carries of the loop, the solver knows of neither, and ``vmap``
sends all pulses at once. JAX refuses reverse mode through such a loop, and what the microphones hear would be threaded
through it by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import pyplot, run, save
from sklearn.datasets import load_digits

import handlax as hx
from handlax import image, lax
from handlax import numpy as hnp

SIZE, RADIUS, WIDTH = 64, 22, 28    # of the grid, of the ring, and of the picture inside, in points of the grid
DT, PERIOD = 0.5, 10.0              # of the solver, and of the pulse, in the time in which sound passes a point
MOST, NOISE = 300, 0.01             # steps that a record has room for, and the deviation of its noise


def ring(count: int) -> tuple[Any, Any]:
    """The points of a ring around the picture."""
    angle = 2 * np.pi * np.arange(count) / count
    place = lambda x: np.round(SIZE / 2 + RADIUS * x).astype("int32")
    return place(np.cos(angle)), place(np.sin(angle))


MICROPHONES = ring(36)
EDGE = np.minimum(np.arange(SIZE), np.arange(SIZE)[::-1])
# near the border the wave is absorbed
KEPT = 1 - 0.002 * np.maximum(0, 10 - np.minimum.outer(EDGE, EDGE)).astype("float32") ** 2


@hx.effect(vmap="per_lane")
class Hear:
    """What the microphones hear at a step."""

    def result_type(op: Any, n: Any, sound: Any) -> None:
        return None


recording = hx.handler({Hear: lambda record, op, n, sound: (record.at[n].set(sound), None)})


def comparing(record: Any) -> hx.Handler:
    """The state is the sum of squares of what differs from the record."""
    return hx.handler({Hear: lambda misfit, op, n, sound: (misfit + ((sound - record[n]) ** 2).sum(), None)})


def laplacian(u: Any) -> Any:
    """By second differences, of a field that is zero outside."""
    v = hnp.pad(u, 1)
    return v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4 * u


def sound(speed: Any, loudspeaker: Any, **bound: int) -> None:
    """The wave equation, from a pulse until it is quiet; the bound is that of the loop's reverse mode."""

    def step(state: Any) -> Any:
        n, u, before = state
        time = np.pi * (n * DT - PERIOD) / PERIOD
        after = KEPT * (2 * u - KEPT * before + (DT * speed) ** 2 * laplacian(u))
        after = after.at[loudspeaker].add((1 - 2 * time**2) * hnp.exp(-(time**2)))
        hx.perform(Hear(), n, after[MICROPHONES])
        return n + 1, after, u

    def loud(state: Any) -> Any:
        n, u, _ = state
        return (n < MOST) & ((n < 60) | (hnp.abs(u).max() > 0.03))

    silence = hnp.zeros((SIZE, SIZE))
    lax.while_loop(loud, step, (0, silence, silence), **bound)


def speed_of(ink: Any) -> Any:
    """The speed at each point of the grid, of ink on a coarser grid inside of the ring, 0 to 1."""
    return 1 - hnp.pad(0.3 * image.resize(ink, (WIDTH, WIDTH), "linear"), (SIZE - WIDTH) // 2)


def search(misfit: Any, ink: Any, steps: int) -> tuple[Any, Any]:
    """Adam, which keeps ink between 0 and 1; the ink and the misfit by step."""

    def step(state: Any, n: Any) -> tuple[Any, Any]:
        ink, m, v = state
        value, slope = hx.value_and_grad(misfit)(ink)
        m, v = 0.9 * m + 0.1 * slope, 0.99 * v + 0.01 * slope**2
        ink = ink - 0.05 * (m / (1 - 0.9**n)) / (hnp.sqrt(v / (1 - 0.99**n)) + 1e-6)
        return (hnp.clip(ink, 0.0, 1.0), m, v), value

    (ink, _, _), values = lax.scan(step, (ink, hnp.zeros_like(ink), hnp.zeros_like(ink)), hnp.arange(1.0, steps + 1))
    return ink, values


def draw(picture: str, hidden: Any, found: Any, record: np.ndarray, misfits: np.ndarray, pulses: Any) -> None:
    figure, (a, b, c, d) = pyplot.subplots(1, 4, figsize=(9, 2.7))
    for axes, ink, title in ((a, hidden, "Hidden"), (b, found, "Found from the sound")):
        axes.imshow(speed_of(ink), cmap="Greys_r", vmin=0.7, vmax=1)
        axes.plot(*MICROPHONES[::-1], ".", markersize=3, label="microphones")
        axes.plot(*pulses[::-1], "o", markersize=4, label="loudspeakers")
        axes.set(title=title, xlim=(6, SIZE - 6), ylim=(SIZE - 6, 2))
        axes.axis("off")
    a.legend(loc="upper center", ncols=2, fontsize=7, columnspacing=0.8, handletextpad=0.1, borderpad=0)
    shown = {"cmap": pyplot.get_cmap("RdBu", 15), "vmin": -0.3, "vmax": 0.3}
    c.imshow(record, aspect="auto", extent=(0, len(MICROPHONES[0]), len(record), 0), **shown)
    c.set(title="Heard of one pulse", xlabel="microphone", ylabel="step")
    d.plot(misfits)
    d.axhline(NOISE**2 * record.size, color="black", linestyle="--", linewidth=1, label="noise")
    d.set(title="Misfit of a pulse", xlabel="step", ylim=(0, None))
    d.legend()
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, Any]:
    hidden = (load_digits().images[3] / 16.0).astype("float32")
    pulses = ring(4 if small else 12)
    silence = hnp.zeros((MOST, len(MICROPHONES[0])))
    heard = hx.jit(hx.vmap(lambda pulse: hx.handle(recording, silence)(sound)(speed_of(hidden), pulse)[0]))(pulses)
    records = heard + NOISE * np.random.default_rng(0).normal(size=heard.shape).astype("float32")
    steps = (np.abs(heard).max(2) > 0).sum(1)

    def misfit(ink: Any, **bound: int) -> Any:
        compared = lambda pulse, record: hx.handle(comparing(record), 0.0)(sound)(speed_of(ink), pulse, **bound)[0]
        return hx.vmap(compared)(pulses, records).mean()

    blank = hnp.zeros((14, 14))
    found, misfits = hx.jit(lambda: search(lambda ink: misfit(ink, checkpoints=10), blank, 6 if small else 80))()
    true = image.resize(hidden, blank.shape, "linear")
    match = float(np.corrcoef(np.ravel(found), np.ravel(true))[0, 1])
    print(f"quiet after {min(steps)} to {max(steps)} steps; misfit from {misfits[0]:.2f} to {misfits[-1]:.2f}; "
          f"correlation of what was found with what was hidden {match:.3f}")

    slope = lambda bound: hx.jit(hx.grad(lambda ink: misfit(ink, **bound))).lower(blank).compile().memory_analysis()
    memory = {name: slope({name: n}).temp_size_in_bytes for name, n in (("checkpoints", 10), ("max_steps", MOST))}
    print("memory of a gradient:", ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in memory.items()))
    if picture:
        draw(picture, hidden, found, np.asarray(records[0])[: max(steps)], np.asarray(misfits), pulses)
    return {"first": float(misfits[0]), "last": float(misfits[-1]), "match": match, "memory": memory, "steps": steps}


if __name__ == "__main__":
    run(main)
