"""The handler of ``vmap(group=...)``: where lanes choose different branches, each is executed on its own lanes alone.

    sorted     lanes by the branch that they take: every branch has some lanes in a row
    chunks     so many lanes at a time, of one branch; places of a branch's last chunk that no lane needs hold copies

Where it is known which lane takes which branch, as it is outside of traced programs, a branch is executed once, on
exactly its lanes. Where that is a value of the program, a loop goes over the chunks and executes one branch on each;
there are at most so many chunks as lanes and branches may require, and nothing is executed on those left over. This is
a ``Scan`` over a ``Cond`` that all lanes of a chunk share, and so is its derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.stack import current, inside, installed, perform
from ...effects.control.branches import Cond
from ...effects.control.checkpoint import Checkpoint
from ...effects.control.loops import Scan
from ...effects.core.arrays import ConcreteArray, from_numpy, scalar
from ...effects.operations.elementwise.arithmetic import div
from ...effects.operations.elementwise.bitwise import bitwise_not
from ...effects.operations.elementwise.comparison import clamp, eq, le, select
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, reshape, zeros
from ...effects.operations.indexing.relocation import relocate, take_rows
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.slicing import axis_at, concatenate, slice_in_dim
from ...effects.operations.reductions.cumulative import cumsum
from ...effects.operations.reductions.reductions import reduce_sum
from ...effects.operations.reductions.sorting import sort_key_val
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import int32
from ..core.body_transform import transform_body
from ..core.record import record
from ..core.state_flow import RequiredSignature
from .batch import Batch

MOST_LANES = 128  # in a chunk, unless the user says how many
FEWEST_CHUNKS = 8  # of a branch that all lanes take


class GroupedLanes(Batch):
    """``vmap`` that executes each branch of a ``cond`` only on lanes that take it, ``how`` lanes at a time.

    A branch with effects or collectives is answered as by ``Batch``: each lane executes its own branch alone, or all
    lanes execute all branches.
    """

    __slots__ = ()
    how: int | None  # None: as many as are fast

    @property
    def equal_lanes(self) -> tuple[str, str]:
        return "have no chunks of one type", "group"

    def choose(self, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
        counted = isinstance(self.size, int) and self.size  # rows of a ragged axis have no number
        if op.runs != "one" or op.effects or len(op.bodies) == 1 or not counted:
            return super().choose(op, operands)
        with inside(self.outer):
            (_, index), *xs = [self._rows(x) for x in operands]
            branch = clamp(scalar(0, int32), index, scalar(len(op.bodies) - 1, int32))
            answer = self._once_each if isinstance(branch, ConcreteArray) else self._in_chunks
            return tuple([self.box(0, (y,)) for y in answer(op.bodies, branch, xs)])

    def _rows(self, x: Any) -> tuple[bool, Any]:
        """Whether a value is mapped, and the value with its lanes, if it has any, along axis 0."""
        dim, (value,) = self.split(x)
        return dim is not None, value if dim is None else axis_at(value, dim, 0, self.size)

    def _once_each(self, bodies: Sequence[Program], branch: Any, xs: Sequence[tuple[bool, Any]]) -> list[Any]:
        """The results if the branch of every lane is concrete: each branch is executed once, on its lanes."""
        ordered = np.argsort(branch.value, kind="stable").astype(np.int32)
        order, places = from_numpy(ordered), from_numpy(np.argsort(ordered).astype(np.int32))
        xs = [(mapped, relocate(x, order, places) if mapped else x) for mapped, x in xs]
        ends = np.bincount(branch.value, minlength=len(bodies)).cumsum().tolist()
        parts = []
        for body, first, last in zip(bodies, [0, *ends], ends):
            if first < last:
                run = self.of_lanes(last - first, current())
                rows = [run.box(0, (slice_in_dim(x, first, last),)) if mapped else x for mapped, x in xs]
                with installed(run):
                    ys = interpret(body, rows)
                parts.append([run.force(y, 0)[0] for y in ys])
        return [relocate(concatenate(list(ys), 0), places, order) for ys in zip(*parts)]

    def _in_chunks(self, bodies: Sequence[Program], branch: Any, xs: Sequence[tuple[bool, Any]]) -> list[Any]:
        """The results if the branches are traced: a loop over chunks of lanes, each executing one branch."""
        size = min(self.how or MOST_LANES, -(-self.size // (1 if self.how else FEWEST_CHUNKS)))
        chunks = _divide(branch, len(bodies), size)
        mapped = [yes for yes, _ in xs]
        run, required = self.of_lanes(size, self.outer), RequiredSignature([0] * len(bodies[0].outs))
        marks = [0 if yes else None for yes in mapped]
        programs = [transform_body(run, body, marks, required).program for body in bodies]
        shared = [x for yes, x in xs if not yes]
        count = chunks.branches.type.shape[0]
        loop = Scan((_chunk(programs, mapped, branch.type.update(shape=())),), len(shared), 0, count)
        ys = perform(loop, *shared, chunks.branches, *[chunks.rows(x) for yes, x in xs if yes])
        return [chunks.lanes_of(y) for y in ys]


def _chunk(programs: Sequence[Program], mapped: Sequence[bool], branch: ArrayType) -> Program:
    """The program of one chunk: it executes one of the ``programs``, or returns zeros for an empty chunk. Inputs: the
    values that all lanes share, the branch, then the rows of the chunk's lanes.

    Reverse mode recomputes a branch where it is transposed: residuals of one branch would be zeros in all others.
    """
    types = programs[0].in_types
    nothing = record(lambda *_: [zeros(t) for t in programs[0].out_types], types, "nothing")
    recomputed = [
        record(lambda *xs, body=body: perform(Checkpoint((body,), None, False), *xs), types, body.name)
        for body in programs
    ]
    shared = [t for t, yes in zip(types, mapped) if not yes]

    def chunk(*values: Any) -> Sequence[Any]:
        first, which, rest = iter(values[: len(shared)]), values[len(shared)], iter(values[len(shared) + 1 :])
        return perform(Cond((*recomputed, nothing)), which, *[next(rest if yes else first) for yes in mapped])

    return record(chunk, (*shared, branch, *[t for t, yes in zip(types, mapped) if yes]), "chunk")


class _Chunks(NamedTuple):
    """Lanes sorted by branch and divided into chunks of ``size`` lanes, each chunk of one branch.

    ``branches[k]``: the branch of chunk ``k``, or the number of branches if the chunk is unused. ``lanes[p]``: the lane
    at position ``p`` of all chunks; ``~lane`` in padding that repeats it. ``places[i]``: the position of lane ``i``.
    """

    branches: Any
    lanes: Any
    places: Any
    size: int

    def rows(self, x: Any) -> Any:
        """The rows of ``x``, one for each lane, as an array of chunks of ``size`` rows."""
        y = relocate(x, self.lanes, self.places, copies=True)
        return reshape(y, (y.type.shape[0] // self.size, self.size, *y.type.shape[1:]))

    def lanes_of(self, y: Any) -> Any:
        """The inverse of ``rows``: one row for each lane, in the order of the lanes, from an array of chunks."""
        rows = reshape(y, (y.type.shape[0] * self.size, *y.type.shape[2:]))
        return relocate(rows, self.places, self.lanes)


def _divide(branch: Any, count: int, size: int) -> _Chunks:
    """Sort lanes by their ``branch`` into chunks of ``size`` lanes; there are as many chunks as may be needed."""
    lanes = branch.type.shape[0]
    chunks = (lanes + count * (size - 1)) // size
    ordered, order = sort_key_val(branch, iota(int32, lanes))
    takers = _count(eq, branch, iota(int32, count))
    needed = div(takers + (size - 1), scalar(size, int32))
    end, last_chunk = cumsum(takers), cumsum(needed)
    offset = (last_chunk - needed) * size - (end - takers)  # from a lane's place in the order to that in the chunks
    branches = _count(le, last_chunk, iota(int32, chunks))
    none = zeros(end.type.update(shape=(1,)))
    of_place = reshape(broadcast_in_dim(branches, (chunks, size), (0,)), (chunks * size,))
    number = iota(int32, chunks * size) - take_rows(concatenate([offset, none], 0), of_place)
    last = take_rows(concatenate([end, none], 0), of_place) - 1
    lane = take_rows(order, minimum(number, last), False)
    places = sort_key_val(order, iota(int32, lanes) + take_rows(offset, ordered))[1]
    return _Chunks(branches, select(le(number, last), lane, bitwise_not(lane)), places, size)


def _count(compare: Any, xs: Any, ys: Any) -> Any:
    """For each element ``y`` of ``ys`` the number of elements ``x`` of ``xs`` for which ``compare(x, y)`` is true."""
    shape = (*ys.type.shape, *xs.type.shape)
    precedes = compare(broadcast_in_dim(xs, shape, (1,)), broadcast_in_dim(ys, shape, (0,)))
    return reduce_sum(convert(precedes, int32), (1,))
