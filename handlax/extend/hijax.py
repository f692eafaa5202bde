"""``handlax.extend.hijax``: primitives whose rules are methods, as JAX has them in ``jax.experimental.hijax``.

    class Double(HiPrimitive):
        def abstract_eval(self, x): return x, set()
        def to_lojax(self, x): return x + x

Their operands are arrays, as those of every operation here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.core.arrays import TYPE_RULES
from ..effects.programs.primitives import Primitive
from .ad import Zero, instantiate_zeros, is_undefined_primal, primitive_jvps, primitive_transposes
from .mlir import lower_fun, register_lowering

__all__ = [
    "AllowedEffects", "HiPrimitive", "Zero", "control_flow_allowed_effects", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]


class HiPrimitive(Primitive):
    """A primitive whose rules are methods: a subclass defines those that it has.

    ``abstract_eval`` gives the type of the result, or the list of types, and the effects; ``to_lojax`` is its meaning
    in other operations, ``impl`` that on known values, by default the same; ``jvp`` and ``transpose`` are as the rules
    in ``extend.ad``.

    >>> from handlax import grad
    >>> class Square(HiPrimitive):
    ...     def abstract_eval(self, x):
    ...         return x, set()
    ...     def to_lojax(self, x):
    ...         return x * x
    ...     def jvp(self, primals, tangents):
    ...         (x,), (dx,) = primals, tangents
    ...         return self.bind(x), 2 * x * dx
    >>> grad(Square("square").bind)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """

    to_lojax: Callable[..., Any]
    jvp: Callable[..., Any]
    transpose: Callable[..., Any]

    def __init__(self, name: str):
        super().__init__(name)
        own = {method for kind in type(self).__mro__ if kind is not Primitive for method in vars(kind)}
        if "to_lojax" in own:
            register_lowering(self, lower_fun(self.to_lojax, self.multiple_results))
        if own & {"impl", "to_lojax"}:
            self.def_impl(self.impl if "impl" in own else self.to_lojax)
        if "jvp" in own:
            primitive_jvps[self] = self.jvp
        if "transpose" in own:
            primitive_transposes[self] = self.transpose


class AllowedEffects:
    """The kinds of effects that may be performed in loops and branches: every effect may, by one law."""

    def add_type(self, kind: type) -> None:
        """State that effects of this kind may stand there, which changes nothing."""

    def contains(self, effect: object) -> bool:
        """Whether this effect may stand there."""
        return True


control_flow_allowed_effects = AllowedEffects()


def register_hitype(kind: type, rule: Callable[[Any], Any]) -> None:
    """From now on ``rule(x)`` is the type of instances of this class."""
    TYPE_RULES[kind] = rule
