"""Handlers that draw sample sites, and that change their log-probability: seed, block, mask, scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .. import numpy as hnp
from ..effects.base.errors import BadArgument
from ..effects.base.wrapping import wraps
from ..effects.core.arrays import as_array, perform
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import handler
from ..interpreters.library.effectful.random_streams import SEED, FreshKey, Stream, seeding, start
from .sites import DRAWN, Sample, SiteParts, need_open_sites, perform_site

__all__ = ["block", "mask", "scale", "seed"]


def _draw(stream: Stream, op: Any, *leaves: Any) -> tuple[Stream, Any]:
    """The clause of ``seed``: a draw with a key from the stream, or the site's own value."""
    parts = op.parts(leaves)
    if op.kind != DRAWN:
        return stream, parts.value
    stream, key = stream.next(op.path)
    return stream, parts.dist.sample(key, op.shape)


DRAWING = SEED | handler({Sample: _draw})


def seed(f: Callable[..., Any], key: Any) -> Callable[..., Any]:
    """``f`` with its sample sites drawn, and its fresh keys derived, from a key.

        seed(f, k)(*args) == seed(jit(f), k)(*args)

    The key of a sample site is derived from its name: adding a site changes no other draw. In loops, lanes and plates
    all draws are distinct. It is the outermost handler of a model, ``seed(trace(condition(f, values)), key)``, inside
    ``grad``.

    Raises: BadArgument: ``key`` is not one key.

    >>> from handlax import probability as hp, random
    >>> coin = lambda: hp.sample("coin", hp.Bernoulli(0.5), shape=(4,))
    >>> seed(coin, random.key(1))()
    Array([1, 1, 0, 1], dtype=int32)
    """
    drawn = seeding(DRAWING, f, start(key))
    drawn.answers_sites = True  # type: ignore[attr-defined]
    return drawn


def block(f: Callable[..., Any], hide: Iterable[str] | Callable[[str], bool] | None = None) -> Callable[..., Any]:
    """``f`` with sample sites hidden from outer handlers: they are drawn with fresh keys, and have no log-probability.

    Args:
        hide: their names, or a predicate on names; by default all sites are hidden.
    """
    need_open_sites("block", f)
    names = None if hide is None or callable(hide) else _names(hide)
    hidden = hide if callable(hide) else lambda name: names is None or name in names

    def clause(op: Any, *leaves: Any) -> Any:
        if not hidden(op.label):
            return perform(op, *leaves)
        parts = op.parts(leaves)
        return parts.dist.sample(perform(FreshKey(op.path)), op.shape) if op.kind == DRAWN else parts.value

    return _without_state(clause, f)


def _names(hide: Iterable[str]) -> frozenset[str]:
    """The names to hide. Raises BadArgument: a single string."""
    if isinstance(hide, str):
        raise BadArgument(f"block: hide must be a list of names, got {hide!r}.", hint=f"hide=[{hide!r}].")
    return frozenset(hide)


def mask(f: Callable[..., Any], where: Any) -> Callable[..., Any]:
    """``f`` with the log-probability of its sample sites set to 0 where ``where`` is False; values do not change.

    Shapes: ``where`` broadcasts against the log-probability of each site.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(mask(lambda: hp.observe("x", hp.Normal(), 0.0), False))()[0])
    0.0
    """
    need_open_sites("mask", f)
    condition = as_array(where)
    if condition.type.dtype.kind != "b":
        raise BadArgument(f"mask: where must be a bool, or an array of bools, got {condition.type}.")
    both = lambda mask: condition if mask is None else hnp.logical_and(mask, condition)
    return _with_parts(lambda parts: replace(parts, mask=both(parts.mask)), f)


def scale(f: Callable[..., Any], by: Any) -> Callable[..., Any]:
    """``f`` with the log-probability of its sample sites multiplied by ``by``, such as data size over batch size.

    >>> from handlax import probability as hp
    >>> float(hp.log_density(scale(lambda: hp.observe("x", hp.Normal(), 0.0), 2.0))()[0])
    -1.8378770351409912
    """
    need_open_sites("scale", f)
    factor = hnp.asarray(by)
    product = lambda scale: factor if scale is None else scale * factor
    return _with_parts(lambda parts: replace(parts, scale=product(parts.scale)), f)


def _with_parts(change: Callable[[SiteParts], SiteParts], f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with the parts of each sample site changed before outer handlers see the site."""

    def clause(op: Any, *leaves: Any) -> Any:
        return perform_site(op.label, op.kind, op.shape, change(op.parts(leaves)))

    return _without_state(clause, f)


def _without_state(clause: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` under a handler of sample sites that has no state."""
    return wraps(f)(handle(handler({Sample: clause}))(f))
