"""The base class of distributions: parameters that are arrays, and the shapes and dtypes that follow from them.

    log_prob(sample(key, shape))    shape: (*shape, *batch_shape)

A distribution is a pytree whose leaves are its parameters: it can be an argument of ``vmap``, ``grad`` and ``scan``.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from .. import numpy as hnp
from ..effects.base.errors import MissingRule
from ..effects.core.arrays import as_array
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..effects.types.array_type import ArrayType, array_type
from ..effects.types.dtype_promotion import promote
from ..effects.types.dtypes import FLOATING, default_float, default_int

__all__ = ["Distribution", "Support"]


@dataclasses.dataclass(frozen=True, eq=False)
class Support:
    """The set of values of a distribution: from ``low`` to ``high``, bounds included, integers if ``discrete``."""

    name: str
    low: Any = -math.inf
    high: Any = math.inf
    discrete: bool = False


REAL = Support("real")
POSITIVE = Support("positive", 0.0)
UNIT = Support("unit interval", 0.0, 1.0)
COUNTS = Support("counts", 0, discrete=True)


class Distribution:
    """The base class of distributions, also of a user's: a frozen dataclass of parameters, registered as a pytree.

    A subclass defines ``sample(key, shape)`` and ``log_prob(x)``; a distribution of vectors also ``event_ranks``, the
    number of event dimensions of each parameter, and ``event_rank``, the number of a value's; one of integers
    ``discrete``.
    """

    discrete: ClassVar[bool] = False
    event_ranks: ClassVar[dict[str, int]] = {}
    event_rank: ClassVar[int] = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are not None, by name."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: x for name, x in fields.items() if x is not None}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The broadcast shape of the parameters, without event dimensions: one independent distribution for each
        element.
        """
        shapes = []
        for name, x in self.parameters.items():
            shape = type_of(x).shape
            shapes.append(shape[: len(shape) - self.event_ranks.get(name, 0)])
        return broadcast_shape(type(self).__name__, *shapes)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        if not self.event_rank:
            return ()
        return type_of(self.parameters[next(iter(self.event_ranks))]).shape[-self.event_rank :]

    @property
    def dtype(self) -> Any:
        """The dtype of values: the default integer if ``discrete``, else ``float_dtype``."""
        return default_int() if self.discrete else self.float_dtype

    @property
    def float_dtype(self) -> Any:
        """The promoted dtype of the parameters if it is floating and not weak, else the default float."""
        first, *others = [type_of(x) for x in self.parameters.values()]
        dtype, weak = first.dtype, first.weak
        for t in others:
            dtype, weak = promote(dtype, weak, t.dtype, t.weak)
        return dtype if dtype in FLOATING and not weak else default_float()

    def value_type(self, shape: tuple[int, ...] = ()) -> ArrayType:
        """The type of ``sample(key, shape)``."""
        return array_type((*shape, *self.batch_shape, *self.event_shape), self.dtype)

    @property
    def support(self) -> Support:
        """The set of values with positive density."""
        return REAL

    @property
    def values(self) -> Any:
        """All values of a finite distribution, in order, along a first axis; None for an infinite one."""
        return None

    @property
    def mean(self) -> Any:
        raise self._undefined("mean")

    @property
    def variance(self) -> Any:
        raise self._undefined("variance")

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Values drawn from a key, of shape ``(*shape, *batch_shape, *event_shape)``."""
        raise self._undefined("sample")

    def log_prob(self, x: Any) -> Any:
        """The logarithm of the density, or of the probability, of each value; -inf outside of the support."""
        raise self._undefined("log_prob")

    def _undefined(self, name: str) -> MissingRule:
        return MissingRule(f"{type(self).__name__}: it has no {name}.")


def type_of(x: Any) -> ArrayType:
    """The type of a parameter; a type stands for itself."""
    return x if isinstance(x, ArrayType) else as_array(x).type


def inside(support: Support, x: Any) -> Any:
    """Whether values are in a support, elementwise."""
    x = hnp.asarray(x)
    within = x >= support.low
    if not (isinstance(support.high, float) and math.isinf(support.high)):
        within = within & (x <= support.high)
    return within & (x == hnp.floor(x)) if support.discrete and x.dtype.kind == "f" else within
