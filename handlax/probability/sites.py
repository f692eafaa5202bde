"""Sample sites: named random or observed values of a program. They are effects, answered by handlers such as ``seed``.

    x = sample("x", Normal(0.0, 1.0))              a value that is random
    observe("y", Normal(x, 1.0), 0.3)              a value that is known
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, NotDifferentiable, ShapeMismatch
from ..effects.base.wrapping import name_of
from ..effects.core.arrays import as_array, perform
from ..effects.core.operation import effect
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import canonical_shape
from ..effects.trees import pytrees
from ..effects.trees.registration import frozen_node
from ..effects.types.array_type import ArrayType
from ..effects.types.dtypes import FLOATING
from ..interpreters.library.effectful.random_streams import Keyed
from .distribution import Distribution
from .univariate import Factor

if TYPE_CHECKING:
    from ..effects.trees.cpp_pytrees import PyTreeDef

__all__ = ["Sample", "factor", "observe", "sample"]

DRAWN, GIVEN, OBSERVED = "drawn", "given", "observed"


@frozen_node
class SiteParts:
    """The operands of a sample site: a distribution; and optionally a value, a mask and a scale of its log-probability.
    """

    dist: Any
    value: Any = None
    mask: Any = None
    scale: Any = None

    def log_prob(self, value: Any) -> Any:
        """The log-probability of a value, 0 unless ``mask`` is True, times ``scale``."""
        log_prob = self.dist.log_prob(value)
        if self.mask is not None:
            log_prob = hnp.where(self.mask, log_prob, 0.0)
        return log_prob if self.scale is None else log_prob * self.scale


# a value of a distribution: drawn, given or observed
@effect(vmap="per_lane")
class Sample(Keyed):
    """The effect of ``sample`` and ``observe``: a named value of a distribution.

    Its operands are the leaves of a ``SiteParts``. A handler draws the value, records it, or replaces it.
    """

    label: str
    tree: PyTreeDef
    kind: str = DRAWN
    shape: tuple[int, ...] = ()

    def result_type(op, *leaves):
        parts = op.parts(leaves)
        if parts.value is not None:
            return parts.value if isinstance(parts.value, ArrayType) else parts.value.type
        return parts.dist.value_type(op.shape)

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"sample: the parameters of {op.label!r} have a tangent, and no handler inside draws it.",
            hint="differentiate outside: grad(seed(f, key)), grad of log_density(f, values).",
        )

    def parts(op, leaves: Any) -> Any:
        """The ``SiteParts`` of these operands."""
        return pytrees.unflatten(op.tree, leaves)

    @property
    def remedy(op) -> str:
        return f"draw {op.label!r}, seed(f, key)(x), or give it a value, condition(f, {{{op.label!r}: value}})."

    def __str__(op):
        return f"sample({op.label!r})"

    @property
    def path(op) -> tuple[str, ...]:
        """The name from which the site's key is derived."""
        return ("sample", op.label)


def perform_site(label: str, kind: str, shape: tuple[int, ...], parts: SiteParts) -> Any:
    """Perform a sample site; returns its value."""
    leaves, tree = pytrees.flatten(parts)
    return perform(Sample(label, tree, kind, shape), *leaves)


def sample(name: str, dist: Any, obs: Any = None, *, shape: Any = ()) -> Any:
    """A value of a distribution, under a name that is unique in the program.

    Handlers determine it: ``seed`` draws it, ``condition`` and ``substitute`` set it, ``trace`` records it. In ``scan``
    and ``vmap`` there is one value for each iteration and each lane.

    Shapes: ``(*shape, *dist.batch_shape, *dist.event_shape)``.
    Args:
        obs: the value, if it is observed.
        shape: the shape of independent draws.

    Raises: UnhandledEffect: no handler answers it. BadArgument: ``dist`` is no distribution.

    >>> from handlax import probability as hp, random
    >>> hp.seed(lambda: hp.sample("x", hp.Normal(0.0, 1.0), shape=(2,)), random.key(0))().shape
    (2,)
    """
    if not isinstance(name, str):
        raise BadArgument(f"sample: the name must be a string, got {name!r}.", hint='sample("x", Normal(0.0, 1.0)).')
    if not (hasattr(dist, "log_prob") and hasattr(dist, "value_type")):
        raise BadArgument(f"sample: {name!r} needs a distribution, got {type(dist).__name__}.")
    if obs is None:
        return perform_site(name, DRAWN, canonical_shape(shape, "sample"), SiteParts(dist))
    return perform_site(name, OBSERVED, (), SiteParts(dist, fit_value("sample", name, dist, (), obs, wider=True)))


def observe(name: str, dist: Any, value: Any) -> Any:
    """An observed value: ``sample(name, dist, obs=value)``. Returns the value."""
    return sample(name, dist, value)


def factor(name: str, log_weight: Any) -> None:
    """Add ``log_weight`` to the log-density of the program.

    >>> from handlax import probability as hp
    >>> hp.log_density(lambda: hp.factor("twice", 0.5))()[0]
    Array(0.5, dtype=float32)
    """
    weight = hnp.asarray(log_weight)
    perform_site(name, OBSERVED, (), SiteParts(Factor(weight), hnp.zeros_like(weight, dtype="int32")))


def fit_value(who: str, label: str, dist: Distribution, shape: tuple[int, ...], value: Any, wider: bool = False) -> Any:
    """A value converted to the dtype of the site's distribution, after a check of its shape.

    An observation, ``wider``, may have leading dimensions and keeps a floating dtype of its own.

    Raises: BadArgument: a float for a discrete site. ShapeMismatch: it has another shape.
    """
    expected = dist.value_type(shape)
    x = as_array(value)
    floats = x.type.dtype in FLOATING
    if floats and expected.dtype not in FLOATING:
        raise BadArgument(
            f"{who}: the values of {label!r} are integers, got {x.type}.", hint="convert with astype('int32')."
        )
    broadcast = hnp.broadcast_shapes(x.type.shape, expected.shape) if wider else expected.shape
    if x.type.shape != broadcast:
        raise ShapeMismatch(
            f"{who}: the value of {label!r} must have the shape {expected.shape}, got {x.type}.",
            hint="a site in a loop, in lanes or in a plate has one value for each of them, stacked as a result is.",
        )
    return convert(x, x.type.dtype if floats and wider and not x.type.weak else expected.dtype)


def need_open_sites(who: str, f: Any) -> None:
    """Check that ``f`` leaves its sample sites to outer handlers, unlike ``seed(f, key)``. Raises: BadArgument."""
    if getattr(f, "answers_sites", False):
        name = name_of(f)
        raise BadArgument(
            f"{who}: {name} answers its sites itself, handlers outside it see none.",
            hint=f"the order of handlers is their meaning: put {who} inside, as in seed({who}(f, ...), key).",
        )
