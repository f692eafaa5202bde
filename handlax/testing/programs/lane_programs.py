"""Random functions of a lane with axes of their own length, as Python text, over the vocabulary of the package.

A program is written while it runs on a probe, a lane whose lengths are the primes of ``PROBE``: sizes that are smaller
all lanes share, larger ones are ragged, and equal ones are the same length. So the text of a statement is all that its
kind needs, and a program that fails is a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

from .lane_statements import BLOCKS, SAME_TYPE, SMALL, WRITERS, fits_type, is_float, ragged

PROBE = (53, 67)  # two vectors of lengths
LARGEST = 40_000  # elements of a value


@hx.effect(vmap="per_lane", diff="stop")
class Count:
    """An effect that counts, and gives the count."""

    def result_type(op):
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane")
class Ask:
    """An effect with a number as operand and result."""

    def result_type(op, x):
        return x


counting = hx.handler({Count: lambda n, op: (n + 1, n)})
answering = hx.handler({Ask: lambda op, x: hnp.sin(x) + 0.5 * x})

# the arguments of a lane: its rows, with lengths by the vector that they belong to, or of one shape
RAGGED = {"rows": (3,), "line": (), "cube": (2, 2), "places": (), "flags": ()}
DENSE = {"number": (), "vector": (3,), "matrix": (3, 2), "index": ()}
SHARED = {"weights": (3, 3), "scale": ()}
INTEGERS, BOOLEANS = ("places", "index"), ("flags",)


def drawn(kind: str, shape: Sequence[int], rng: np.random.Generator, dtype: str) -> Any:
    if kind in INTEGERS:
        return rng.integers(0, 5, shape).astype("int32")
    if kind in BOOLEANS:
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.standard_normal(shape)
    return np.asarray(hnp.asarray(x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x, dtype))


class LaneProgram(NamedTuple):
    """``kinds``: of each argument, a tuple of them for a ragged one; ``lines``: the statements (name, type, text)."""

    kinds: tuple[Any, ...]
    lines: tuple[Any, ...]
    results: tuple[str, ...]
    dtype: str

    @property
    def returned(self) -> tuple[str, tuple[bool, ...]]:
        """The text of the results, and which of them are ragged."""
        shapes = {name: shape for name, shape, _ in self.lines}
        found = [as_result(name, shapes[name]) for name in self.results]
        return f"({', '.join([text for text, _ in found])},)", tuple([ragged for _, ragged in found])

    @property
    def source(self) -> str:
        """The text of the lane function ``lane``, without what its results do not need."""
        text = self.returned[0]
        needed: list[str] = []
        for name, _, statement in reversed(self.lines):
            if re.search(rf"\b{name}\b", text) and statement is not None:
                needed.insert(0, statement)
                text += "\n" + statement
        body = "\n".join(["    " + line for line in "\n".join([*needed, f"return {self.returned[0]}"]).split("\n")])
        return f"def lane({', '.join([argument_name(i, kind) for i, kind in enumerate(self.kinds)])}):\n{body}\n"

    @property
    def function(self) -> Callable[..., Any]:
        space = namespace()
        exec(self.source, space)
        return space["lane"]


def argument_name(i: int, kind: Any) -> str:
    return f"x{i}" if isinstance(kind, str) else f"r{i}"


def namespace() -> dict[str, Any]:
    return {"hx": hx, "hnp": hnp, "lax": lax, "Ask": Ask, "Count": Count, "counting": counting, "answering": answering}


def as_result(name: str, shape: tuple[int, ...]) -> tuple[str, bool]:
    """A value with at most one ragged axis, its first."""
    axes = [d for d, size in enumerate(shape) if size >= SMALL]
    if len(axes) > 1:
        summed = f"{name}.sum({tuple(axes[1:])})"
        return (summed, True) if axes[0] == 0 else (f"hnp.moveaxis({summed}, {axes[0]}, 0)", True)
    if axes and axes[0]:
        return f"hnp.moveaxis({name}, {axes[0]}, 0)", True
    return name, bool(axes)


class Writer:
    """Writes statements, each of which is run on the probe; one that fails there is left out."""

    def __init__(self, rng: Random, space: dict[str, Any], names: list[str], depth: int, counter: list[int]):
        self.rng, self.space, self.depth, self.counter = rng, space, depth, counter
        self.names = names  # of values
        self.lines: list[Any] = []

    def fresh(self, letter: str = "v") -> str:
        self.counter[0] += 1
        return f"{letter}{self.counter[0]}"

    def value(self, name: str) -> Any:
        return self.space[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.space[name].shape

    def add(self, text: str, before: str = "") -> str | None:
        """A statement that gives a value to a new name; None: the probe refuses it."""
        name = self.fresh()
        statement = f"{before}{name} = {text}"
        try:
            with np.errstate(all="ignore"):
                exec(statement, self.space)
            y = self.space[name]
            fits = isinstance(y, hx.Array) and y.size <= LARGEST and all(n < 14 or n >= SMALL for n in y.shape)
        except (hx.errors.HandlaxError, TypeError, ValueError, IndexError, OverflowError):
            fits = False
        if not fits:
            self.space.pop(name, None)
            return None
        self.names.append(name)
        self.lines.append((name, y.shape, statement))
        return name

    def statement(self) -> None:
        """One more statement, of a kind that fits what there is."""
        for _ in range(20):
            kinds = [kind for kind in WRITERS if self.depth or kind not in BLOCKS]
            kind = self.rng.choices(kinds, [WRITERS[kind] for kind in kinds])[0]
            made = kind(self)
            if made is not None and self.add(*((made,) if isinstance(made, str) else made)) is not None:
                return

    # what statements are written of

    def pick(self, fits: Callable[[Any], bool]) -> str | None:
        """The name of a value, of the later ones rather, or of those with a ragged axis."""
        found = [name for name in self.names if fits(self.value(name))]
        if not found:
            return None
        weights = [(1 + i) * (3 if ragged(self.shape(name)) else 1) for i, name in enumerate(found)]
        return self.rng.choices(found, weights)[0]

    def axis(self, name: str) -> int:
        """An axis of a value, a ragged one rather."""
        shape = self.shape(name)
        return self.rng.choices(range(len(shape)), [2 if n >= SMALL else 1 for n in shape])[0]

    def axes(self, name: str) -> str:
        rank = len(self.shape(name))
        if self.rng.random() < 0.15:
            return "None"
        if rank > 1 and self.rng.random() < 0.25:
            return str(tuple(sorted(self.rng.sample(range(rank), 2))))
        axis = self.axis(name)
        return str(axis if self.rng.random() < 0.7 else axis - rank)

    def function(self, probes: Sequence[Any], type_of: Any = None, statements: int = 2) -> tuple[str, str] | None:
        """``(name, text)`` of a function of such values, which may read others; ``type_of``: the type of its result."""
        name = self.fresh("f")
        arguments = [self.fresh("a") for _ in probes]
        inner = Writer(self.rng, {**self.space, **dict(zip(arguments, probes))}, [], self.depth - 1, self.counter)
        inner.names = [*self.names[-3:], *arguments]
        for _ in range(self.rng.randint(1, statements)):
            inner.statement()
        own = [n for n in [*arguments, *[n for n, _, _ in inner.lines]] if fits_type(inner.value(n), type_of)]
        if not own:
            return None
        last = ([n for n, _, _ in inner.lines if is_float(inner.value(n))] or own)[-1]
        result = inner.add(self.rng.choice(SAME_TYPE[:2] * 2 + SAME_TYPE[2:]).format(x=own[-1], last=last))
        if result is None or not fits_type(inner.value(result), type_of):
            return None
        lines = [line for _, _, text in inner.lines for line in text.split("\n")]
        body = "\n".join([f"    {line}" for line in [*lines, f"return {result}"]])
        return name, f"def {name}({', '.join(arguments)}):\n{body}\n"


def random_lane_program(seed: int, depth: int = 2) -> LaneProgram:
    """A program of 3 to 8 statements, with functions in them up to ``depth`` deep."""
    rng = Random(seed)
    dtype = rng.choice(["float64"] * 8 + ["float32", "bfloat16", "complex64"])
    kinds: list[Any] = [tuple(rng.sample(list(RAGGED), rng.randint(1, 2)))]
    if rng.random() < 0.3:
        kinds.append((rng.choice(["rows", "line"]),))
    kinds += rng.sample(list(DENSE), rng.randint(0, 2)) + rng.sample(list(SHARED), rng.randint(0, 1))
    numbers = np.random.default_rng(seed)
    space, lines, names = namespace(), [], []
    with np.errstate(all="ignore"):
        for i, kind in enumerate(kinds):
            parts = [kind] if isinstance(kind, str) else kind
            shapes = [({**DENSE, **SHARED}[k] if isinstance(kind, str) else (PROBE[i], *RAGGED[k])) for k in parts]
            values = [hnp.asarray(drawn(k, s, numbers, dtype)) for k, s in zip(parts, shapes)]
            name = argument_name(i, kind)
            space[name] = values[0] if isinstance(kind, str) else tuple(values)
            for j, value in enumerate([] if isinstance(kind, str) else values):
                space[f"{name}_{j}"] = value
                names.append(f"{name}_{j}")
                lines.append((names[-1], value.shape, f"{name}_{j} = {name}[{j}]"))
            if isinstance(kind, str):
                names.append(name)
                lines.append((name, values[0].shape, None))
        writer = Writer(rng, space, names, depth, [0])
        for _ in range(rng.randint(3, 8)):
            writer.statement()
    made = [name for name, _, _ in writer.lines]
    results = dict.fromkeys([*made[-1:], *(rng.sample(made, min(2, len(made))))])
    return LaneProgram(tuple(kinds), (*lines, *writer.lines), tuple(results) or (names[0],), dtype)
