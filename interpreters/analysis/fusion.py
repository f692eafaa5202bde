"""Fusion, as XLA's compiler for CPUs does it: how many times over the kernels of a program compute its operations.

    duplication(program, start, stop) == operations in all kernels / operations of the program

An operation that moves data, an elementwise one or a reduction over short axes is computed within each kernel that
reads its result, and so are those that it reads: chains of them are computed again in every kernel that they end in. A
chain begins at a value that is stored: the result of any other operation; of a costly one that several read, or each of
whose elements a kernel reads several times; and of one that would have kernels read more than they do, unless it can
become part of all kernels that read it. A value that is read through an operation which is stored for one of the other
reasons cannot.

Source: OpenXLA, ``InstructionFusion``, ``CpuInstructionFusion`` and ``TreeReductionRewriter``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any

from ...effects.core.columns import FLOPS, data_movement
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.shapes import Reduction
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType

MOST = 1024  # operations that are looked at
LONGEST_REDUCED = 32  # elements of an axis that a kernel reduces for another one; more of them are reduced in steps
DEEPEST = 8  # calls within calls that are looked into


def duplication(program: Program, start: int, stop: int) -> float:
    """How often the kernels of equations ``start`` to ``stop`` compute an operation, on average.

    The first ``MOST`` operations are looked at, those of called functions included.
    """
    graph = KernelGraph(program, start, stop)
    stored = graph.stored()
    computed = 0
    for i, fusible in enumerate(graph.fusible):
        if fusible and (i in stored or i in graph.results or any([not graph.fusible[j] for j in graph.readers[i]])):
            computed += graph.kernel(i, stored)
    return computed / max(len(graph.fusible), 1)


class KernelGraph:
    """Operations by number: which of the others each reads and is read by, and what decides whether it is fused.

    ``most``: as many are looked at.
    """

    def __init__(self, program: Program, start: int, stop: int, most: int = MOST):
        self.most = most
        self.ops: list[Any] = []
        self.args: list[tuple[Sequence[int], dict[int, int], Sequence[ArrayType]]] = []  # makers and types of values
        self.reads: list[list[int]] = []
        self.given: list[list[ArrayType]] = []
        self.made: list[Sequence[ArrayType]] = []  # types of results
        self.elementwise: list[bool] = []
        self.fusible: list[bool] = []
        values = self._add(program, start, stop, {}, DEEPEST)
        self.outs = [values.get(n) for n in program.outs]  # the makers of the program's results
        self.results = {*self.outs} - {None}
        self.readers: list[list[int]] = [[] for _ in self.reads]
        self.ancestors: list[int] = []  # bit sets, of each operation itself too
        for i, reads in enumerate(self.reads):
            bits = 1 << i
            for j in reads:
                self.readers[j].append(i)
                bits |= self.ancestors[j]
            self.ancestors.append(bits)

    def _add(self, program: Program, start: int, stop: int, values: dict[int, int], depth: int) -> dict[int, int]:
        """Add equations of a program; ``values``: the operations by which those of its values are made that are."""
        types = program.value_types()
        for op, args, results, made in islice(program.steps(), start, stop):
            if len(self.reads) >= self.most:
                break
            if op.bodied and op.runs == "once" and len(op.bodies) == 1 and depth:  # type: ignore[attr-defined]
                (body,) = op.bodies  # type: ignore[attr-defined]
                given = {k: values[n] for k, n in enumerate(args) if n in values}
                inner = self._add(body, 0, len(body.ops), given, depth - 1)
                values.update([(n, inner[out]) for n, out in zip(results, body.outs) if out in inner])
            elif made:
                for n in results:
                    values[n] = len(self.reads)
                read = dict.fromkeys(args)
                self.reads.append([*{values[n]: None for n in read if n in values}])
                self.given.append([types[n] for n in read])
                self.ops.append(op)
                self.args.append((args, values, types))
                self.made.append(made)
                self.elementwise.append(isinstance(op, Elementwise))
                self.fusible.append(_is_fusible(op, self.given[-1]))
        return values

    def sources(self, i: int) -> list[int | None]:
        """For each operand of operation ``i`` the operation whose result it is; None: it is an input or a constant."""
        args, values, _ = self.args[i]
        return [values.get(n) for n in args]

    def value(self, i: int, n: int) -> Hashable:
        """What tells operand ``n`` of operation ``i`` from other values."""
        args, values, types = self.args[i]
        return values.get(args[n], (id(types), args[n]))

    def operands(self, i: int) -> list[ArrayType]:
        """The types of the operands of operation ``i``."""
        args, _, types = self.args[i]
        return [types[n] for n in args]

    def stored(self) -> set[int]:
        """The operations whose results are stored."""
        stored = {i for i, fusible in enumerate(self.fusible) if not fusible or self._is_shared(i)}
        for i in reversed(range(len(self.fusible))):
            if i not in stored and self._widens(i) and not self._joins_all(i, stored):
                stored.add(i)
        reused: set[int] = set()  # those each of whose elements a kernel would compute several times
        for i in reversed(range(len(self.fusible))):
            if any([self._spreads(j, i) or (j in reused and j not in stored) for j in self.readers[i]]):
                reused.add(i)
                if self.ops[i].costly:
                    stored.add(i)
        return stored

    def _is_shared(self, i: int) -> bool:
        """Whether several would compute a costly operation again."""
        return self.ops[i].costly and len(self.readers[i]) + (i in self.results) > 1

    def _spreads(self, reader: int, i: int) -> bool:
        """Whether an operation reads each element several times: a broadcast, or an elementwise one that implies it."""
        implied = self.elementwise[reader] and self.made[i][0].size < self.made[reader][0].size
        return self.ops[reader].cheap_to_recompute or implied

    def _widens(self, i: int) -> bool:
        """Whether an operation reads several arrays of its result's rank, and more elements than its result has.

        What is broadcast is read in its smaller shape.
        """
        if len(self.given[i]) == 1 or sum([t.size for t in self.given[i]]) <= self.made[i][0].size:
            return False
        rank = _true_rank(self.made[i][0])
        spread = [j for j in self.reads[i] if self.ops[j].cheap_to_recompute]
        wide = [t for t in self.given[i] if _true_rank(t) >= rank]
        return len(wide) - len(spread) > 1

    def _joins_all(self, i: int, stored: set[int]) -> bool:
        """Whether an operation can become part of all kernels that read it, by every path."""
        if i in self.results:
            return False
        rest, seen = list(self.readers[i]), {i}
        while rest:
            reader = rest.pop()
            if not self.fusible[reader]:
                return False
            for j in self.reads[reader]:
                if self.ancestors[j] >> i & 1 and j not in seen:
                    if j in stored:
                        return False
                    seen.add(j)
                    rest.append(j)
        return True

    def kernel(self, i: int, stored: set[int]) -> int:
        """How many operations a kernel with result ``i`` computes."""
        rest, seen = [i], {i}
        while rest:
            for j in self.reads[rest.pop()]:
                if j not in stored and j not in seen:
                    seen.add(j)
                    rest.append(j)
        return len(seen)


def _is_fusible(op: Any, given: Sequence[ArrayType]) -> bool:
    if isinstance(op, Reduction):
        return all([given[0].shape[axis] <= LONGEST_REDUCED for axis in op.axes])
    return not op.bodied and (isinstance(op, Elementwise) or moves_data(op))


def moves_data(op: Any) -> bool:
    """Whether the operation computes nothing: its results are elements of its operands."""
    return FLOPS.find(type(op)) is data_movement


def _true_rank(t: ArrayType) -> int:
    return sum([n != 1 for n in t.shape])
