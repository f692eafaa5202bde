"""The definition of every collective in one line of NumPy, and random calls of them over random axes."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np

import handlax as hx
from handlax import lax


def prefix(f, start):
    def of(x, g, p, reverse, exclusive):
        part = x[g][p + exclusive :] if reverse else x[g][: p + 1 - exclusive]
        return f(part, 0, initial=start)

    return of


def exchanged(x, g, p, s, c, tiled):
    if tiled:
        return np.concatenate([np.split(v, len(g), s)[p] for v in x[g]], c)
    return np.stack([np.moveaxis(v, s, 0)[p] for v in x[g]], c)


# x has the lanes of the axes in dimension 0; g lists the lanes of my group, and p is my position in it.
DEFINITION = {
    "psum": lambda x, g, p: x[g].sum(0),
    "pmean": lambda x, g, p: x[g].mean(0),
    "pmax": lambda x, g, p: x[g].max(0),
    "pmin": lambda x, g, p: x[g].min(0),
    "pprod": lambda x, g, p: x[g].prod(0),
    "pargmax": lambda x, g, p: x[g].argmax(0),
    "pargmin": lambda x, g, p: x[g].argmin(0),
    "pbroadcast": lambda x, g, p, source: x[g][source],
    "ppermute": lambda x, g, p, pairs: sum((x[s] for s, t in pairs if t == g[p]), np.zeros_like(x[0])),
    "pshuffle": lambda x, g, p, source: x[g][source[p]],
    "all_gather": lambda x, g, p, d, tiled: np.concatenate(x[g], d) if tiled else np.stack(x[g], d),
    "psum_scatter": lambda x, g, p, d, tiled: (
        np.split(x[g].sum(0), len(g), d) if tiled else np.moveaxis(x[g].sum(0), d, 0)
    )[p],
    "all_to_all": exchanged,
    "pswapaxes": lambda x, g, p, d: exchanged(x, g, p, d, d, False),
    "axis_index": lambda x, g, p: np.asarray(p),
    "pcumsum": prefix(np.add.reduce, 0),
    "pcumprod": prefix(np.multiply.reduce, 1),
    "pcummax": prefix(np.maximum.reduce, -np.inf),
    "pcummin": prefix(np.minimum.reduce, np.inf),
    "pgather": lambda x, g, p, index: x[g][index],
}
ANY_SIZES = {"psum", "pmean", "pmax", "pmin", "pprod", "pargmax", "pargmin", "axis_index",
             "pcumsum", "pcumprod", "pcummax", "pcummin"}  # fmt: skip
WITHOUT_GROUPS = {"ppermute", "pshuffle", "pgather"}


def partition(rng, total, equal):
    """Random groups of the lanes, of equal sizes or any."""
    lanes = rng.permutation(total).tolist()
    if equal:
        size = int(rng.choice([d for d in range(1, total + 1) if total % d == 0]))
        return [lanes[i : i + size] for i in range(0, total, size)]
    cuts = sorted(rng.permutation(np.arange(1, total))[: rng.integers(0, total)].tolist()) if total > 1 else []
    return [lanes[a:b] for a, b in itertools.pairwise([0, *cuts, total])]


def random_call(rng, name, total):
    """The shape of a lane, the arguments after the names, and the groups of a random call over ``total`` lanes."""
    groups = None
    if name not in WITHOUT_GROUPS and rng.random() < 0.5:
        groups = partition(rng, total, name not in ANY_SIZES)
    size = total if groups is None else len(groups[0])
    shape = rng.integers(1, 4, rng.integers(0, 3)).tolist()
    if name == "pbroadcast":
        return shape, (int(rng.integers(size)),), groups
    if name in ("ppermute", "pshuffle"):
        source, target = rng.permutation(total).tolist(), rng.permutation(total).tolist()
        pairs = list(zip(source, target))[: rng.integers(total + 1)]
        return shape, (pairs if name == "ppermute" else source,), None
    if name == "pgather":
        return shape, (rng.integers(total, size=(2,)),), None
    if name.startswith("pcum"):
        return shape, (bool(rng.random() < 0.5), bool(rng.random() < 0.5)), groups
    if name in ("all_gather", "psum_scatter", "all_to_all", "pswapaxes"):
        tiled, rank = bool(rng.random() < 0.5) and name != "pswapaxes", len(shape) + 1
        shape = rng.integers(1, 4, rank).tolist()
        d, c = (int(rng.integers(-rank, rank)) for _ in range(2))
        if name == "all_gather":
            return shape, (d if tiled else int(rng.integers(-rank - 1, rank + 1)), tiled), groups
        shape[d] = size * (int(rng.integers(1, 3)) if tiled else 1)
        return shape, {"all_to_all": (d, c, tiled), "pswapaxes": (d,)}.get(name, (d, tiled)), groups
    return shape, (), groups


def called(name, axis_name, args, groups):
    """The collective as a function of ``x``."""
    f = getattr(lax, name)
    options = {} if groups is None else {"axis_index_groups": groups}
    if name == "axis_index":
        return lambda x: f(axis_name, **options)
    if name == "pgather":
        return lambda x: f(x, args[0], axis_name)
    keywords = {"all_gather": ("axis", "tiled"), "psum_scatter": ("scatter_dimension", "tiled")}.get(name, ())
    if name.startswith("pcum"):
        keywords = ("reverse", "exclusive")
    if name == "all_to_all":
        return lambda x: f(x, axis_name, *args[:2], tiled=args[2], **options)
    if keywords:
        return lambda x: f(x, axis_name, **dict(zip(keywords, args)), **options)
    return lambda x: f(x, axis_name, *args, **options)


def defined(name, x, axes, sizes, args, groups):
    """The definition applied to ``x[*sizes, *lane]``, over the axes with these numbers; in the same layout."""
    others = [k for k in range(len(sizes)) if k not in axes]
    total = prod(sizes[k] for k in axes)
    lane = x.shape[len(sizes) :]
    order = [*others, *axes]
    first = np.transpose(x, [*order, *range(len(sizes), x.ndim)]).reshape(-1, total, *lane)
    groups = [list(range(total))] if groups is None else groups
    mine = {n: (list(g), p) for g in groups for p, n in enumerate(g)}
    y = np.stack([np.stack([np.asarray(DEFINITION[name](v, *mine[n], *args)) for n in range(total)]) for v in first])
    y = y.reshape(*[sizes[k] for k in order], *y.shape[2:])
    return np.moveaxis(y, range(len(sizes)), order)


def mapped(f, names, sizes, order, unmapped=()):
    """``f`` of arrays ``x[*sizes, *lane]`` by nested ``vmap``, the first of ``order`` outermost; and in this layout.

    The argument lacks the dimensions of the axes ``unmapped``.
    """

    def nested(*xs):
        remaining = [k for k in range(len(sizes)) if k not in unmapped]
        levels = []
        for k in order:
            levels.append((k, remaining.index(k) if k in remaining else None))
            if k in remaining:
                remaining.remove(k)
        g = f
        for k, at in reversed(levels):
            g = hx.vmap(g, in_axes=at, axis_name=names[k], axis_size=sizes[k])
        y = g(*xs)
        return hx.numpy.moveaxis(y, range(len(order)), order)

    return nested
