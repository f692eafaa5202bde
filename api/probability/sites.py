"""Sites: the places of a program where something is random, or observed. They say what; handlers say how.

    x = sample("x", Normal(0.0, 1.0))              a value that is random
    observe("y", Normal(x, 1.0), 0.3)              a value that is known
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import numpy as hnp
from ..effects import trees
from ..effects.arrays import lift, perform
from ..effects.conversion import convert
from ..effects.dtypes import FLOATING
from ..effects.errors import BadArgument, NotDifferentiable, ShapeMismatch
from ..effects.operations import effect
from ..effects.shapes import canonical_shape
from ..effects.treedefs import TreeDef
from ..effects.treenodes import register_dataclass
from ..effects.types import ArrayType
from .distribution import Distribution
from .univariate import Factor

DRAWN, GIVEN, OBSERVED = "drawn", "given", "observed"


@register_dataclass
@dataclass(frozen=True, eq=False)
class Parts:
    """What a site is made of: its distribution; its value, where it has one; what its log-probability counts."""

    dist: Any
    value: Any = None
    mask: Any = None
    scale: Any = None

    def log_prob(self, value: Any) -> Any:
        """The log-probability of a value as it counts: times the scale, 0 where it is masked."""
        found = self.dist.log_prob(value)
        if self.mask is not None:
            found = hnp.where(self.mask, found, 0.0)
        return found if self.scale is None else found * self.scale


# a value of this distribution: drawn, unless it is given or observed
@effect(vmap="per_lane")
class Sample:
    """The effect that ``sample`` and ``observe`` perform: the value of a distribution under a name.

    Its operands are the leaves of ``tree``: the distribution, and the value where there is one. A handler draws it,
    records it, or answers with a value of its own.
    """

    label: str
    tree: TreeDef
    kind: str = DRAWN
    shape: tuple[int, ...] = ()

    def result_type(op, *leaves):
        parts = op.parts(leaves)
        if parts.value is not None:
            return parts.value if type(parts.value) is ArrayType else parts.value.type
        return parts.dist.value_type(op.shape)

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"sample: the parameters of {op.label!r} have a tangent, and nobody inside says how it is drawn.",
            hint="derivatives lie outside: grad(seed(f, key)), grad of log_density(f, values).",
        )

    def parts(op, leaves: Any) -> Any:
        return trees.unflatten(op.tree, leaves)

    @property
    def remedy(op) -> str:
        return f"draw {op.label!r}, seed(f, key)(x), or give it a value, condition(f, {{{op.label!r}: value}})."

    def __str__(op):
        return f"sample({op.label!r})"

    @property
    def path(op) -> tuple[str, ...]:
        """The name of its key."""
        return ("sample", op.label)


def perform_site(label: str, kind: str, shape: tuple[int, ...], parts: Parts) -> Any:
    """Perform a site; gives its value."""
    leaves, tree = trees.flatten(parts)
    return perform(Sample(label, tree, kind, shape), *leaves)


def sample(name: str, dist: Any, obs: Any = None, *, shape: Any = ()) -> Any:
    """A value of a distribution, under a name that no other site of the program has.

    Handlers decide what it is: ``seed`` draws it, ``condition`` and ``substitute`` give it, ``trace`` writes it down.
    In ``scan`` and ``vmap`` it is one value for each run and each lane.

    Shapes: ``(*shape, *dist.batch_shape, *dist.event_shape)``.
    Args:
        obs: where it is known, its value: then the site is an observation.
        shape: of so many independent values.

    Raises: UnhandledEffect: no handler says what it is. BadArgument: ``dist`` is no distribution.

    >>> from handlax import probability as hp, random
    >>> hp.seed(lambda: hp.sample("x", hp.Normal(0.0, 1.0), shape=(2,)), random.key(0))().shape
    (2,)
    """
    if not isinstance(name, str):
        raise BadArgument(f"sample: a site has a name, a string, got {name!r}.", hint='sample("x", Normal(0.0, 1.0)).')
    if not (hasattr(dist, "log_prob") and hasattr(dist, "value_type")):
        raise BadArgument(f"sample: {name!r} needs a distribution, got {type(dist).__name__}.")
    if obs is None:
        return perform_site(name, DRAWN, canonical_shape(shape, "sample"), Parts(dist))
    return perform_site(name, OBSERVED, (), Parts(dist, fitting("sample", name, dist, (), obs, wider=True)))


def observe(name: str, dist: Any, value: Any) -> Any:
    """A value that is known: ``sample(name, dist, obs=value)``. Gives the value."""
    return sample(name, dist, value)


def factor(name: str, log_weight: Any) -> None:
    """Let the log-density of the program count ``log_weight`` more.

    >>> from handlax import probability as hp
    >>> hp.log_density(lambda: hp.factor("twice", 0.5))()[0]
    Array(0.5, dtype=float32)
    """
    weight = hnp.asarray(log_weight)
    perform_site(name, OBSERVED, (), Parts(Factor(weight), hnp.zeros_like(weight, dtype="int32")))


def fitting(who: str, label: str, dist: Distribution, shape: tuple[int, ...], value: Any, wider: bool = False) -> Any:
    """A value as one of this site: of the dtype of its distribution, and of its shape, or one that has more in front.

    Raises: BadArgument, ShapeMismatch: it is none.
    """
    made = dist.value_type(shape)
    x = lift(value)
    floats = x.type.dtype in FLOATING
    if floats and made.dtype not in FLOATING:
        raise BadArgument(
            f"{who}: the values of {label!r} are integers, got {x.type}.", hint="convert with astype('int32')."
        )
    whole = hnp.broadcast_shapes(x.type.shape, made.shape) if wider else made.shape
    if x.type.shape != whole:
        raise ShapeMismatch(
            f"{who}: the value of {label!r} must have the shape {made.shape}, got {x.type}.",
            hint="a site in a loop, in lanes or in a plate has one value for each run, along a first axis.",
        )
    return convert(x, x.type.dtype if floats and wider and not x.type.weak else made.dtype)


def unanswered(who: str, f: Any) -> None:
    """Raises BadArgument where a function answers its sites itself: nothing is left for the handlers around it."""
    if getattr(f, "answers_sites", False):
        name = getattr(f, "__name__", "f")
        raise BadArgument(
            f"{who}: {name} answers its sites itself, outside of it none is seen.",
            hint=f"the order of handlers is their meaning: {who} lies inside, as in seed({who}(f, ...), key).",
        )
