"""vmap over a registered container, an array with names of its axes: called eagerly, and traced."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from jax.interpreters import batching

import handlax

from . import programs
from .sides import OURS, THEIRS, Side, assert_agree, renewed, seeded
from .timing import Prepare, Row, timed

LENGTH = 100


class Named:
    def __init__(self, data: Any, names: tuple[str, ...]):
        self.data, self.names = data, names


@dataclasses.dataclass(frozen=True)
class Name:
    name: str


def to_elt(cont: Any, get_idx: Any, x: Named, spec: Name) -> Named:
    k = x.names.index(spec.name)
    return Named(cont(x.data, k), x.names[:k] + x.names[k + 1 :])


def from_elt(cont: Any, axis_size: Any, y: Named, spec: Name) -> Named:
    return Named(cont(axis_size, y.data, 0), (spec.name, *y.names))


@functools.cache
def registered() -> None:
    """The container, on both sides."""
    for register in (handlax.register_vmappable, batching.register_vmappable):
        register(Named, Name, int, to_elt, from_elt, None)


def mapped(side: Side, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of an array, mapped over the container that holds it."""
    g = side.lib.vmap(lambda x: Named(f(x.data), x.names), Name("b"), Name("b"), axis_size=8)
    return lambda data: g(Named(data, ("a", "b"))).data


def eager(side: Side) -> Prepare:
    registered()
    sin, x = side.np.sin, side.array(seeded(4, 8))

    def prepare() -> Callable[[], Any]:
        return lambda: side.ready(mapped(side, lambda x: sin(x) * x)(x))

    return prepare


def traced(side: Side) -> Prepare:
    registered()
    f, x = programs.chain_lax(side.lax, LENGTH), side.array(seeded(4, 8))

    def prepare() -> Callable[[], Any]:
        g = mapped(side, renewed(f))
        return lambda: side.trace(g, x)

    return prepare


def evaluates_alike(ours: Any, theirs: Any) -> None:
    """The traced functions give the same values."""
    assert len(ours.ops) >= LENGTH and len(theirs.jaxpr.eqns) >= LENGTH
    assert_agree(*[eager(side)()() for side in (OURS, THEIRS)])


ROWS = [
    Row("eager vmap over a container, warm", 0.10, timed(eager), 0.04),
    Row("trace of vmap over a container, 100 operations", 0.15, timed(traced, cold=True, check=evaluates_alike), 0.10),
]
