"""The traffic of collectives: the messages and bytes that one device sends along each mesh axis; the rule table
``traffic``.

Along one axis of n devices, with x the bytes of a device's operand and y those of its result:

    collective       bytes        messages    by
    all-reduce       2 (n-1)/n x  2 (n-1)     a ring: reduce-scatter, then all-gather of the sums
    all-gather       (n-1)/n y    n-1         a ring
    reduce-scatter   (n-1)/n x    n-1         a ring
    all-to-all       (n-1)/n x    n-1         one message to every other device
    permutation      x            1           one message from every source

None can be done with fewer bytes for each device, where no switch adds. Of several axes, the later one in the mesh is
the inner one:

    rings            axis after axis. A sum is scattered along the innermost axis first and gathered along it last, so
                     that along any axis only a part of x is sent, divided by the sizes of the axes inside of it; the
                     bytes of all axes together are those of one ring of all devices
    all-to-all       every axis in turn: each moves what has to change its position along it
    permutation      a message that changes several positions is sent along each of these axes

Groups are taken as the products of positions along axes that they are, and meet along these; where they are no such
products, a group of n devices counts as n along each axis that it crosses, which is a bound.

Sources: P. Patarasu, X. Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, Journal of Parallel
and Distributed Computing 69 (2009), the ring and its bound; R. Thakur, R. Rabenseifner, W. Gropp, Optimization of
Collective Communication Operations in MPICH, International Journal of High Performance Computing Applications 19
(2005), section 4; E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, Collective Communication: Theory, Practice,
and Experience, Concurrency and Computation: Practice and Experience 19 (2007), the bounds and meshes of several axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.named_axes import SizedAxis
from ...types.array_type import ArrayType
from .lane_groups import Groups


class Sent(NamedTuple):
    """The messages and bytes that one device sends along one mesh axis."""

    messages: int
    bytes: int


Traffic = dict[SizedAxis, Sent]


class LaneSpan(NamedTuple):
    """The ``size`` devices of a group along one mesh axis, and the product ``inner`` of those along inner axes."""

    axis: SizedAxis
    size: int
    inner: int


def spans(op: Any, mesh: Any) -> list[list[LaneSpan]]:
    """For each group of devices the mesh axes along which it extends, innermost first."""
    sizes = [size for _, size in op.axes]
    order = sorted(range(len(sizes)), key=lambda k: -mesh.axis_names.index(op.axes[k][0]))
    by_group: list[list[LaneSpan]] = []
    for counts, total in [(sizes, prod(sizes))] if op.groups is None else _positions(op.groups, sizes):
        product, inner = prod(counts) == total, 1
        by_group.append([])
        for k in order:
            if counts[k] > 1:
                by_group[-1].append(LaneSpan(op.axes[k], counts[k] if product else total, inner))
                inner *= counts[k] if product else 1
    return by_group


def _positions(groups: Groups, sizes: Sequence[int]) -> list[tuple[list[int], int]]:
    """For each group, the number of distinct positions along each axis, and the group's size."""
    return [([len({*digits.tolist()}) for digits in np.unravel_index(group, sizes)], len(group)) for group in groups]


def ring(rounds: int, *, gathers: bool = False, exchanges: bool = False) -> Callable[..., Traffic]:
    """The ``traffic`` rule of a ring algorithm with so many rounds over its operand; over its result if it ``gathers``.

    If it ``exchanges``, all of it crosses each axis, and not the part that the inner axes have left.

    traffic(op, mesh, operands, results) -> {axis: Sent}: of messages, and of bytes, the maximum over all groups.
    """

    def traffic(op: Any, mesh: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> Traffic:
        whole = (results if gathers else operands)[0].nbytes
        most: Traffic = {}
        for axis, n, inner in chain(*spans(op, mesh)):
            messages, parts = rounds * (n - 1), n if exchanges else n * inner
            sent = Sent(messages, -(-messages * whole // parts))
            most[axis] = Sent(*map(max, sent, most.get(axis, sent)))
        return most

    return traffic


exchange = ring(1, exchanges=True)
"""The ``traffic`` rule of all-to-all."""


def permutation(op: Any, mesh: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> Traffic:
    """The ``traffic`` rule of a permutation."""
    if not op.pairs:
        return {}
    ends = np.unravel_index(np.array(op.pairs), [size for _, size in op.axes])
    moved = [bool(np.any(position[:, 0] != position[:, 1])) for position in ends]
    return {axis: Sent(1, operands[0].nbytes) for axis, moves in zip(op.axes, moved) if moves}
