"""Rematerialisation: reverse mode of a body saves the residuals that a policy allows and recomputes the others.

Here too is what a compiler may not move or drop: ``optimization_barrier``, ``dce_sink``.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import BadArgument
from ..base.stack import perform
from ..core.arrays import as_array
from ..core.columns import componentwise, data_movement
from ..core.operation import effect, operation
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..sharding.sharding_rules import alike, entries_of
from ..trees import pytrees
from .checkpoint_policies import nothing_saveable


# (y, ...) = body(x, ...); its adjoint recomputes the residuals that ``policy`` does not allow to save
@operation
class Checkpoint(HigherOrder):
    bodies: tuple[Program, ...]
    policy: Any = None
    prevent_cse: bool = True
    differentiated: bool = False
    primitive_aliases = ("remat",)
    shared = 0
    carry = 0

    @property
    def saves(self):
        return nothing_saveable if self.policy is None else self.policy

    def reversed(self):
        """The operation as used by its adjoint: recomputation goes behind barriers, unless ``prevent_cse`` is false."""
        return self.with_bodies(self.bodies, differentiated=True)


# (y, ...) = (x, ...); no result is available before all operands are computed
@operation
class OptimizationBarrier:
    multiple_results = True
    is_view = True
    keeps_memory = True
    costly = True

    def result_type(op, *types):
        return types

    def sharding_rule(op, operands, results):
        return [*map(entries_of, operands)]

    def evaluate(op, *xs):
        return xs

    def batch(op, dims, *xs):
        return perform(op, *xs), dims

    jvp = componentwise

    def transpose(op, ct, *xs, wrt):
        return None if ct[wrt] is None else perform(op, ct[wrt])[0]

    def lower(op, emit, *values):
        return emit.ops("optimization_barrier", *values, types=emit.made) if values else []

    flops = data_movement


# (y, ...) = (x, ...): where one part of a program hands over to the next; no kernel computes values of both sides
@operation
class Boundary(OptimizationBarrier):
    def lower(op, emit, *values):
        return emit.boundary(values)


def optimization_barrier(operand: Any, /) -> Any:
    """The same tree of arrays, none of which is available before all are computed.

        optimization_barrier(x) == x

    A compiler neither moves computations across it nor merges those on its two sides.

    Source: the StableHLO specification, optimization_barrier.

    >>> optimization_barrier((1.0, 2))
    (Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    leaves, tree = pytrees.flatten(operand)
    return pytrees.unflatten(tree, perform(OptimizationBarrier(), *map(as_array, leaves)))


# the operands are used; for all lanes at once
@effect(diff="stop")
class DceSink:
    prevent_mlir_dce: bool = False
    multiple_results = True

    def result_type(op, *types):
        return ()

    def evaluate(op, *xs):
        return ()

    def batch(op, dims, *xs):
        return perform(op, *xs), ()

    def lower(op, emit, *values):
        if op.prevent_mlir_dce:
            emit.ops("custom_call", *values, types=(), attributes=_SINK)
        return ()


_SINK = 'call_target_name = "dce_sink", has_side_effect = true, api_version = 4 : i32, backend_config = {}'


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep in the program what computes the tree ``val``, though no result needs it.

    Args:
        prevent_mlir_dce: keep it in what is compiled too; else XLA may remove it.

    >>> from handlax import make_program, numpy as hnp
    >>> len(make_program(lambda x: dce_sink(hnp.sin(x)))(1.0).ops)
    2
    """
    perform(DceSink(bool(prevent_mlir_dce)), *map(as_array, pytrees.leaves(val)))


# y = x, labelled with a name for checkpoint policies
@operation
class Name:
    label: str
    is_view = True
    keeps_memory = True
    param_names = {"label": "name"}

    def result_type(op, x):
        return x

    sharding_rule = alike

    def evaluate(op, x):
        return x

    def batch(op, dims, x):
        return perform(op, x), dims[0]

    def jvp(op, primals, tangents):
        return perform(op, *primals), tangents[0]  # a tangent is never a residual, so it needs no name

    def transpose(op, ct, x):
        return ct

    def lower(op, emit, x):
        return x

    flops = data_movement

    @property
    def checkpoint_name(op):
        return op.label


def checkpoint_name(x: Any, name: str) -> Any:
    """The same tree of arrays, each labelled with a name for the policies of ``checkpoint``.

        checkpoint_name(x, name) == x

    Policies are called with an operation whose ``name`` is 'name' and with the keyword argument ``name``.

    Raises: BadArgument: the name is no string.

    >>> checkpoint_name(2.0, "activations")
    Array(2., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str):
        raise BadArgument(f"checkpoint_name: the name must be a string, got {name!r}.")
    return pytrees.map(lambda leaf: perform(Name(name), as_array(leaf)), x)
