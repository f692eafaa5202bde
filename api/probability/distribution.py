"""What a distribution is: parameters that are arrays, and what follows from them.

    log_prob(sample(key, shape))    shape: (*shape, *batch_shape)

A distribution is a node of a tree; its leaves are its parameters: ``vmap``, ``grad`` and ``scan`` take it as it is.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from .. import numpy as hnp
from ..effects.arrays import lift
from ..effects.broadcasting import broadcast_shape
from ..effects.dtypes import FLOATING, default_float, default_int
from ..effects.errors import MissingRule
from ..effects.promotion import promote
from ..effects.types import ArrayType, array_type


@dataclasses.dataclass(frozen=True, eq=False)
class Support:
    """The values that a distribution gives: those from ``low`` to ``high``, bounds included."""

    name: str
    low: Any = -math.inf
    high: Any = math.inf
    discrete: bool = False


REAL = Support("real")
POSITIVE = Support("positive", 0.0)
UNIT = Support("unit interval", 0.0, 1.0)
COUNTS = Support("counts", 0, discrete=True)


class Distribution:
    """A base for distributions of the user's own: a frozen dataclass of parameters, registered as a node.

    It must say ``sample(key, shape)`` and ``log_prob(x)``; for vectors also ``event_ranks``, how many of the last
    dimensions of each parameter belong to one value; for integers ``discrete``.
    """

    discrete: ClassVar[bool] = False
    event_ranks: ClassVar[dict[str, int]] = {}
    event_rank: ClassVar[int] = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were given, by name."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: x for name, x in found.items() if x is not None}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of so many distributions: to which the parameters broadcast."""
        shapes = [_lead(type_of(x).shape, self.event_ranks.get(name, 0)) for name, x in self.parameters.items()]
        return broadcast_shape(type(self).__name__, *shapes)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        if not self.event_rank:
            return ()
        name = next(iter(self.event_ranks))
        return type_of(self.parameters[name]).shape[-self.event_rank :]

    @property
    def dtype(self) -> Any:
        """The dtype of values: that of the parameters, where they are floats."""
        return default_int() if self.discrete else self.float_dtype

    @property
    def float_dtype(self) -> Any:
        types = [type_of(x) for x in self.parameters.values()]
        found = types[0]
        for t in types[1:]:
            dtype, weak = promote(found.dtype, found.weak, t.dtype, t.weak)
            found = array_type((), dtype, weak)
        return found.dtype if found.dtype in FLOATING and not found.weak else default_float()

    def value_type(self, shape: tuple[int, ...] = ()) -> ArrayType:
        """The type of ``sample(key, shape)``."""
        return array_type((*shape, *self.batch_shape, *self.event_shape), self.dtype)

    @property
    def support(self) -> Support:
        return REAL

    @property
    def values(self) -> Any:
        """All values there are, in order, along a first axis; None where they are too many to list."""
        return None

    @property
    def mean(self) -> Any:
        raise self._unsaid("mean")

    @property
    def variance(self) -> Any:
        raise self._unsaid("variance")

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Values drawn from a key, of shape ``(*shape, *batch_shape, *event_shape)``."""
        raise self._unsaid("sample")

    def log_prob(self, x: Any) -> Any:
        """The logarithm of the density, or of the probability, of each value; -inf outside of the support."""
        raise self._unsaid("log_prob")

    def _unsaid(self, name: str) -> MissingRule:
        return MissingRule(f"{type(self).__name__}: it has no {name}.")


def type_of(x: Any) -> ArrayType:
    """The type of a parameter, which may be a type already."""
    return x if type(x) is ArrayType else lift(x).type


def _lead(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return shape[: len(shape) - rank] if rank else shape


def inside(support: Support, x: Any) -> Any:
    """Whether values lie in a support."""
    x = hnp.asarray(x)
    within = x >= support.low
    if _bounded(support.high):
        within = within & (x <= support.high)
    return within & (x == hnp.floor(x)) if support.discrete and x.dtype.kind == "f" else within


def _bounded(high: Any) -> bool:
    return not (isinstance(high, float) and math.isinf(high))
