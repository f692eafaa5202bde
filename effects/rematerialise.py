"""Rematerialisation: a body of which reverse mode keeps what a policy allows, and computes the rest again."""

from __future__ import annotations

from typing import Any

from . import columns as columns  # they exist before the blocks that fill them
from . import trees
from .arrays import lift
from .control import Call, HigherOrder
from .errors import BadArgument
from .operations import operation
from .policies import nothing_saveable
from .programs import Program
from .stack import perform


# (y, ...) = body(x, ...); its adjoint computes again what ``policy`` does not let it keep
@operation
class Checkpoint(HigherOrder):
    bodies: tuple[Program, ...]
    policy: Any = None
    prevent_cse: bool = True
    differentiated: bool = False
    shared = 0
    carry = 0

    @property
    def saves(self):
        return nothing_saveable if self.policy is None else self.policy

    def plain(self):
        return Call(self.bodies, "checkpoint")

    def reversed(self):
        """The adjoint, which computes again: behind barriers, unless ``prevent_cse`` is false."""
        return self.with_bodies(self.bodies, differentiated=True)


# (y, ...) = (x, ...), none of which a compiler may use before all are computed
@operation
class OptimizationBarrier:
    multiple = True
    apart = True

    def result_type(op, *types):
        return types

    def evaluate(op, *xs):
        return xs

    def batch(op, dims, *xs):
        return perform(op, *xs), dims

    def jvp(op, primals, tangents):
        moved = iter(perform(op, *[dx for dx in tangents if dx is not None]))
        return perform(op, *primals), tuple([None if dx is None else next(moved) for dx in tangents])

    def transpose(op, ct, *xs, wrt):
        return None if ct[wrt] is None else perform(op, ct[wrt])[0]

    def lower(op, emit, *values):
        return emit.ops("optimization_barrier", *values, types=emit.made) if values else []


def optimization_barrier(operand: Any, /) -> Any:
    """The same tree of arrays, none of which is used before all are computed.

        optimization_barrier(x) == x

    A compiler neither moves computations across it nor merges those on its two sides.

    Source: the StableHLO specification, optimization_barrier.

    >>> optimization_barrier((1.0, 2))
    (Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    leaves, tree = trees.flatten(operand)
    return trees.unflatten(tree, perform(OptimizationBarrier(), *map(lift, leaves)))


# y = x, under a name that policies know
@operation
class Name:
    label: str

    def result_type(op, x):
        return x

    def evaluate(op, x):
        return x

    def batch(op, dims, x):
        return perform(op, x), dims[0]

    def jvp(op, primals, tangents):
        return perform(op, *primals), tangents[0]  # a tangent is never kept, so it needs no name

    def transpose(op, ct, x):
        return ct

    def lower(op, emit, x):
        return x


def checkpoint_name(x: Any, name: str) -> Any:
    """The same tree of arrays, each under a name that the policies of ``checkpoint`` know.

        checkpoint_name(x, name) == x

    A policy is asked about it as about an operation called ``name`` with the field ``name``.

    Raises: BadArgument: the name is no string.

    >>> checkpoint_name(2.0, "activations")
    Array(2., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str):
        raise BadArgument(f"checkpoint_name: the name must be a string, got {name!r}.")
    return trees.map(lambda leaf: perform(Name(name), lift(leaf)), x)
