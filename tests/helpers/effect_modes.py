"""The ways to execute a random program with effects, and what the oracle says of each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.later_layers import LaterLayers
from handlax.interpreters.core.evaluate import forget_executors
from handlax.sharding import P
from handlax.testing.effect_programs.blocks import Block
from handlax.testing.effect_programs.functions import DERIVATIVES
from handlax.testing.effect_programs.programs import effect_program
from handlax.testing.effect_programs.structures import random_block

from .effect_oracle import meaning, slope

XS = [0.7, -0.3, 1.1]
Y = -0.4


@contextmanager
def evaluated() -> Any:
    """A context in which NumPy evaluates all eager operations, loops and branches too: nothing is compiled."""
    plan, LaterLayers.plan = LaterLayers.plan, lambda program: None
    forget_executors()
    try:
        yield
    finally:
        LaterLayers.plan = plan
        forget_executors()


def array(x: Any) -> Any:
    return hnp.asarray(x, "float64")


def directly(f: Any, c: float) -> Any:
    return f(array(c), array(XS[0]), array(Y))


def compiled(f: Any, c: float) -> Any:
    return directly(hx.jit(f), c)


def checkpointed(f: Any, c: float) -> Any:
    return hx.value_and_grad(hx.checkpoint(f), argnums=1)(array(c), array(XS[0]), array(Y))


def in_lanes(f: Any, c: float) -> Any:
    return hx.vmap(f, (None, 0, None))(array(c), array(XS), array(Y))


def in_ragged_lanes(f: Any, c: float) -> Any:
    lane = lambda row: lax.map(lambda x: f(array(c), x, array(Y)), row)
    return hx.vmap(lane, hx.ragged_axis, hx.ragged_axis)(hx.Ragged(array(XS), (2, 0, 1))).data


def in_a_loop(f: Any, c: float) -> Any:
    return lax.map(lambda x: f(array(c), x, array(Y)), array(XS))


def compiled_in_lanes(f: Any, c: float) -> Any:
    return in_lanes(hx.jit(f), c)


def on_devices(f: Any, c: float) -> Any:
    return _on_devices(f, c, True)


def on_unchecked_devices(f: Any, c: float) -> Any:
    return _on_devices(f, c, False)


def _on_devices(f: Any, c: float, checked: bool) -> Any:
    mesh = hx.make_mesh((len(XS),), ("device",))
    each = lambda c, x, y: f(c, x[0], y)[None]
    over = hx.shard_map(each, mesh=mesh, in_specs=(P(), P("device"), P()), out_specs=P("device"), check_vma=checked)
    return over(array(c), array(XS), array(Y))


def typed(f: Any, c: float) -> Any:
    shape = hx.eval_shape(f, array(c), array(XS[0]), array(Y))
    return len(shape.shape)


def derived(mode: str) -> Any:
    """The value and the derivative by ``x``, by a function of ``DERIVATIVES``."""
    return lambda f, c: DERIVATIVES[mode](lambda x: f(array(c), x, array(Y)), array(XS[0]))


class Mode(NamedTuple):
    """``run(f, c)``: the results; ``means(program, c)``: what they are. ``compiles``, ``derivative``: as in the writer.
    """

    run: Callable[[Any, float], Any]
    means: Callable[[Block, float], Any]
    compiles: bool = False
    derivative: str | None = None


def of_one(program: Block, c: float) -> Any:
    return meaning(program, c, XS[0], Y)


def of_each(program: Block, c: float) -> Any:
    return [meaning(program, c, x, Y) for x in XS]


def with_slope(program: Block, c: float) -> Any:
    return slope(program, c, XS[0], Y)


MODES = {
    "directly": Mode(directly, of_one),
    "in_lanes": Mode(in_lanes, of_each),
    "in_ragged_lanes": Mode(in_ragged_lanes, of_each),
    "in_a_loop": Mode(in_a_loop, of_each),
    "typed": Mode(typed, lambda program, c: 0),
    "checkpointed": Mode(checkpointed, with_slope, derivative="grad"),
    **{mode: Mode(derived(mode), with_slope, derivative=mode) for mode in DERIVATIVES},
}
COMPILED = {
    "compiled_calls": Mode(directly, of_one, compiles=True),
    "compiled": Mode(compiled, of_one, compiles=True),
    "compiled_in_lanes": Mode(compiled_in_lanes, of_each, compiles=True),
    "on_devices": Mode(on_devices, of_each, compiles=True),
    "on_unchecked_devices": Mode(on_unchecked_devices, of_each, compiles=True),
}
STYLES = {"handle": ("handle",), "direct": ("direct",), "replay": ("replay",), "both": ("handle", "direct", "replay")}


class Sample(NamedTuple):
    """A random program and the way to execute it: all that is needed to see it again."""

    seed: int
    depth: int
    mode: str
    style: str = "handle"
    daring: float = 0.0
    size: int = 8

    @property
    def way(self) -> Mode:
        return (MODES | COMPILED)[self.mode]

    def written(self) -> Any:
        way = self.way
        return random_block(
            Random(self.seed), self.depth, size=self.size, styles=STYLES[self.style], compiles=way.compiles,
            eager=way.run is directly, derivative=way.derivative, daring=self.daring,
        )

    def check(self, program: Block) -> None:
        """Raises: AssertionError: the program does not give what it means; HandlaxError: it is refused."""
        choice, way = float(self.seed % 2), self.way
        text = effect_program(program)
        found, expected = way.run(text.function(), choice), way.means(program, choice)
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-9, err_msg=f"{self}\n{text.source}"
        )


def sample(seed: int, modes: Any = MODES) -> Sample:
    """The sample of a seed: all modes, styles and depths; one in fifty dares a refusal."""
    draw = Random(seed)
    mode = draw.choice(list(modes))
    style, daring = draw.choice(list(STYLES)), 0.1 * (draw.random() < 0.02)
    return Sample(seed, draw.randint(2, 5), mode, style, daring, draw.randint(2, 7))
