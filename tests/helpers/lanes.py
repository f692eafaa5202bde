"""The definition of every collective in one line of NumPy, random calls of them, and owners of the axes they name."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import handlax as hx
from handlax.sharding import Mesh, P
from handlax.testing.strategies import collectives


def prefix(f, start):
    def of(x, g, p, reverse, exclusive):
        part = x[g][p + exclusive :] if reverse else x[g][: p + 1 - exclusive]
        return f(part, 0, initial=start(x.dtype))

    return of


def exchanged(x, g, p, s, c, tiled):
    if tiled:
        return np.concatenate([np.split(v, len(g), s)[p] for v in x[g]], c)
    return np.stack([np.moveaxis(v, s, 0)[p] for v in x[g]], c)


def extreme(end):
    """The least or the greatest value of a dtype."""
    of_kind = {"b": {"min": False, "max": True}, "f": {"min": -np.inf, "max": np.inf}}
    return lambda dtype: of_kind[dtype.kind][end] if dtype.kind in of_kind else getattr(np.iinfo(dtype), end)


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
    "pcumsum": prefix(np.add.reduce, lambda dtype: 0),
    "pcumprod": prefix(np.multiply.reduce, lambda dtype: 1),
    "pcummax": prefix(np.maximum.reduce, extreme("min")),
    "pcummin": prefix(np.minimum.reduce, extreme("max")),
    "pgather": lambda x, g, p, index: x[g][index],
}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "int4", "bool", "complex64")
COUNTED = {"psum", "pprod", "psum_scatter", "pcumsum", "pcumprod"}  # booleans are counted, as integers of 32 bits


@st.composite
def calls(draw, name):
    """Sizes of up to three axes, with at most eight lanes; a call over some of them; for each operand, the numbers of
    the axes whose dimensions it lacks.
    """
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda sizes: prod(sizes) <= 8))
    lacking = st.frozensets(st.sampled_from(range(len(sizes))), max_size=1)
    call = draw(collectives(dict(zip("ijkl", sizes)), [name]))
    return tuple(sizes), call, draw(st.lists(lacking, min_size=1, max_size=2))


def on_all(call):
    """A collective of one or several operands at once, as a tuple."""
    alone = call.name in ("axis_index", "pgather")
    return lambda *xs: tuple([call(x) for x in xs]) if alone else call(xs)


def operand(sizes, call, unmapped, dtype, rng):
    """Small numbers, exact in every dtype."""
    shape = (*[n for k, n in enumerate(sizes) if k not in unmapped], *call.shape)
    x = rng.integers(0 if dtype in ("uint8", "bool") else -2, 2 if dtype == "bool" else 3, shape)
    return hx.numpy.asarray(x + 1j * rng.integers(-2, 3, shape) if dtype == "complex64" else x, dtype)


def defined(sizes, call, x, unmapped=frozenset()):
    """The definition applied to an operand without the dimensions ``unmapped``: ``y[*sizes, *lane]``."""
    wide = {"f": np.float64, "V": np.float64, "i": np.int64, "u": np.int64, "b": bool, "c": np.complex128}
    y = np.asarray(x).astype(np.int64 if "int" in str(x.dtype) else wide[np.asarray(x).dtype.kind])
    if y.dtype == bool and call.name in COUNTED:
        y = y.astype(np.int64)
    y = np.broadcast_to(np.expand_dims(y, tuple(sorted(unmapped))), (*sizes, *call.shape))
    if call.dims:
        kind = {"psum": "sum", "pmean": "mean", "pprod": "prod", "pmax": "max", "pmin": "min"}[call.name]
        y = getattr(y, kind)(tuple([len(sizes) + d % len(call.shape) for d in call.dims]))
    told = {**call.options}
    groups, of_group = told.pop("axis_index_groups", None), DEFINITION[call.name]
    axes = tuple(["ijkl".index(name) for name in call.axes])
    y = over_lanes(lambda v, g, p: of_group(v, g, p, *told.values()), y, axes, sizes, groups)
    if call.name in ("pcummax", "pcummin") and "int" in str(x.dtype):  # those of nothing
        y = np.clip(y, hx.numpy.iinfo(x.dtype).min, hx.numpy.iinfo(x.dtype).max)
    return y


def over_lanes(f, x, axes, sizes, groups):
    """``f(lanes, my group, my position in it)`` in every lane of ``x[*sizes, *lane]``; in the same layout."""
    others = [k for k in range(len(sizes)) if k not in axes]
    count, total = (prod(sizes[k] for k in chosen) for chosen in (others, axes))
    order = [*others, *axes]
    first = np.transpose(x, [*order, *range(len(sizes), x.ndim)]).reshape(count, total, *x.shape[len(sizes) :])
    groups = [list(range(total))] if groups is None else groups
    mine = {n: (list(g), p) for g in groups for p, n in enumerate(g)}
    y = np.stack([np.stack([np.asarray(f(v, *mine[n])) for n in range(total)]) for v in first])
    return np.moveaxis(y.reshape(*[sizes[k] for k in order], *y.shape[2:]), range(len(sizes)), order)


OTHER = 3  # an axis of meshes that no call names


class Devices(NamedTuple):
    """Axes bound by ``shard_map``: ``check_vma``, and the mesh, which may have other axes."""

    axes: tuple[int, ...]
    mesh: Any
    tracked: bool


class Pmap(NamedTuple):
    """An axis bound by ``pmap``."""

    axis: int


def random_owners(rng, sizes):
    """Who binds each axis, the outermost first: ``vmap``, ``pmap``, or ``shard_map`` on a part of one mesh."""
    order = rng.permutation(len(sizes)).tolist()
    if rng.random() < 0.2:
        place = int(rng.integers(len(sizes)))
        return [Pmap(k) if n >= place else k for n, k in enumerate(order)]
    parts: list[Any] = []  # axes that one vmap or shard_map binds
    for k in order:
        on_mesh = rng.random() < 0.8
        if on_mesh and parts and isinstance(parts[-1], tuple) and rng.random() < 0.7:
            parts[-1] = (*parts[-1], k)
        else:
            parts.append((k,) if on_mesh else k)
    manual = [part for part in parts if isinstance(part, tuple)]
    held = [k for part in manual for k in part]
    free = rng.random() < 0.3 and prod(sizes[k] for k in held) <= 4
    sorted_only = len(manual) + free > 2 or 1 in sizes  # XLA merges the axes of nested regions, in order of the mesh
    held = held if sorted_only else [held[n] for n in rng.permutation(len(held))]
    if free:
        held.append(OTHER)
    shape = [2 if k == OTHER else sizes[k] for k in held]
    mesh = Mesh(np.array(hx.devices("cpu")[: prod(shape)]).reshape(shape), tuple(["ijkl"[k] for k in held]))
    tracked = bool(rng.random() < 0.5)
    return [Devices(part, mesh, tracked) if isinstance(part, tuple) else part for part in parts]


def mapped(f, names, sizes, owners, unmapped=()):
    """``f`` of arrays ``x[*sizes, *lane]``, its axes bound by the owners, the first outermost; results in this layout.

    An owner is the number of an axis that ``vmap`` binds, a ``Pmap``, or ``Devices``. Argument ``i`` lacks the
    dimensions of the axes ``unmapped[i]``; ``f`` returns an array or a tuple of them.
    """
    order = [k for owner in owners for k in _axes(owner)]

    def nested(*xs):
        lacking = unmapped or [()] * len(xs)
        remaining = [[k for k in range(len(sizes)) if k not in without] for without in lacking]
        g, levels = f, []
        for owner in owners:
            at = tuple([[r.index(k) if k in r else None for k in _axes(owner)] for r in remaining])
            levels.append((owner, at))
            remaining = [[k for k in r if k not in _axes(owner)] for r in remaining]
        for owner, at in reversed(levels):
            if isinstance(owner, Devices):
                g = _on_mesh(g, owner, names, at)
            else:
                (k,) = _axes(owner)
                transform = hx.pmap if isinstance(owner, Pmap) else hx.vmap
                g = transform(g, in_axes=tuple([d for (d,) in at]), axis_name=names[k], axis_size=sizes[k])
        return hx.tree.map(lambda y: hx.numpy.moveaxis(y, range(len(order)), order), g(*xs))

    return nested


def _axes(owner):
    return (owner,) if isinstance(owner, int) else owner.axes if isinstance(owner, Devices) else (owner.axis,)


def _on_mesh(f, owner, names, at):
    """``f`` on the devices: pieces have size 1 along the dimensions ``at``; those of results stand in front."""
    own = [names[k] for k in owner.axes]

    def spec(dims):
        where = {d: name for d, name in zip(dims, own) if d is not None}
        return P(*[where.get(d) for d in range(max(where, default=-1) + 1)])

    def body(*pieces):
        lanes = [x.reshape([n for d, n in enumerate(x.shape) if d not in dims]) for x, dims in zip(pieces, at)]
        return hx.tree.map(lambda y: y.reshape((*[1] * len(own), *y.shape)), f(*lanes))

    return hx.shard_map(body, mesh=owner.mesh, in_specs=tuple(map(spec, at)), out_specs=P(*own),
                        axis_names=set(own), check_vma=owner.tracked)
