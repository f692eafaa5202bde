"""The module of a program that stands alone: its large constants are in it, and it may be one for several platforms.

    main(arguments)                        on one platform
    main(index of the platform, arguments) on several, one branch for each
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import NotExportable
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.programs.closure_conversion import close
from ...effects.programs.program import Program
from ...effects.sharding.named_sharding import NamedSharding, Sharding
from ...effects.types.array_type import array_type
from ...effects.types.dimension_equations import NO_VARIABLES, DimensionEquations
from ...effects.types.dtypes import int32
from ...interpreters.analysis.simplify import dead_code_elimination
from ...interpreters.custom.custom_partitioning import without_partitions
from ...interpreters.handlers.default_clauses import with_defaults
from ..compile.compile import check_lowerable
from ..compile.emitter import function_text
from ..compile.placement import Placement
from ..compile.stablehlo_modules import EntryEmitter, attributes
from ..xla import mlir_modules
from .dimension_arguments import bind_variables

PLATFORM_INDEX = array_type((), int32)
_DEVICE_ROUTINES = (
    r"lapack_[sdcz](potrf|geqrf|(or|un)gqr|(sy|he)evd|geev|gesdd|getrf|(sy|he)trd|gehrd|gees|trsm|gtsv)_ffi",
    r"(cusolver|hipsolver)_(getrf|geqrf|orgqr|potrf|syevd|gesvdj?|gesdd|sytrd)_ffi", r"cusparse_gtsv2_ffi",
    r"(cu|hip)_(lu_pivots_to_permutation|threefry2x32_ffi)", r"Eigh|Qr|LuDecomposition|ApproxTopK",
    r"shape_assertion|stablehlo\.dynamic_(reduce_window|top_k|approx_top_k|rng_bit_generator)",
    r"ProductOfElementaryHouseholderReflectors|Sharding|SPMD(FullToShard|ShardToFull)Shape|annotate_device_placement",
    r"LayoutConstraint",
)
_STABLE = re.compile("|".join(_DEVICE_ROUTINES))
"""What jaxlib keeps under its name, with its meaning, for half a year at least."""


class ExportedModule(NamedTuple):
    """A portable artifact, and the indices of the arguments that it takes."""

    artifact: bytes
    kept: tuple[int, ...]


def exported_module(
    program: Program,
    name: str,
    keep_unused: bool,
    placement: Placement,
    platforms: Sequence[str],
    allowed: Collection[str] = (),
    equations: DimensionEquations = NO_VARIABLES,
) -> ExportedModule:
    """The artifact of a program; ``allowed`` are what it may call by name though jaxlib does not promise its meaning.

    ``equations`` give the dimension variables of its arguments, all of which it then takes.

    Raises: NotExportable: it calls the host, or something by name. UnhandledEffect: an effect has no lowering.
    EscapedBox: it captured a traced value.
    """
    closed, captured = close(without_partitions(with_defaults(program)))
    for x in captured:
        if x.run is not None:
            raise escaped_box_error(x)
    check_lowerable(closed, name)
    count = len(captured)
    keep = [False] * count + [keep_unused or bool(equations.solutions)] * (len(closed.in_types) - count)
    pruned, used = dead_code_elimination(closed, instantiate=keep)
    kept = tuple([i for i, yes in enumerate(used[count:]) if yes])
    constants = [x for x, yes in zip(captured, used) if yes]
    module = mlir_modules.parsed(_text(pruned, constants, name, kept, placement, platforms, equations))
    _check_targets(name, module, allowed)
    return ExportedModule(mlir_modules.portable_artifact(module), kept)


def _text(
    program: Program,
    constants: Sequence[Any],
    name: str,
    kept: Sequence[int],
    placement: Placement,
    platforms: Sequence[str],
    equations: DimensionEquations,
) -> str:
    """The module of a program whose first inputs are ``constants``, its others the arguments ``kept``."""
    emit = EntryEmitter(placement.mesh, platforms[0])
    chosen = [PLATFORM_INDEX] if len(platforms) > 1 else []
    types = [*chosen, *program.in_types[len(constants) :]]

    def body(*values: Any) -> Any:
        bind_variables(emit, values[len(chosen) :], equations)
        given = [*[emit.constant(x.value, x.type) for x in constants], *values[len(chosen) :]]
        if not chosen:
            return emit.program(program, given)
        calls = [
            lambda platform=platform: emit.on(platform, lambda: emit.call(program, name, given))
            for platform in platforms
        ]
        return emit.case(values[0], calls, program.out_types)

    cut: Sequence[NamedSharding | None] = [*[None] * len(chosen), *shardings(placement.arguments, kept)]
    results = shardings(placement.results, range(len(program.out_types)))
    takes, gives = [
        [attributes(emit.place(s, t)) for s, t in zip(asked, its)]
        for asked, its in ((cut, types), (results, program.out_types))
    ]
    main = function_text(emit, types, body, "public @main", takes, gives)
    if emit.calls:
        called = ", ".join(dict.fromkeys([str(call.op) for call in emit.calls]))
        raise NotExportable(
            f"export: {name} must not call the host, whose functions stay in this process, got {called}.",
            hint="return what it is to see as a result.",
        )
    return emit.module(name, main)


def shardings(said: Sequence[Sharding | None], indices: Sequence[int]) -> list[NamedSharding | None]:
    """The shardings over meshes of the arguments or results with these indices; None for each without one."""
    found = [said[i] if said else None for i in indices]
    return [sharding if isinstance(sharding, NamedSharding) else None for sharding in found]


def _check_targets(name: str, module: Any, allowed: Collection[str]) -> None:
    """Raises: NotExportable: the program calls something whose meaning under its name is not promised."""
    called = mlir_modules.called_targets(module)
    found = sorted([target for target in called if not _STABLE.fullmatch(target) and target not in allowed])
    if found:
        raise NotExportable(
            f"export: what {name} calls by name must keep its meaning in later versions, got {', '.join(found)}.",
            hint=f"export(f, disabled_checks=[DisabledSafetyCheck.custom_call({found[0]!r})]).",
        )
