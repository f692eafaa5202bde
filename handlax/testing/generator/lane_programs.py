"""Random functions of a lane with axes of their own length, over the vocabulary of the package.

The probe is a lane whose lengths are the primes of ``PROBE``: sizes that are smaller all lanes share, larger ones are
ragged, and equal ones are the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from ... import numpy as hnp
from ...effects.base.wrapping import errors_ignored
from ...effects.core.arrays import perform
from ...effects.core.operation import effect
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...interpreters.handlers.handler import handler
from .lane_statements import LANE_VOCABULARY, SMALL
from .random_program import RandomProgram
from .reducing import living
from .writer import Body, Writer, function_text

PROBE = (53, 67)  # two vectors of lengths


@effect(vmap="per_lane", diff="stop")
class LaneCount:
    """An effect that counts, and gives the count."""

    def result_type(op):
        return ArrayType((), "int32")


@effect(vmap="per_lane")
class LaneQuestion:
    """An effect with a number as operand and result."""

    def result_type(op, x):
        return x


def count() -> Any:
    return perform(LaneCount())


def ask(x: Any) -> Any:
    return perform(LaneQuestion(), x)


counting = handler({LaneCount: lambda n, op: (n + 1, n)})
answering = handler({LaneQuestion: lambda op, x: hnp.sin(x) + 0.5 * x})

# the arguments of a lane: its rows, with lengths by the vector that they belong to, or of one shape
RAGGED = {"rows": (3,), "line": (), "cube": (2, 2), "places": (), "flags": ()}
DENSE = {"number": (), "vector": (3,), "matrix": (3, 2), "index": ()}
SHARED = {"weights": (3, 3), "scale": ()}
INTEGERS, BOOLEANS = ("places", "index"), ("flags",)


def drawn(kind: str, shape: Sequence[int], rng: np.random.Generator, dtype: str) -> Any:
    """A random argument of this kind."""
    if kind in INTEGERS:
        return rng.integers(0, 5, shape).astype("int32")
    if kind in BOOLEANS:
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.standard_normal(shape)
    return np.asarray(hnp.asarray(x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x, dtype))


@dataclass(frozen=True, repr=False)
class LaneProgram(RandomProgram):
    """The function of one lane of a ragged ``vmap``.

    ``kinds``: for each argument the name of its kind, or a tuple of names where it is ragged: arrays of one length.
    ``ragged``: for each result whether its first axis has a length of each lane's own.
    """

    kinds: tuple[Any, ...]
    dtype: str
    ragged: tuple[bool, ...]
    prelude = (
        "import handlax as hx\nfrom handlax import lax\nfrom handlax import numpy as hnp\n"
        "from handlax.testing.generator.lane_programs import answering, ask, count, counting\n"
    )

    def inputs(self, seed: int) -> list[Any]:
        """The arguments of a single lane, as long as the probe."""
        return arguments(self.kinds, self.dtype, seed)


def arguments(kinds: Sequence[Any], dtype: str, seed: int) -> list[Any]:
    """Arguments of these kinds, as long as the probe."""
    rng = np.random.default_rng(seed)
    return [
        drawn(kind, {**DENSE, **SHARED}[kind], rng, dtype) if isinstance(kind, str)
        else tuple([drawn(each, (PROBE[i], *RAGGED[each]), rng, dtype) for each in kind])
        for i, kind in enumerate(kinds)
    ]


def as_result(name: str, shape: tuple[int, ...]) -> tuple[str, bool]:
    """The text of a result, made of a variable of this shape, and whether it is ragged.

    Of several ragged axes all but one are summed over; the one that is left becomes the first.
    """
    axes = [d for d, size in enumerate(shape) if size >= SMALL]
    if len(axes) > 1:
        summed = f"{name}.sum({tuple(axes[1:])})"
        return (summed, True) if axes[0] == 0 else (f"hnp.moveaxis({summed}, {axes[0]}, 0)", True)
    if axes and axes[0]:
        return f"hnp.moveaxis({name}, {axes[0]}, 0)", True
    return name, bool(axes)


def _written(a: Writer, scope: Body, examples: Any) -> tuple[Body, int]:
    """The statements of a program on these examples, and how many names are its arguments."""
    body = a.opened(scope, "program", examples)
    given = len(body.names)
    for _ in range(a.integer(4, 9)):
        a.statements(body, 1)
    return body, given


def random_lane_program(random: Random, *, depth: int = 2) -> LaneProgram:
    """A program of 4 to 9 statements, with functions in them up to ``depth`` deep."""
    a = Writer(random, LANE_VOCABULARY, size=2, nesting=0.0)
    dtype = a.choice(["float64"] * 8 + ["float32", "bfloat16", "complex64"])
    kinds: list[Any] = [tuple(random.sample([*RAGGED], a.integer(1, 2)))]
    if a.chance(0.3):
        kinds.append((a.choice(["rows", "line"]),))
    kinds += random.sample([*DENSE], a.integer(0, 2)) + random.sample([*SHARED], a.integer(0, 1))
    space: dict[str, Any] = {}
    exec(LaneProgram.prelude, space)
    examples = pytrees.map(hnp.asarray, arguments(kinds, dtype, random.getrandbits(32)))
    body, given = errors_ignored(_written, a, Body(space, (), depth + 1), examples)
    made = body.names[given:]
    names = [*dict.fromkeys([*made[-1:], *random.sample(made, min(2, len(made)))])] or body.names[:1]
    results = [as_result(name, body[name].shape) for name in names]
    source = function_text(body, f"({', '.join([text for text, _ in results])},)")
    return LaneProgram(living(source), tuple(kinds), dtype, tuple([ragged for _, ragged in results]))
