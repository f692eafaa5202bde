"""Sharding rules: how the results of an operation are cut over a mesh with explicit axes, from how its operands are.

    dot_general    (i, k), (k, j) -> (i, j)

A rule calls each dimension of operands and results by a factor, as Shardy's do; dimensions of one factor are cut alike.
``cut_results`` is the one place where rules become the cuts of types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from math import prod
from typing import Any, NamedTuple

from ..base.errors import RegistrationError, ShardingTypeError
from ..types.array_type import ArrayType
from ..types.dtype_families import ANY_INEXACT
from .mesh import AbstractMesh
from .named_sharding import cut_over
from .partition_spec import UNCONSTRAINED, PartitionSpec, entry_axes

Entry = Any  # of a dimension: None, an axis, or a tuple of axes, the first one major
Factors = Sequence[Hashable]
Sums = tuple[frozenset[Hashable], frozenset[Hashable]]  # the axes along which a value is unreduced, and reduced
LinearTogether = Callable[[Sequence[int]], Sequence[int]]  # the operands that are linear with these, or none
_NO_SUMS: Sums = (frozenset(), frozenset())
ANOTHER_WAY = "out_sharding= says how the result is cut; or cut an operand otherwise before: hx.reshard(x, spec)."


class ShardingRule(NamedTuple):
    """The factors of the dimensions of each operand, and of each result.

    Dimensions of one factor are cut alike: one that is whole joins with any, and others must agree. A factor that no
    result has is summed over: where two operands are cut along it, the cut of the result is ambiguous. Dimensions of a
    factor that results alone have, and those of the factor None, are whole.

    ``whole``: factors along which operands must not be cut. ``equal``: those along which whole dimensions join with
    none but whole ones.
    """

    operands: Sequence[Factors]
    results: Sequence[Factors]
    whole: Collection[Hashable] = ()
    equal: Collection[Hashable] = ()


def entries_of(t: ArrayType) -> tuple[Entry, ...]:
    """The entry of each dimension of a type."""
    return (None,) * len(t.shape) if t.cut is None else tuple(t.cut.spec)


def numbered(t: ArrayType) -> tuple[int, ...]:
    """The numbers of the dimensions of a type, as factors."""
    return tuple(range(len(t.shape)))


# Rules of operations: ``(op, operands, results)``, which are types


def alike(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> ShardingRule:
    """Dimension d of operands and results is one; operands of rank 0 are numbers beside them."""
    return ShardingRule([*map(numbered, operands)], [*map(numbered, results)])


def equally(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> ShardingRule:
    """``alike``, of operands that must be cut equally."""
    return alike(op, operands, results)._replace(equal=numbered(results[0]))


def updated(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> ShardingRule:
    """``equally``, of an operand and what replaces a part of it; of several rows a single one is whole."""
    x, u, *starts = operands
    part = [None if n == 1 < x.shape[d] else d for d, n in enumerate(u.shape)]
    return ShardingRule([numbered(x), part, *map(numbered, starts)], [numbered(x)], equal=numbered(x))


def sliced(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> ShardingRule:
    """``alike``, of a part of the first operand; of several rows a single one is whole."""
    x, y = operands[0], results[0]
    return ShardingRule([numbered(x)], [[None if n == 1 < x.shape[d] else d for d, n in enumerate(y.shape)]])


def reduced(op: Any, operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> ShardingRule:
    """``op.axes`` are reduced."""
    kept = [d for d in numbered(operands[0]) if d not in op.axes]
    return ShardingRule([*map(numbered, operands)], [kept for _ in results])


# The types of results


def hidden(mesh: AbstractMesh, t: ArrayType) -> ArrayType:
    """The type with every dimension left to the compiler."""
    return t.cut_by(cut_over(mesh, [UNCONSTRAINED] * len(t.shape)))


def cut_results(
    name: str, rule: ShardingRule | Sequence[Sequence[Entry]], operands: Sequence[ArrayType],
    results: Sequence[ArrayType], sums: Sequence[Sums] | None = None,
) -> list[ArrayType]:
    """The types of the results of the operation ``name``, cut as its rule, or the entries that it gives for each, say;
    with the unreduced and the reduced axes of each, by default none.

    Raises: ShardingTypeError: the operands do not fit, or the results could not be cut so.
    """
    mesh = one_mesh(name, operands)
    rows = _joined(name, rule, operands) if isinstance(rule, ShardingRule) else rule
    every = sums or [_NO_SUMS] * len(results)
    return [_cut(name, t, row, mesh, operands, axes) for t, row, axes in zip(results, rows, every)]


def summed_axes(
    name: str, operands: Sequence[ArrayType], together: LinearTogether, contracts: bool
) -> Sums:
    """The axes along which the results of the operation ``name`` are unreduced, and those along which they are reduced.

    An operation that is linear in its unreduced operands, ``together(positions)``, gives partial sums; the others are
    reduced along the same axes, or numbers, of which one device has the value where they are added. Of reduced operands
    the results are reduced, but for contractions, and all must be but numbers: whole values of rank 0.

    Raises: ShardingTypeError: it is not linear in them, or operands differ in their axes.
    """
    if not any([t.cut is not None and t.cut.spec.summed_axes for t in operands]):
        return _NO_SUMS
    manual = frozenset[Hashable]().union(*[t.manual for t in operands])
    specs = [PartitionSpec() if t.cut is None else t.cut.spec.without_sums(manual) for t in operands]
    of_devices = _sums_of_devices(name, operands, together) if manual else _NO_SUMS
    partial = [i for i, spec in enumerate(specs) if spec.unreduced]
    unreduced = frozenset[Hashable]().union(*[spec.unreduced for spec in specs])
    arrays = [i for i, t in enumerate(operands) if t.shape] or range(len(operands))
    reduced = frozenset[Hashable]().union(*[specs[i].reduced for i in arrays])
    if partial and (any([specs[i].unreduced != unreduced for i in partial]) or not together(partial)):
        raise ShardingTypeError(
            f"{name}: it must be linear in partial sums, all of them along the same axes, got {shown(operands)}.",
            hint="hx.reshard(x, P(...)) sums them before.",
        )
    wanted = unreduced if partial else frozenset() if contracts else reduced
    for i, (spec, t) in enumerate(zip(specs, operands)):
        plain = not spec.reduced and (not t.shape or t.dtype not in ANY_INEXACT)  # a number, or of no cotangent
        beside = plain or i in partial or i not in arrays
        if wanted and not beside and spec.reduced != wanted:
            raise ShardingTypeError(
                f"{name}: what meets partial sums or reduced values must be reduced along the same axes, got "
                f"{shown(operands)}.",
                hint=f"hx.reshard(x, P(..., reduced={{{', '.join(sorted(map(repr, wanted)))}}})) makes {t} so.",
            )
    return of_devices[0] | unreduced, of_devices[1] | (frozenset() if partial else wanted)


def _sums_of_devices(name: str, operands: Sequence[ArrayType], together: LinearTogether) -> Sums:
    """``summed_axes`` along the axes that ``shard_map`` divides, where each device performs the operation.

    Linear in all summands, and beside operands that are equal on all devices, it gives summands. Reduced operands give
    reduced results beside equal ones, and results that vary beside those that vary.
    """
    mats = [t.mat for t in operands]
    unreduced, reduced = [set[Hashable]().union(*axes) for axes in zip(*[(m.unreduced, m.reduced) for m in mats])]
    for axis in unreduced | reduced:
        partial = [i for i, mat in enumerate(mats) if axis in mat.unreduced]
        varies = any([axis in mat.varying for mat in mats])
        if partial and (varies or {*together(partial)} != {*partial}):
            raise ShardingTypeError(
                f"{name}: it must be linear in its summands along {axis!r}, and the other operands equal on all "
                f"devices, got {shown(operands)}.",
                hint=f"lax.psum(x, {axis!r}) sums them before.",
            )
        if partial or varies:
            reduced.discard(axis)
    return frozenset(unreduced), frozenset(reduced)


def one_mesh(name: str, types: Sequence[ArrayType]) -> AbstractMesh:
    """The mesh over which the types are cut that state cuts. Raises: ShardingTypeError: they are over different ones.
    """
    meshes = [*dict.fromkeys([t.cut.mesh for t in types if t.cut is not None])]
    if len(meshes) > 1:
        raise ShardingTypeError(
            f"{name}: values must be cut over one mesh, got {shown(types)} over {' and '.join(map(str, meshes))}.",
            hint="hx.reshard(x, NamedSharding(mesh, spec)), with the mesh of the others.",
        )
    return meshes[0]


def _joined(name: str, rule: ShardingRule, operands: Sequence[ArrayType]) -> list[list[Entry]]:
    """The entries of each result."""
    found: dict[Hashable, list[Entry]] = {}
    for t, factors in zip(operands, rule.operands):
        for factor, entry in zip(factors, entries_of(t)):
            found.setdefault(factor, []).append(entry)
    kept = {factor for factors in rule.results for factor in factors}
    entries = {factor: _entry(name, rule, factor, each, factor in kept, operands) for factor, each in found.items()}
    return [[None if factor is None else entries.get(factor) for factor in factors] for factors in rule.results]


def _entry(
    name: str, rule: ShardingRule, factor: Hashable, found: Sequence[Entry], kept: bool, operands: Sequence[ArrayType]
) -> Entry:
    """The entry of a factor, from those of the operands' dimensions of this factor."""
    cut = [entry for entry in found if entry is not None]
    if not cut:
        return None
    if factor in rule.whole:
        raise ShardingTypeError(
            f"{name}: dimensions that it works along must be whole, got {shown(operands)}.", hint=ANOTHER_WAY)
    strict = factor in rule.equal
    if (strict or kept) and {*(found if strict else cut)} != {cut[0]}:
        raise ShardingTypeError(f"{name}: operands must be cut alike, got {shown(operands)}.", hint=ANOTHER_WAY)
    if not kept and len(cut) > 1:
        raise ShardingTypeError(
            f"{name}: the result may be cut in several ways, as both operands are along a dimension that is summed "
            f"over, got {shown(operands)}.",
            hint=ANOTHER_WAY,
        )
    return cut[0]


def _cut(
    name: str, t: ArrayType, entries: Sequence[Entry], mesh: AbstractMesh, operands: Sequence[ArrayType], sums: Sums
) -> ArrayType:
    """A result with these entries and summed axes. Raises: ShardingTypeError: an axis stands twice, or a size does not
    divide. RegistrationError: the rule does not fit the result.
    """
    names = PartitionSpec(*entries).axes
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ShardingTypeError(
            f"{name}: the result would be cut twice along {twice!r}, got {shown(operands)}.", hint=ANOTHER_WAY)
    if len(entries) != len(t.shape):
        raise RegistrationError(
            f"{name}: sharding_rule must name each dimension of its result {t}, got {len(entries)} of them.")
    sizes = dict(mesh.shape_tuple)
    for n, entry in zip(t.shape, entries):
        count = prod([sizes[axis] for axis in entry_axes(entry)])
        if n % count:
            raise ShardingTypeError(
                f"{name}: a dimension that is cut along {entry!r} must be a multiple of {count}, got size {n} from "
                f"{shown(operands)}.",
                hint=ANOTHER_WAY,
            )
    return t.cut_by(cut_over(mesh, entries, *sums))


def shown(types: Sequence[ArrayType]) -> str:
    """Types, for messages."""
    return " and ".join(map(str, types))
