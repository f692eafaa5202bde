"""costs: what a program costs one device, by its operations, or by XLA's program where the compiler divides arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
from pyrsistent import pmap

from ...effects.base.errors import CompileError, need_function
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.control.branches import Cond
from ...effects.control.shard_map import ShardMap
from ...effects.core.columns import DECOMPOSE, LOWER, decomposed
from ...effects.core.named_axes import SizedAxis
from ...effects.functions.captured import jit_info
from ...effects.operations.collectives.traffic import exchange, permutation, ring
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.mesh import MeshAxes
from ...effects.sharding.named_sharding import NamedSharding
from ...interpreters.analysis.fusion import moves_data
from ...interpreters.analysis.peak_memory import MemoryCost, peak_memory
from ...interpreters.analysis.platform_branches import for_platform
from ...interpreters.core.static_arguments import ArgumentChoice
from ...interpreters.handlers.default_clauses import with_defaults
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import handler
from ...interpreters.handlers.static_tally import tally_program
from ...interpreters.library.pure.cost_table import Costs, LinkCost, OperationCost, either, repeated, then
from ...interpreters.library.pure.counters import cost_counter
from ...interpreters.transformations.make_program import trace as trace_function
from ..compile.compile import LoweredProgram, aliases_of
from ..compile.placement import by_settings
from ..jit.ahead_of_time import trace
from ..jit.dispatch import Jitted
from ..xla.lazy import runtime
from .hlo_program import HloArray, HloInstruction, HloProgram, hlo_program


def costs(f: Callable[..., Any]) -> Callable[..., Costs]:
    """``costs(f)(*args)`` is what ``f`` costs one device, on arguments of these types; nothing is executed.

    A contraction costs two FLOPs per multiplication, an elementwise operation one per element, data movement none.
    An effect costs what its default clause does. Loops of known length count every iteration. Within ``shard_map`` the
    costs are those of one device, and where devices meet, what it sends along each axis of the mesh: by the ``traffic``
    rules of collectives.
    Where shardings of arguments, results or constraints divide arrays, the program is compiled, without its devices,
    and the rows are the operations of the part that XLA's partitioner gives each device, collectives among them.
    ``platform_dependent`` costs its function for the platform on which ``f`` is executed.
    ``costs(f)(*args).memory`` is what a device holds at once, as XLA plans it.
    ``costs(f)(*args).by_scope()`` has the costs of each ``named_scope``, such as a layer of a model.

    Args:
        f: a function, or a program. Its arguments may be types, and its meshes abstract ones.

    >>> from handlax import numpy
    >>> print(costs(lambda x: numpy.sin(x) @ x)(numpy.ones(3)))
    operations   number  flops  bytes
    dot_general       1      6     28
    sin               1      3     24
    all               2      9     52
    """
    need_function("costs", f)
    known = jit_info(f)
    jitted = known if known is not None else Jitted(f, ArgumentChoice(), ArgumentChoice(), False, None, False, None)

    @wraps(f)
    @unnamed_boundary
    def counted(*args: Any, **kwargs: Any) -> Costs:
        traced = trace(jitted, args, kwargs, "costs")
        placement = traced.placement
        if _is_divided(traced.program, () if placement is None else placement.shardings):
            return _of_partition(traced.lowered_program())
        program = with_defaults(traced.program)
        if Cond in program.operations:
            program = for_platform(program, (placement or by_settings()).platform)
        marks = [n in traced.donate_argnums for n in range(len(program.in_types))]
        donated = tuple([n for n in aliases_of(program, marks) if n is not None])
        return tally_program(cost_counter, program)._replace(memory=peak_memory(_decomposed(program), donated))

    return counted


def _decomposed(program: Program) -> Program:
    """The program with operations that others stand for where it is lowered, such as those of a linear system."""
    if not any(map(_stands_for_others, program.operations)):
        return program
    return trace_function(handle(_DECOMPOSING)(program), program.in_types, {}).program


def _stands_for_others(kind: type) -> bool:
    return LOWER.cell(kind) is decomposed


_DECOMPOSING = handler(
    otherwise=lambda op, *xs: DECOMPOSE.find(type(op))(op, *xs), over=lambda op: _stands_for_others(type(op))
)


def _is_divided(program: Program, given: Sequence[NamedSharding | None]) -> bool:
    """Whether the compiler divides what is computed: shardings cut arrays, and not all of it is in ``shard_map``s."""
    ops = _outermost(program)
    shardings = [*given, *[op.sharding for op in ops if op.states_cut]]
    computing = [op for op in ops if not moves_data(op)]
    return any(map(_cuts, shardings)) and not (computing and all([isinstance(op, ShardMap) for op in computing]))


@derived_once
def _outermost(program: Program) -> frozenset[Any]:
    """The operations of a program without bodies, and the ``shard_map``s, those in other bodies too."""
    found: set[Any] = set()
    for op in program.ops:
        if op.bodied and not isinstance(op, ShardMap):
            found.update(*map(_outermost, op.bodies))  # type: ignore[attr-defined]
        else:
            found.add(op)
    return frozenset(found)


def _cuts(sharding: NamedSharding | None) -> bool:
    """Whether arrays of a sharding are cut along an axis of several devices."""
    return sharding is not None and any([sharding.mesh.shape[axis] > 1 for axis in sharding.spec.axes])


def _of_partition(lowered: LoweredProgram) -> Costs:
    """The costs of one partition. XLA compiles it for devices of which each is the first one of the platform: it is
    planned for as many as the mesh has, and not executed.
    """
    module, platform = lowered.module, lowered.placement.platform
    mesh: Any = lowered.placement.mesh
    devices = (runtime.backend(platform).default_device,) * mesh.size
    options = {"xla_backend_optimization_level": 0} if platform == "cpu" else {}  # about machine code alone
    compiled = runtime.compile(module.text, devices=devices, results=(), options=options, calls=module.calls)
    plan = compiled.memory_analysis()
    computed = plan.output_size_in_bytes + plan.temp_size_in_bytes - plan.alias_size_in_bytes
    cost = _PartitionCosts(hlo_program(compiled.hlo_text()), mesh).entry()
    return cost._replace(memory=MemoryCost(plan.argument_size_in_bytes, computed))


# Instructions that are views, or stand for what is counted within them
_FREE = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
    "opt-barrier", "domain", "add-dependency", "fusion", "call", "while", "conditional", "async-start",
    "async-update", "async-done",
})
_MOVES = frozenset({
    "copy", "reshape", "transpose", "broadcast", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate",
    "pad", "reverse", "gather", "iota", "convert", "bitcast-convert", "real", "imag", "complex", "custom-call",
    "all-gather", "all-to-all", "collective-permute", "collective-broadcast",
})
_TRAFFIC: dict[str, Callable[..., Mapping[SizedAxis, Any]]] = {
    "all-reduce": ring(2), "all-gather": ring(1, gathers=True), "reduce-scatter": ring(1), "all-to-all": exchange,
    "collective-permute": permutation, "collective-broadcast": ring(1),
}
_CALLED = re.compile(r"\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation)="
                     r"(?:\{([^}]*)\}|%?([\w.-]+))")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


class CollectiveGroups(NamedTuple):
    """Which devices meet in a collective, as the rules of ``traffic`` are told."""

    axes: tuple[SizedAxis, ...]
    groups: Sequence[Sequence[int]] | None
    pairs: Sequence[Sequence[int]]


class _PartitionCosts:
    """The costs of the computations of XLA's program for one device of a mesh."""

    def __init__(self, program: HloProgram, mesh: MeshAxes):
        self.program = program
        self.mesh = mesh
        self.known: dict[str, Costs] = {}

    def entry(self) -> Costs:
        return self.computation(self.program.entry)

    def computation(self, name: str) -> Costs:
        """The costs of all instructions of a computation."""
        if name not in self.known:
            instructions = self.program.computations[name]
            types = {each.name: each.results for each in instructions}
            self.known[name] = reduce(then, [self.instruction(each, types) for each in instructions], Costs())
        return self.known[name]

    def instruction(self, made: HloInstruction, types: Mapping[str, Sequence[HloArray]]) -> Costs:
        """The costs of an instruction, and of the computations that it executes."""
        inner = [self.computation(name) for name in _called(made)]
        if made.opcode == "while":
            trips = _TRIPS.search(made.attributes)
            return repeated(reduce(then, inner), int(trips[1]) if trips else None)
        if made.opcode == "conditional":
            return reduce(either, inner)
        if made.opcode in _FREE:
            return reduce(then, inner, Costs())
        name = made.opcode.removesuffix("-start")
        operands = [array for operand in made.operands for array in types[operand]]
        if name.endswith("-done"):
            return Costs()
        moved = sum([array.nbytes for array in (*operands, *made.results)])
        cost = OperationCost(1, _flops(made, operands), moved)
        scopes = tuple(made.scope.split("/")) if made.scope else ()
        computed = Costs(pmap({(self.mesh.shape_tuple, name): cost}), scopes=pmap({scopes: cost}))
        if name in _TRAFFIC:
            return computed._replace(sent=self.sent(name, made, operands))
        target = _TARGET.search(made.attributes)
        return computed if target is None else computed._replace(assumed=frozenset([
            f"a call of {target[1]} counts no operations"
        ]))

    def sent(self, name: str, made: HloInstruction, operands: Sequence[HloArray]) -> Any:
        """What a device sends along each axis in a collective."""
        taken, given = [  # of which the rules read the bytes alone
            [HloArray((sum([array.nbytes for array in arrays]),), 8)]
            for arrays in (operands, made.results[-len(operands) :])
        ]
        pairs = _tuples("source_target_pairs", made.attributes)
        groups = CollectiveGroups(self.mesh.shape_tuple, _groups(made.attributes), pairs)
        traffic = _TRAFFIC[name](groups, self.mesh, taken, given)
        return pmap({(axis, name): LinkCost(1, *link) for axis, link in traffic.items()})


def _called(made: HloInstruction) -> list[str]:
    """The computations that an instruction executes; of a reduction, sort or scatter they are those of an element."""
    if made.opcode not in ("fusion", "call", "while", "conditional", "async-start"):
        return []
    return [
        name.strip(" %") for several, one in _CALLED.findall(made.attributes) for name in (several or one).split(",")
    ]


def _flops(made: HloInstruction, operands: Sequence[HloArray]) -> int:
    """The operations on numbers of an instruction, counted as those of a program are."""
    (result, *_), attributes = made.results or (HloArray((0,), 8),), made.attributes
    name = made.opcode.removesuffix("-start")
    if name in _MOVES:
        return 0
    if name in ("all-reduce", "reduce-scatter"):
        return sum([array.size for array in operands])
    if made.opcode == "dot":
        contracted = _numbers("lhs_contracting_dims", attributes)
        return 2 * result.size * prod([operands[0].shape[d] for d in contracted])
    if made.opcode == "convolution":
        (labels,) = re.findall(r"dim_labels=\w+_(\w+)->", attributes)
        return 2 * result.size * operands[1].size // operands[1].shape[labels.index("o")]
    if made.opcode == "reduce-window":
        window = re.search(r"size=([\dx]+)", attributes)
        return result.size * (prod(map(int, window[1].split("x"))) if window else 1)
    return operands[0].size if name == "reduce" else result.size


def _numbers(name: str, attributes: str) -> list[int]:
    """The numbers of an attribute ``name={1,2}``."""
    found = re.search(rf"\b{name}=\{{([\d,]*)\}}", attributes)
    return _integers(found[1]) if found else []


def _tuples(name: str, attributes: str) -> list[list[int]]:
    """The tuples of an attribute ``name={{0,1},{2,3}}``."""
    found = re.search(rf"\b{name}=\{{((?:\{{[\d,]*\}},?)*)\}}", attributes)
    return [*map(_integers, re.findall(r"\{([\d,]*)\}", found[1]))] if found else []


def _integers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


_IOTA_GROUPS = re.compile(r"\breplica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH_GROUPS = re.compile(r"\breplica_groups=mesh\[([^\]]*)\](?:, device_ids=\(([^{]*)\))? ?\{([^}]*)\}")
_IOTA = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")


def _groups(attributes: str) -> Sequence[Sequence[int]] | None:
    """The groups of devices that meet in a collective; None: all of them.

        replica_groups={{0,1},{2,3}}
        replica_groups=[2,2]<=[4]            the rows of what is counted in this shape, and transposed: T(1,0)
        replica_groups=mesh['a'=2,'b'=2] {'b'}    along these axes, or parts of them: 'b':(1)2
        replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}    of devices in this order

    Raises: CompileError: they are in another form.
    """
    iota, along = _IOTA_GROUPS.search(attributes), _MESH_GROUPS.search(attributes)
    if iota:
        return _counted(iota[2], iota[3]).reshape(_integers(iota[1])).tolist()
    if along:
        sizes = {name: int(size) for name, size in re.findall(r"('[^']*')=(\d+)", along[1])}
        devices = np.arange(prod(sizes.values()))
        first, count = devices, 1  # the first device of the group of each
        for name, before, part in re.findall(r"('[^']*')(?::\((\d+)\)(\d+))?", along[3]):
            names = [*sizes]
            size = int(part or sizes[name])
            inner = sizes[name] // (int(before or 1) * size)
            stride = inner * prod([sizes[each] for each in names[names.index(name) + 1 :]])
            first, count = first - devices // stride % size * stride, count * size
        counted = _IOTA.fullmatch(along[2] or "")
        order = _counted(*counted.groups()) if counted else np.array(_integers(along[2])) if along[2] else devices
        return order[np.argsort(first, kind="stable")].reshape(-1, count).tolist()
    groups = _tuples("replica_groups", attributes) or None
    if groups is None and re.search(r"\breplica_groups=(?!\{\})", attributes):
        raise CompileError(f"costs: the groups of a collective must be in a known form, got {attributes}.")
    return groups


def _counted(shape: str, order: str | None) -> np.ndarray[Any, Any]:
    """The numbers 0, 1, ... in this shape, its dimensions in this order, as a vector."""
    sizes = _integers(shape)
    return np.arange(prod(sizes)).reshape(sizes).transpose(_integers(order or "") or None).reshape(-1)
