"""Peak memory: what XLA holds at once on one device to execute a program, as its compiler for CPUs plans it.

    peak = inputs + max over time of the stored values that are still needed

A value is stored where a kernel ends: what XLA fuses is not, as ``fusion`` says. Kernels are executed breadth first.
One that computes element by element, or sorts, writes into the memory of an operand of its result's size that nothing
needs after it. Products over several dimensions, and convolutions, read operands in one order of dimensions, into which
others are copied, and floats of 16 bits in 32; LAPACK overwrites a copy. Donated inputs hold results. A body that is
executed once is part of the program around it; of several the one that holds most counts; a loop holds its carry once,
and the values of one iteration besides. Values are whole, but for those of a ``shard_map``.

Source: OpenXLA, ``BufferAssignment``, ``DotDecomposer`` and ``ConvCanonicalization``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ...effects.core.columns import FLOPS
from ...effects.operations.manipulation.last_axes import EachMatrix
from ...effects.operations.reductions.sorting import comparisons
from ...effects.programs.program import Program, derived_once
from ...effects.types.array_type import ArrayType
from .fusion import KernelGraph, moves_data

MOST = 1 << 14  # operations that are looked at


class MemoryCost(NamedTuple):
    """The bytes that one device holds at once: of arguments, and at the peak of results and temporary values."""

    arguments: int = 0
    computed: int = 0

    @property
    def peak(self) -> int:
        return self.arguments + self.computed


def peak_memory(program: Program, donated: tuple[int, ...] = ()) -> MemoryCost:
    """The memory that a device holds at once to execute a program; ``donated``: the results in the memory of inputs."""
    return MemoryCost(sum(_of_inputs(program)), held_at_peak(program, donated))


def _bytes(types: Sequence[ArrayType]) -> list[int]:
    """The bytes of values on each device: of the parts that ``shard_map`` gives it, as types state."""
    return [-(-t.nbytes // (1 if t.cut is None or t.cut.hides else prod(t.cut.parts(t.ndim)))) for t in types]


@derived_once
def _of_inputs(program: Program) -> tuple[int, ...]:
    """The bytes of each input on each device; what the devices of a mesh take parts of is there in parts."""
    sizes = _bytes(program.in_types)
    inputs = {n: n for n in range(len(sizes))}  # variables that are an input, its elements in some order
    types = program.value_types()
    for op, args, results, made in program.steps():
        if op.bodied and op.runs in ("once", "mesh") and len(op.bodies) == 1:  # type: ignore[attr-defined]
            for n, size in zip(args, _of_inputs(op.bodies[0])):  # type: ignore[attr-defined]
                if n in inputs:
                    sizes[inputs[n]] = min(sizes[inputs[n]], size)
        elif args and args[0] in inputs and moves_data(op) and made[0].size == types[args[0]].size:
            inputs[results[0]] = inputs[args[0]]
    return tuple(sizes)


class Kernel(NamedTuple):
    """What stores values: the ``sizes`` of its results in bytes, and the kernels whose results it ``reads``.

    ``in_place``: it may write into the memory of what it reads. ``within``: the bytes that it holds beside its results.
    """

    sizes: Sequence[int]
    reads: frozenset[int]
    in_place: bool
    within: int


@derived_once
def held_at_peak(program: Program, donated: tuple[int, ...]) -> int:
    """The most bytes of computed values that are held at once, without the results ``donated``."""
    graph = KernelGraph(program, 0, len(program.ops), MOST)
    kernels, results = _kernels(graph, Counter([graph.outs[n] for n in donated]))
    order = _in_breadth(kernels)
    last = {k: len(order) for k in results}
    for at, k in reversed([*enumerate(order)]):
        for j in (k, *kernels[k].reads):
            last.setdefault(j, at)
    live = peak = 0
    for at, k in enumerate(order):
        ended = [size for j in kernels[k].reads if last[j] == at for size in kernels[j].sizes]
        new = list(kernels[k].sizes)
        free = sum(ended)
        for size in [*new] if kernels[k].in_place else ():
            if size in ended:
                ended.remove(size)
                new.remove(size)
        peak = max(peak, live + sum(new) + kernels[k].within)
        live += sum(kernels[k].sizes) * (last[k] > at) - free
    return peak


def _kernels(graph: KernelGraph, donated: Mapping[int | None, int]) -> tuple[list[Kernel], set[int]]:
    """The kernels of a program in the order of its operations, and those whose results are the program's.

    ``donated``: how many results of an operation are in the memory of inputs.
    """
    stored = graph.stored() | {i for i, yes in enumerate(graph.elementwise) if yes and _is_shared_half(graph, i)}
    kernels: list[Kernel] = []
    reached: list[frozenset[int]] = []  # by operation, the kernels that one which computes it reads
    results: set[int] = set()
    chains: set[int] = set()  # kernels that compute element by element
    copies: dict[Any, int] = {}  # kernels that copy a value
    for i, op in enumerate(graph.ops):
        operands, is_result = graph.operands(i), i in graph.results
        sources = [frozenset() if j is None else reached[j] for j in graph.sources(i)]
        for n, size in _copied(op, operands).items():
            key = graph.value(i, n), size
            if key not in copies:
                made_of = [kernels[k].reads if k in chains else {k} for k in sources[n]]  # a chain is part of the copy
                copies[key] = len(kernels)
                kernels.append(Kernel([size], frozenset().union(*made_of), False, 0))
            sources[n] = frozenset([copies[key]])
        reads = frozenset().union(*sources)
        is_read = i in stored or any([not graph.fusible[j] for j in graph.readers[i]])
        if not graph.fusible[i] or is_result or (is_read and not op.is_view):
            made = op.bodies[0].out_types if op.bodied and op.runs == "mesh" else graph.made[i]
            in_place = graph.fusible[i] or FLOPS.find(type(op)) is comparisons or (op.bodied and op.loops)
            kernels.append(Kernel(_bytes(made)[donated.get(i, 0) :], reads, in_place, _within(op, made)))
            if graph.fusible[i]:
                chains.add(len(kernels) - 1)
            reads = frozenset([len(kernels) - 1])
            if is_result:
                results.add(len(kernels) - 1)
        reached.append(reads)
    return kernels, results


def _is_shared_half(graph: KernelGraph, i: int) -> bool:
    """Whether several read a result of floats of 16 bits, between which and its 32 bits XLA converts once."""
    return _is_half(graph.made[i][0]) and len(graph.readers[i]) > 1


def _is_half(t: ArrayType) -> bool:
    return bool(t.dtype.kind not in "iub" and t.dtype.itemsize == 2)


def _in_breadth(kernels: Sequence[Kernel]) -> list[int]:
    """The order in which XLA executes kernels: each as soon as all that it reads are there."""
    waits = [len(kernel.reads) for kernel in kernels]
    readers: list[list[int]] = [[] for _ in kernels]
    for k, kernel in enumerate(kernels):
        for j in kernel.reads:
            readers[j].append(k)
    order = [k for k, count in enumerate(waits) if not count]
    for k in order:
        for reader in readers[k]:
            waits[reader] -= 1
            if not waits[reader]:
                order.append(reader)
    return order


def _copied(op: Any, types: Sequence[ArrayType]) -> dict[int, int]:
    """The bytes of the copy of each operand that XLA copies before it executes the operation, by the operand's number.

    Contractions and convolutions read operands in one order of dimensions, and those of 16 bits as 32 bits; LAPACK
    overwrites its matrix.
    """
    numbers: Any = getattr(op, "dimension_numbers", None)
    sizes = dict(enumerate(_bytes(types)))
    if isinstance(op, EachMatrix):
        return {0: sizes[0]}
    if not op.contracts or numbers is None:
        return {}
    if _is_half(types[0]):
        return {n: 2 * size for n, size in sizes.items()}
    if len(numbers) == 3:  # a convolution: images first and features last, and kernels the other way round
        rank = types[0].ndim
        canonical = (0, rank - 1, *range(1, rank - 1)), (rank - 1, rank - 2, *range(rank - 2))
        return {n: sizes[n] for n in (0, 1) if tuple(numbers[n]) != canonical[n]}
    (lhs, _), _ = numbers
    return {0: sizes[0]} if len(lhs) > 1 else {}


def _within(op: Any, results: Sequence[ArrayType]) -> int:
    """The bytes that an operation holds while it executes beside its operands and results: what its bodies do."""
    if not op.bodied:
        return 0
    inner = max([held_at_peak(body, ()) for body in op.typical])
    if op.loops:
        return inner + sum(_bytes(op.typical[-1].in_types[op.shared + op.carry :]))
    return max(inner - sum(_bytes(results)), 0)  # the results of the body are those of the operation
