"""Modules of distributions, whose functions follow from those of a standard variable by location and scale.

    logpdf(x, loc, scale) == standard(z) - log(scale)  where  z = (x - loc) / scale,  and -inf outside of the support
    cdf(x, loc, scale)    == standard(z),  ppf(q, loc, scale) == loc + scale * standard(q),  pdf == exp(logpdf)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, NamedTuple

from ... import numpy as hnp
from ...effects.base.wrapping import renamed
from ...effects.core.arrays import as_array
from ...effects.operations.elementwise.conversion import convert
from ...interpreters.core.eager_programs import eager_program
from ...numpy.arrays.argument_conversion import inexact_together
from ..special import formulas

# The values of each cumulative function below and above the support.
CUMULATIVE = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-hnp.inf, 0.0), "logsf": (0.0, -hnp.inf)}
SENTENCES = {
    "pdf": "The probability density.", "logpdf": "The logarithm of the probability density; -inf where that is 0.",
    "pmf": "The probability of ``k``.", "logpmf": "The logarithm of the probability of ``k``; -inf where that is 0.",
    "cdf": "The probability of values up to ``{0}``.", "logcdf": "``log(cdf({0}))``, without underflow.",
    "sf": "The probability of values beyond ``{0}``.", "logsf": "``log(sf({0}))``, without underflow.",
    "ppf": "The inverse of ``cdf``; NaN outside of [0, 1].", "isf": "The inverse of ``sf``; NaN outside of [0, 1].",
    "entropy": "The expectation of ``-logpmf``.",
}


class StandardRange(NamedTuple):
    """The support [low, high] of a standard variable, its integers alone if ``whole``, and a value ``inner`` inside.

    ``low``, ``high`` and ``inner`` are numbers or functions of the shape parameters.
    """

    low: Any
    high: Any
    inner: Any
    whole: bool = False

    def read(self, z: Any, shapes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Masks of ``z`` below and above the support, and ``z`` with ``inner`` in place of values outside."""
        low, high, inner = (end(*shapes) if callable(end) else end for end in self[:3])
        below, above = z < low, z > high
        outside = (below | above | (z != hnp.floor(z))) if self.whole else below | above
        return below, above, hnp.where(outside & ~hnp.isnan(z), inner, z)


REALS = StandardRange(-hnp.inf, hnp.inf, 0.0)
POSITIVE = StandardRange(0.0, hnp.inf, 1.0)
UNIT = StandardRange(0.0, 1.0, 0.5)
COUNTS = StandardRange(0.0, hnp.inf, 0.0, whole=True)


def distribution(
    name: str, doc: str, *, shapes: str = "", trailing: str = "loc scale", support: StandardRange = REALS,
    valid: Callable[..., Any] | None = None, arguments: dict[str, str] | None = None, weak: str = "",
    **standard: Callable[..., Any],
) -> ModuleType:
    """The module of a distribution, importable under its name.

    Args:
        shapes: the names of the shape parameters. trailing: the names "loc", "scale" of which the functions have both,
            one or none.
        valid: shape parameters -> a mask, true where they are in their domain; all functions are NaN elsewhere, and
            where ``scale`` is not positive.
        arguments: kind -> the name of the first argument, where that is not ``x``, ``k`` or ``q``; a colon and the
            trailing parameters follow where the kind has others than ``trailing``.
        weak: the kinds whose results are weakly typed for an array of integers among Python numbers, as in JAX.
        standard: kind -> the function of a standard variable and the shape parameters. ``logpdf`` or ``logpmf`` gives
            ``pdf`` or ``pmf`` too.
    """
    module = module_from_spec(ModuleSpec(f"{__package__}.{name}", None))
    module.__doc__ = doc
    words = shapes.split()
    for kind, f in standard.items():
        first, own, rest = (arguments or {}).get(kind, "").partition(":")
        first = first or ("q" if kind in ("ppf", "isf") else "k" if support.whole else "x")
        needed, optional = [first, *[w for w in words if w != first]], (rest if own else trailing).split()
        for public in (kind, kind.removeprefix("log")) if kind in ("logpdf", "logpmf") else (kind,):
            rule = _rule(public, f, support, len(words), "loc" in optional, "scale" in optional)
            rule = _in_domain(rule, None if first in words else valid, len(words), "scale" in optional)
            setattr(module, public, _function(module, public, needed, optional, rule, public in weak.split()))
    sys.modules[module.__name__] = module
    return module


def _rule(kind: str, f: Callable[..., Any], support: StandardRange, count: int, moved: bool, scaled: bool) -> Any:
    """The function of one kind, such as ``cdf``, on promoted arrays, from the standard variable's function ``f``.

    ``count`` shape parameters follow the first argument, then ``loc`` if ``moved``, then ``scale`` if ``scaled``.
    """

    def separate(rest: Sequence[Any]) -> tuple[Any, Any, Any]:
        return rest[:count], rest[count] if moved else 0, rest[-1] if scaled else 1

    def standardised(x: Any, loc: Any, scale: Any) -> Any:
        return (x - loc) / scale if scaled else x - loc if moved else x

    def density(x: Any, *rest: Any) -> Any:
        shapes, loc, scale = separate(rest)
        z = standardised(x, loc, scale)
        _, _, safe = support.read(z, shapes)
        y = f(safe, *shapes) - hnp.log(scale) if scaled else f(safe, *shapes)
        y = y if support is REALS else hnp.where((safe != z) & ~hnp.isnan(z), -hnp.inf, y)
        return y if kind.startswith("log") else hnp.exp(y)

    def cumulative(x: Any, *rest: Any) -> Any:
        shapes, loc, scale = separate(rest)
        z = standardised(x, loc, scale)
        below, above, safe = support.read(hnp.floor(z) if support.whole else z, shapes)
        lowest, highest = CUMULATIVE[kind]
        y = f(safe, *shapes)
        return y if support is REALS else hnp.where(below, lowest, hnp.where(above, highest, y))

    def quantile(q: Any, *rest: Any) -> Any:
        shapes, loc, scale = separate(rest)
        inside = (q >= 0) & (q <= 1)
        y = f(hnp.where(inside, q, 0.5), *shapes) * scale + loc
        return y + q * hnp.where(inside, 0, hnp.nan)  # whose derivative is NaN outside, too

    densities = dict.fromkeys(("pdf", "logpdf", "pmf", "logpmf"), density)
    laws = densities | dict.fromkeys(CUMULATIVE, cumulative) | dict.fromkeys(("ppf", "isf"), quantile)
    return laws.get(kind, f)


def _in_domain(rule: Callable[..., Any], valid: Callable[..., Any] | None, count: int, scaled: bool) -> Any:
    """``rule``, with NaN where ``valid`` of the ``count`` shape parameters is false or, if ``scaled``, scale <= 0."""

    @formulas.free_promotion
    def function(x: Any, *rest: Any) -> Any:
        y = rule(x, *rest)
        inside = valid(*rest[:count]) if valid is not None else True
        inside = inside & (rest[-1] > 0) if scaled else inside
        return y if inside is True else hnp.where(inside, y, hnp.nan)

    return function


def _strong_beside_arrays(y: Any, given: Sequence[Any]) -> Any:
    """``y``, strongly typed if one of the values ``given`` is a strongly typed array of rank > 0."""
    types = [as_array(x).type for x in given]
    return convert(y, y.type.dtype) if any([t.shape and not t.weak for t in types]) else y


def _function(
    module: ModuleType, kind: str, needed: list[str], rest: list[str], rule: Callable[..., Any], weak: bool
) -> Any:
    """The public function ``module.kind(*needed, *rest)``: ``rule`` on its arguments, promoted and broadcast."""
    name = f"{module.__name__.rpartition('.')[2]}.{kind}"
    defaults = {"loc": 0, "scale": 1}
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(word, either) for word in needed]
    parameters += [inspect.Parameter(word, either, default=defaults[word]) for word in rest]
    signature = inspect.Signature(parameters)

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        y = rule(*inexact_together(name, *bound.args))
        return y if weak or not y.type.weak else _strong_beside_arrays(y, bound.args[: len(needed)])

    function.__signature__ = signature  # type: ignore[attr-defined]
    renamed(function, kind)
    function.__module__ = module.__name__
    function.__doc__ = SENTENCES[kind].format(needed[0])
    return eager_program(function)
