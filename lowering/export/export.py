"""export: a jitted function to a portable artifact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument
from ...effects.base.frozen_values import Value
from ...effects.base.tracebacks import boundary
from ...effects.functions.captured import jit_info
from ...effects.programs.program import Program
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.trees import pytrees
from ...effects.types.dimension_equations import solve
from ...effects.types.dtypes import tangent_dtype
from ...effects.types.extent import common_scope
from ...effects.types.sized import extents_in
from ...interpreters.transformations.derivatives import vjp
from ..compile.placement import settle
from ..jit.ahead_of_time import described, traced_call
from ..jit.devices import platform_in_force
from ..jit.jit import jit
from ..xla.lazy import runtime
from .artifact_reader import CALLING_CONVENTION
from .artifact_schema import FOREIGN_EFFECT
from .dimension_arguments import argument_labels
from .exported import DisabledSafetyCheck, Exported
from .exported_module import exported_module, shardings


def default_export_platform() -> str:
    """The platform on which programs are executed: "cpu", "cuda", "rocm" or "tpu".

    >>> default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return str(runtime.backend(platform_in_force()).platform)


@boundary
def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """A function from types of arguments to the exported function: a program that can be stored, sent and called.

        export(jit(f))(*types).call(*args) == f(*args)

    The program has all that ``f`` captured, and needs neither its source nor this version; JAX can call it too.

    Args:
        fun_jit: what ``jit`` returned, or a function of handlax.
        platforms: the names of those for which it is lowered, such as "cpu", "cuda", "rocm" and "tpu"; by default the
            one in force.
        disabled_checks: checks to leave out.

    Raises: BadArgument: ``fun_jit`` is not jitted, or platforms are no names. The result raises NotExportable where the
    function calls the host, or what has no promised meaning, and as ``jit(f).lower``.

    >>> from handlax import ShapeDtypeStruct, jit, lax
    >>> exported = export(jit(lax.sin))(ShapeDtypeStruct((3,), "float32"))
    >>> exported
    Exported(sin: (f32[3]) -> (f32[3]))
    >>> type(exported.serialize())
    <class 'bytearray'>
    """
    jitted = jit_info(jit(fun_jit) if _is_of_handlax(fun_jit) else fun_jit)
    if jitted is None:
        raise BadArgument(f"export: a jitted function is needed, got {fun_jit!r}.", hint="export(jit(f)).")
    chosen = (default_export_platform(),) if platforms is None else tuple(platforms)
    if not chosen or len({*chosen}) != len(chosen) or not all([isinstance(name, str) for name in chosen]):
        raise BadArgument(f"export: platforms must be different names, such as 'cpu' and 'cuda', got {platforms!r}.")
    checks = tuple(disabled_checks)

    def exported(*args_specs: Any, **kwargs_specs: Any) -> Exported:
        shapes = [getattr(x, "shape", ()) for x in pytrees.leaves((args_specs, kwargs_specs))]
        common_scope([symbol for shape in shapes for size in extents_in(tuple(shape)) for symbol in size.lengths])
        call = traced_call(jitted, args_specs, kwargs_specs, "export")
        program, name = call.trace.recorded, call.jitted.name
        placement = settle(program, name, call.placement)
        allowed = [target for check in checks if (target := check.is_custom_call()) is not None]
        equations = solve(call.types, argument_labels(call.in_tree), f"export: {name}")
        module = exported_module(program, name, jitted.keep_unused, placement, chosen, allowed, equations)
        ins, outs = [tuple([t.strong() for t in types]) for types in (call.types, program.out_types)]
        takes = shardings(placement.arguments, range(len(ins)))
        gives = shardings(placement.results, range(len(outs)))
        cuts = [_without_devices(s) if i in module.kept else None for i, s in enumerate(takes)]
        return Exported(
            fun_name=name,
            in_tree=call.in_tree,
            in_avals=ins,
            out_tree=call.trace.out_tree,
            out_avals=outs,
            _in_named_shardings=tuple(cuts),
            _out_named_shardings=tuple(map(_without_devices, gives)),
            in_shardings_hlo=(None,) * len(ins),
            out_shardings_hlo=(None,) * len(outs),
            nr_devices=1 if placement.mesh is None else placement.mesh.size,
            platforms=chosen,
            ordered_effects=(),
            unordered_effects=(FOREIGN_EFFECT,) if program.effects else (),
            disabled_safety_checks=checks,
            mlir_module_serialized=module.artifact,
            calling_convention_version=CALLING_CONVENTION,
            module_kept_var_idx=module.kept,
            uses_global_constants=len(chosen) > 1 or bool(equations.solutions),
            _get_vjp=ProgramVjp(program, tuple(takes), tuple(gives)),
        )

    return exported


def _is_of_handlax(fun: Any) -> bool:
    """Whether this is a function such as ``numpy.sin``."""
    own, module = __name__.partition(".")[0], str(getattr(fun, "__module__", ""))
    return callable(fun) and module.partition(".")[0] == own and jit_info(fun) is None


def _without_devices(sharding: NamedSharding | None) -> NamedSharding | None:
    """The sharding over the mesh without its devices."""
    if sharding is None:
        return None
    return NamedSharding(sharding.mesh.abstract_mesh, sharding.spec, memory_kind=sharding.memory_kind)


class ProgramVjp(Value):
    """The exported pullback of an exported program, made when it is asked for; the shardings are those of the program's
    arguments and results.
    """

    program: Program
    takes: tuple[NamedSharding | None, ...]
    gives: tuple[NamedSharding | None, ...]

    def __call__(self, exported: Exported) -> Exported:
        count = len(exported.in_avals)

        def pullback(*arguments: Any) -> Any:
            _, pull = vjp(lambda *xs: tuple(self.program(*xs)), *arguments[:count])
            return pull(arguments[count:])

        pullback.__name__ = f"{exported.fun_name}_vjp"
        types = [*exported.in_avals, *[t.update(dtype=tangent_dtype(t.dtype)) for t in exported.out_avals]]
        jitted = jit(pullback, in_shardings=(*self.takes, *self.gives), out_shardings=self.takes)
        make = export(jitted, platforms=exported.platforms, disabled_checks=exported.disabled_safety_checks)
        return make(*map(described, types))
