"""Compiling eager programs: those that ``estimate`` finds faster so, operations with bodies, and what is placed.

The result does not depend on the choice between NumPy and XLA, up to rounding and to subnormal numbers (which XLA on a
CPU flushes to zero, except for float16). The choice depends on the program and on how often it was called.

On an accelerator, or once an array was placed on a device by name, every operation is executed where its operands lie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from ...effects.base import config
from ...effects.base.caches import per_process
from ...effects.base.jax_settings import from_environment
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, Run
from ...effects.core.arrays import ConcreteArray, concrete, duplicate
from ...effects.core.columns import EVALUATE, LOWER
from ...effects.core.named_axes import PROCESSES, Axis
from ...effects.programs.program import Program
from ...effects.sharding.mesh import AbstractMesh
from ...interpreters.analysis.liveness import liveness
from ...interpreters.batching.joined_processes import of_all_processes, own_results
from ...interpreters.core import evaluate
from ...interpreters.core.evaluate import Plan
from ...interpreters.custom.rule_free_programs import without_rules
from ...interpreters.references.reference import discharge, references_in
from ..clients.gpu_driver import gpu_is_present
from ..xla.array_backend import MOST_AXES, ON_PLACED, PLACED, default_device
from ..xla.lazy import runtime
from ..xla.stablehlo_types import storage
from .compile import LoadedProgram, compile_program, fail
from .estimate import estimate
from .executable_cache import ExecutableCache
from .placement import Placement, by_settings, committed, meshes, over, where_all_lie

MOST_HELD = 1 << 24  # bytes that NumPy may hold beside operands and results, or a program is compiled at its first call
_PLANS = ExecutableCache("eager")
"""Compiled programs of eager calls, by program, and placement or settings."""


def plan(program: Program) -> Plan | None:
    """How to compile a program, for ``LaterLayers.plan``: at once what NumPy cannot execute, else by the estimate."""
    op = program.ops[0] if len(program.ops) == 1 else None
    if op is not None and op.bodied and not EVALUATE.has(type(op)):
        return Plan(inf, 0, lambda: partial(_evaluate_bodied, program))
    if op is not None and op.placed is not None:
        return Plan(inf, 0, lambda: lambda *operands: op.as_results(op.placed(*operands)))
    accelerated = _accelerated()
    if not (PLACED or accelerated):
        return _by_estimate(program)
    if op is None and not (accelerated and _by_one_launch(program)):
        return Plan(inf, 0, lambda: lambda *operands: Run.inline(BASE, program, operands))
    return Plan(inf, 0, lambda: _where_operands_lie(program))


def _by_one_launch(program: Program) -> bool:
    """Whether a program of several operations may be compiled as a whole, instead of one operation after the other: all
    of them can be, none has an effect or calls the host, and none names the devices of a mesh.
    """
    pure = not program.effects and all([LOWER.has(kind) and not kind.calls_host for kind in program.operations])
    return pure and not meshes(program)


def _by_estimate(program: Program) -> Plan | None:
    too_many_axes = any([len(storage(t)[0]) > MOST_AXES for t in program.numbered_types()])  # NumPy has no such arrays
    if too_many_axes or (len(program.ops) == 1 and _by_xla_alone(type(program.ops[0]))):
        return Plan(inf, 0, lambda: _compiled_here(program))
    found = estimate(program)
    if found is None or found.xla >= found.numpy:
        return None
    results = sum([t.nbytes for t in program.out_types])
    price = found.compile if liveness(program).peak - results < MOST_HELD else 0.0
    return Plan(found.numpy - found.xla, price, lambda: _compiled_here(program))


def _by_xla_alone(kind: Any) -> bool:
    """Whether an operation of this class can be executed in compiled programs alone, as a foreign function can."""
    return not (kind.bodied or kind.named or EVALUATE.has(kind)) and LOWER.has(kind)


def _compiled_here(program: Program) -> Callable[..., tuple[ConcreteArray, ...]]:
    """The compiled program on the default device, as a function of operands. Errors of the runtime are explained."""
    compiled = _compiled(program, None)
    execute, out_types, name = compiled.loaded.execute, compiled.types, program.name
    prepare = compiled.prepare

    def call(*operands: ConcreteArray) -> tuple[ConcreteArray, ...]:
        try:
            buffers = [x.buffer if x._buffer is None else x._buffer for x in operands]
            buffers = execute(buffers if prepare is None else prepare(buffers))
        except (RuntimeError, ValueError) as error:
            fail(error, name, operands, _number, ())
        return tuple([concrete(t, None, b) for t, b in zip(out_types, buffers)])

    return call


def _compiled(program: Program, placement: Placement | None) -> LoadedProgram:
    """The program compiled for a placement; None: for the mesh of its operations, or the default device."""
    key = _key(program, placement)
    return _PLANS.get(key, lambda: compile_program(key[0], program.name, keep_unused=True, placement=placement))


def _key(program: Program, placement: Placement | None) -> tuple[Program, Any]:
    return without_rules(program), placement or by_settings()


def _number(i: int) -> str:
    """The name of operand ``i`` in messages."""
    return f"operand {i}"


def _where_operands_lie(program: Program) -> Callable[..., Any]:
    """The function that executes a program where its operands lie.

    That is on the devices to which operands are committed, else on the default device. Until an array is placed
    elsewhere, and under the settings of the first call, all operands lie there, and it is not asked where.
    """
    by_xla = all([LOWER.has(type(op)) for op in program.ops])
    over_meshes = [op for op in program.ops if hasattr(op, "mesh")]
    named = not all([op.states_cut and isinstance(op.mesh, AbstractMesh) for op in over_meshes])
    settings, here = config.current(), None
    default_device()  # is noted in ``PLACED`` if it is another than the first
    direct = _compiled_here(program) if by_xla and not (named or PLACED or settings.mesh) else None

    def call(*operands: ConcreteArray) -> Any:
        nonlocal here
        if direct is not None and not PLACED and config.CONFIG.get().settings is settings:
            return direct(*operands)
        where = committed([x._buffer for x in operands], program.name)
        free = where is None and not named and config.current().mesh is None
        device = default_device()
        if by_xla and not (free and device.platform == "cpu" and device == runtime.backend("cpu").default_device):
            return _executed(program, where, operands)
        here = here or evaluate.chosen(program, _by_estimate(program))
        return here(*operands)

    return call


def _evaluate_bodied(program: Program, *operands: ConcreteArray) -> Any:
    """The results of a higher-order operation by its compiled program, on the devices of its operands."""
    (op,) = program.ops
    refs = references_in(op.effects)
    if refs:
        return op.as_results(discharge(op, operands, refs))  # type: ignore[arg-type]
    if Axis(PROCESSES) in op.effects:
        of_all, whole, rows = of_all_processes(without_rules(program), operands, meshes(program)[0])
        return own_results(_executed(of_all, where_all_lie(of_all, whole) or over(rows.mesh), whole), rows)
    if PLACED:
        return _executed(program, where_all_lie(program, operands), operands)
    if op.runs == "until" and not op.effects and _key(program, None) not in _PLANS.entries:  # type: ignore[attr-defined]
        _, shared, carry, _ = op.groups(operands)  # type: ignore[attr-defined]
        if not evaluate.function_of(op.bodies[0])(*shared, *carry)[0]:  # type: ignore[attr-defined]
            return tuple(map(duplicate, carry))  # compiling would take a thousand times as long as this test
    return _executed(program, None, operands)


def _executed(program: Program, where: Placement | None, operands: tuple[ConcreteArray, ...]) -> Any:
    compiled = _compiled(program, where)
    try:
        return compiled.execute(compiled.moved([x.buffer for x in operands]), where is not None)
    except (RuntimeError, ValueError) as error:
        fail(error, program.name, operands, _number, ())


@per_process
def _accelerated() -> bool:
    """Whether the default device is an accelerator; where none can be, the runtime is not imported to know."""
    named = from_environment("platforms")[1]
    possible = not named.startswith("cpu") if named else gpu_is_present()
    return possible and default_device().platform != "cpu"


def install() -> None:
    """Register this module with the base interpretation; called once, when the package is imported."""
    LaterLayers.plan = staticmethod(plan)
    ON_PLACED.append(evaluate.forget_executors)
