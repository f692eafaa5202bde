"""``Exported``: a function as a portable program of StableHLO with the types and trees of its arguments and results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...effects.base.errors import BadArgument, NotDifferentiable
from ...effects.base.frozen_values import Value
from ...effects.base.tracebacks import boundary
from ...effects.sharding.mesh import MeshAxes
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.types.array_type import ArrayType
from ..xla import mlir_modules
from .artifact_writer import serialize
from .call_exported import call_exported

_CUSTOM_CALL = re.compile("custom_call:(.+)")


class DisabledSafetyCheck(Value):
    """A check that exporting or calling leaves out: that of the platform, or that of one custom call's name."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The function may be called on platforms for which it was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The program may call ``target_name``, though no one promises that the name keeps its meaning."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target name of a disabled check of custom calls; None if another check is disabled."""
        found = _CUSTOM_CALL.fullmatch(self._impl)
        return found and found[1]

    def __str__(self) -> str:
        return self._impl


class Exported(Value):
    """A function as a portable artifact, which other versions, other processes and JAX itself can call.

        deserialize(export(jit(f))(*types).serialize()).call(*args) == f(*args)

    Attributes:
        fun_name: the function's name.
        in_tree, out_tree: the structures of ``(args, kwargs)`` and of the results.
        in_avals, out_avals: the types of their leaves.
        in_shardings_hlo, out_shardings_hlo: None for each leaf; see ``in_shardings_jax``.
        nr_devices: the number of devices that execute the program together.
        platforms: those that it was lowered for; if there are several, its first argument is the index of one.
        ordered_effects, unordered_effects: the names of effects of other libraries.
        disabled_safety_checks: the checks that were left out.
        mlir_module_serialized: the program, an artifact of StableHLO; ``mlir_module()`` is its text.
        calling_convention_version: the version of what the program takes and gives.
        module_kept_var_idx: the indices of the leaves that it takes, in order.
        uses_global_constants: whether shapes have to be refined before it is compiled by JAX.
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[ArrayType, ...]
    out_tree: Any
    out_avals: tuple[ArrayType, ...]
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[None, ...]
    out_shardings_hlo: tuple[None, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[str, ...]
    unordered_effects: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    def mlir_module(self) -> str:
        """The program as text. Raises: BadArtifact: it is younger than this version of jaxlib."""
        return mlir_modules.module_text(mlir_modules.read_artifact(self.mlir_module_serialized))

    def in_shardings_jax(self, mesh: MeshAxes | None = None) -> tuple[NamedSharding | None, ...]:
        """How each leaf of the arguments is cut, over ``mesh`` or over the mesh without devices that is known.

        Raises: BadArgument: the axes of ``mesh`` are others than those for which the function was exported.
        """
        return tuple([_over(mesh, sharding) for sharding in self._in_named_shardings])

    def out_shardings_jax(self, mesh: MeshAxes | None = None) -> tuple[NamedSharding | None, ...]:
        """How each leaf of the results is cut; as ``in_shardings_jax``."""
        return tuple([_over(mesh, sharding) for sharding in self._out_named_shardings])

    @property
    def allows_other_platforms(self) -> bool:
        """Whether it may be called on platforms for which it was not exported."""
        return DisabledSafetyCheck.platform() in self.disabled_safety_checks

    def has_vjp(self) -> bool:
        """Whether the reverse derivative is known."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported pullback, of leaves: arguments, then cotangents of the results, to cotangents of the arguments.

        Raises: NotDifferentiable: it is not known.
        """
        if self._get_vjp is None:
            raise NotDifferentiable(
                f"{self.fun_name}: the derivative of an exported function must be exported with it, it was not.",
                hint="serialize(vjp_order=1), or the order that is needed.",
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes of the function, in JAX's format, with its reverse derivatives up to ``vjp_order``.

        Raises: NotExportable: a node of a tree has no registered serialization, or a dictionary has keys that are no
        strings. NotDifferentiable: it was read from bytes without a derivative of this order.
        """
        return serialize(self, vjp_order)

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the function, anywhere in a program. Its derivatives are the exported ones, in reverse.

        Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: the arguments are not those for which it was exported.
        DeviceMismatch: it was exported for another number of devices. NotExportable: it was exported for other
        platforms, or has effects other than those of foreign functions. NotDifferentiable: in forward mode.
        """
        return call_exported(self, args, kwargs)

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.in_avals))
        return f"Exported({self.fun_name}: ({types}) -> ({', '.join(map(str, self.out_avals))}))"


def _over(mesh: MeshAxes | None, sharding: NamedSharding | None) -> NamedSharding | None:
    """The sharding over a mesh of the same axes."""
    if mesh is None or sharding is None:
        return sharding
    if mesh.shape_tuple != sharding.mesh.shape_tuple or mesh.axis_types != sharding.mesh.axis_types:
        raise BadArgument(
            f"in_shardings_jax: the mesh must have the axes of the one for export, {sharding.mesh}, got {mesh}."
        )
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)  # type: ignore[arg-type]
