"""Rules of factors, by which a user says how the results of a function may be cut over devices when its operands are.

    "... i, i j -> ... j"     a product of matrices: rows may be cut, since operand and result have the same factors

Each dimension of operands and results is a factor, or a product of several, the first one major. Dimensions of one
factor are cut alike. ``sized`` fits a rule to shapes, ``factors_text`` is the attribute of a StableHLO operation.

Source: Shardy's documentation, ``OpShardingRuleAttr``; the notation is that of einops.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..base.errors import BadArgument, NotAnInteger, ShapeMismatch
from ..base.immutables import KeyedObject
from ..types.array_type import Shape
from .sharding_rules import ShardingRule

BATCHING = "…"
"""The leading dimensions that a rule does not name; with a number behind it, those of one of several groups."""
_FACTOR = re.compile(r"[a-zA-Z]\w*")
_BATCHING = re.compile(rf"{BATCHING}\d*")
_TOKEN = re.compile(r"(?P<rest>\.\.\.\d*)|(?P<factor>[a-zA-Z]\w*)|(?P<mark>[(),])|\s+")

class FactorKinds(NamedTuple):
    """The factors of a rule that are of a kind: summed over, never cut, and those whose parts devices exchange."""

    reduction_factors: tuple[str, ...] = ()
    need_replication_factors: tuple[str, ...] = ()
    permutation_factors: tuple[str, ...] = ()


class CompoundFactor(tuple[str, ...]):
    """The factors of a dimension that is the product of several: ``CompoundFactor("i", "j")``, of which i is major.

    Raises: BadArgument: they are fewer than two, or one is no factor.
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise BadArgument(f"CompoundFactor: a product must have two factors or more, got {factors}.")
        for factor in factors:
            _need_factor("CompoundFactor", factor)
        return super().__new__(cls, factors)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class ArrayMapping(tuple[str | CompoundFactor, ...]):
    """The factors of the dimensions of an array: ``ArrayMapping(BATCHING, "i", CompoundFactor("j", "k"))``.

    Raises: BadArgument: one is neither a factor nor a CompoundFactor, or BATCHING is not the first.
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for d, dimension in enumerate(dim_mappings):
            if isinstance(dimension, str) and _BATCHING.fullmatch(dimension):
                if d:
                    raise BadArgument(f"ArrayMapping: only the first dimensions may be unnamed, got {dim_mappings}.")
            elif not isinstance(dimension, CompoundFactor):
                _need_factor("ArrayMapping", dimension)
        return super().__new__(cls, dim_mappings)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


def _need_factor(where: str, factor: Any) -> None:
    if not isinstance(factor, str) or not _FACTOR.fullmatch(factor):
        raise BadArgument(f"{where}: a factor must be a word that begins with a letter, got {factor!r}.")


class SdyShardingRule(KeyedObject):
    """A rule of factors: those of each operand and of each result.

    Args:
        operand_mappings, result_mappings: an ``ArrayMapping``, or a tuple like it, for each array.
        reduction_factors: those over which results are sums, which have them no more.
        need_replication_factors: those along which no array must be cut.
        permutation_factors: those along which devices exchange parts.
        factor_sizes: the sizes of the factors that are no whole dimension anywhere.

    Raises: BadArgument: a size is missing or not needed, or a kind of factors has one that the rule has not.
    """

    __slots__ = ("operand_mappings", "result_mappings", "factor_sizes", "kinds", *FactorKinds._fields)
    _guard = ("sharding rules", "make another SdyShardingRule.")
    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    factor_sizes: Mapping[str, int]
    kinds: FactorKinds
    reduction_factors: tuple[str, ...]
    need_replication_factors: tuple[str, ...]
    permutation_factors: tuple[str, ...]

    def __init__(
        self, operand_mappings: Iterable[Iterable[Any]], result_mappings: Iterable[Iterable[Any]], *,
        reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (), **factor_sizes: int,
    ):
        operands, results = [
            tuple([ArrayMapping(*each) for each in mappings]) for mappings in (operand_mappings, result_mappings)]
        kinds = FactorKinds(reduction_factors, need_replication_factors, permutation_factors)
        named = kinds._asdict()
        _check_sizes((*operands, *results), factor_sizes)
        _check_kinds(named, {factor for mapping in (*operands, *results) for factor in _factors(mapping)})
        sizes = dict(factor_sizes)
        self._fill(operand_mappings=operands, result_mappings=results, factor_sizes=sizes, kinds=kinds, **named)
        self._set_key(operands, results, tuple(sizes.items()), kinds)

    def __repr__(self) -> str:
        kinds = [f" {kind}={factors}" for kind, factors in self.kinds._asdict().items() if factors]
        arrays = f"{self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}"
        return f"SdyShardingRule({arrays}{''.join(kinds)})"


def _factors(mapping: ArrayMapping) -> list[str]:
    return [factor for dim in mapping for factor in (dim if isinstance(dim, CompoundFactor) else (dim,))]


def _check_sizes(mappings: Sequence[ArrayMapping], sizes: Mapping[str, Any]) -> None:
    """Raises: BadArgument: a factor that is no whole dimension has no size, or another has one."""
    whole = {dim for mapping in mappings for dim in mapping if isinstance(dim, str)}
    parts = {factor for mapping in mappings for factor in _factors(mapping)} - whole
    for factor, size in sizes.items():
        if type(size) is not int:
            raise NotAnInteger(f"sharding_rule: the size of a factor must be an integer, got {factor}={size!r}.")
        if factor not in parts:
            what = "a whole dimension" if factor in whole else "no factor of it"
            raise BadArgument(f"sharding_rule: sizes must be those of parts of dimensions, got one of {factor!r}, "
                              f"which is {what}.")
    for factor in sorted(parts - {*sizes}):
        raise BadArgument(
            f"sharding_rule: a factor that is a part of dimensions alone needs a size, got none of {factor!r}.",
            hint=f"def_partition(..., {factor}=2).",
        )


def _check_kinds(kinds: Mapping[str, Any], known: set[str]) -> None:
    """Raises: BadArgument: kinds are no tuples of factors of the rule, or one factor is of two."""
    for kind, factors in kinds.items():
        if not isinstance(factors, tuple):
            raise BadArgument(f"{kind}: a tuple of factors is needed, got {factors!r}.", hint=f"{kind}=('i',).")
        for factor in factors:
            if factor not in known:
                raise BadArgument(f"{kind}: they must be factors of the rule, which has "
                                  f"{', '.join(sorted(known))}, got {factor!r}.")
    for factor, count in Counter([factor for factors in kinds.values() for factor in factors]).items():
        if count > 1:
            raise BadArgument(f"sharding_rule: a factor must be of one kind, once, got {factor!r} {count} times.")


def parse_rule(rule: Any, **options: Any) -> SdyShardingRule:
    """The rule of a text such as ``"... i, (i j) -> ... j"``; the options are those of ``SdyShardingRule``.

    Names with spaces between them are the dimensions of an array, commas part arrays, and ``(i j)`` is a dimension
    that is the product of two factors. ``...`` are the dimensions before those named; ``...1``, ``...2`` other ones.

    Raises: BadArgument: it is no such text.

    >>> parse_rule("i (j k), k -> i j", reduction_factors=("k",)).operand_mappings
    (('i', ('j', 'k')), ('k',))
    """
    sides = rule.split("->") if isinstance(rule, str) else ()
    if len(sides) != 2:
        raise BadArgument(f"sharding_rule: a text with one -> is needed, or an SdyShardingRule, got {rule!r}.",
                          hint="'i j -> i j'.")
    return SdyShardingRule(*[_arrays(rule, side) for side in sides], **options)


def _arrays(rule: str, side: str) -> list[list[str | CompoundFactor]]:
    """The factors of the arrays on one side of a rule."""
    arrays: list[list[Any]] = [[]]
    group: list[str] | None = None
    place = 0
    while place < len(side):
        found = _TOKEN.match(side, place)
        if found is None:
            raise _bad_rule(rule, f"it must consist of factors, brackets, commas and ..., got {side[place]!r}")
        place = found.end()
        rest, factor, mark = found["rest"], found["factor"], found["mark"]
        if factor:
            (arrays[-1] if group is None else group).append(factor)
        elif rest:
            if arrays[-1] or group is not None:
                raise _bad_rule(rule, f"{rest} must stand before all dimensions of an array")
            arrays[-1].append(f"{BATCHING}{int(rest[3:] or 0)}")
        elif mark == "(" and group is None:
            group = []
        elif mark == ")" and group is not None:
            if len(group) < 2:
                raise _bad_rule(rule, f"brackets must be around two factors or more, got {len(group)}")
            arrays[-1].append(CompoundFactor(*group))
            group = None
        elif mark == "," and group is None:
            arrays.append([])
        elif mark:
            raise _bad_rule(rule, f"brackets must be around factors alone, got {mark!r}")
    if group is not None:
        raise _bad_rule(rule, "every bracket must be closed")
    return arrays


def _bad_rule(rule: str, what: str) -> BadArgument:
    return BadArgument(f"sharding_rule: {what}, in {rule!r}.", hint="'... i, (i j) -> ... j'.")


class SizedRule(NamedTuple):
    """A rule fitted to shapes: the factors of each dimension, the major one first, and the size of each factor."""

    operands: Sequence[Sequence[Sequence[str]]]
    results: Sequence[Sequence[Sequence[str]]]
    sizes: Mapping[str, int]
    kinds: FactorKinds = FactorKinds()

    @property
    def of_types(self) -> ShardingRule:
        """The rule for cuts that types state: a dimension is cut as its major factor, a summed one as it is."""
        summed, whole = self.kinds.reduction_factors, self.kinds.need_replication_factors
        operands = [
            [(i, dim[0]) if dim[0] in summed else dim[0] for dim in dims] for i, dims in enumerate(self.operands)]
        return ShardingRule(operands, [[dim[0] for dim in dims] for dims in self.results], whole)

    def of_storage(self, operands: Sequence[Shape], results: Sequence[Shape]) -> SizedRule:
        """The rule for arrays of these shapes, whose last dimensions, such as the words of keys, it does not have yet.

        They are whole.
        """
        words: dict[str, int] = {}
        rows = []
        for side, arrays, shapes in (("operand", self.operands, operands), ("result", self.results, results)):
            rows.append([[*dims] for dims in arrays])
            for i, (dims, shape) in enumerate(zip(rows[-1], shapes)):
                for d in range(len(dims), len(shape)):
                    dims.append((f"{side} {i} {d}",))
                    words[f"{side} {i} {d}"] = shape[d]
        kinds = self.kinds._replace(need_replication_factors=(*self.kinds.need_replication_factors, *words))
        return SizedRule(rows[0], rows[1], {**self.sizes, **words}, kinds)


def sized(where: str, rule: SdyShardingRule, operands: Sequence[Shape], results: Sequence[Shape]) -> SizedRule:
    """The rule for arrays of these shapes.

    A factor that dimensions of several sizes have is as large as the smallest of them. Raises: BadArgument: the rule
    is one of another number of arrays. ShapeMismatch: ranks or sizes do not fit.
    """
    ranks: dict[str, int] = {}  # of each group of unnamed dimensions
    sizes: dict[str, int] = dict(rule.factor_sizes)
    rows = []
    sides = (("operand", rule.operand_mappings, operands), ("result", rule.result_mappings, results))
    for side, mappings, shapes in sides:
        if not shapes and mappings == ((),):  # an empty side of a text is one scalar, or nothing
            mappings = ()
        if len(mappings) != len(shapes):
            raise BadArgument(f"{where}: sharding_rule must name each {side}, {len(shapes)}, got {len(mappings)}.")
        rows.append([
            _dimensions(f"{where}: {side} {i}", mapping, shape, ranks) for i, (mapping, shape) in
            enumerate(zip(mappings, shapes))])
    dims = [pair for side, (_, _, shapes) in zip(rows, sides) for row, shape in zip(side, shapes)
            for pair in zip(row, shape)]
    for factors, size in dims:
        if len(factors) == 1:
            known = sizes.setdefault(factors[0], size)
            if factors[0].startswith(BATCHING) and known != size:
                raise ShapeMismatch(f"{where}: dimensions of one ... must be of one size, got {known} and {size}.")
            sizes[factors[0]] = min(known, size)
    for factors, size in dims:
        if len(factors) > 1 and prod([sizes[factor] for factor in factors]) != size:
            text = " ".join([f"{factor}={sizes[factor]}" for factor in factors])
            raise ShapeMismatch(f"{where}: a dimension must be as large as the product of its factors, got {size} for "
                                f"({text}).")
    return SizedRule(rows[0], rows[1], sizes, rule.kinds)


def _dimensions(what: str, mapping: ArrayMapping, shape: Shape, ranks: dict[str, int]) -> list[tuple[str, ...]]:
    """The factors of each dimension of an array of this shape. Raises: ShapeMismatch: its rank does not fit."""
    named: Sequence[Any] = mapping
    unnamed: list[tuple[str, ...]] = []
    if mapping and isinstance(mapping[0], str) and mapping[0].startswith(BATCHING):
        group, named = mapping[0][1:] or "0", mapping[1:]
        count = ranks.setdefault(group, len(shape) - len(named))
        unnamed = [(f"{BATCHING}{group}_{k}",) for k in range(count)]
    if len(unnamed) + len(named) != len(shape):
        raise ShapeMismatch(f"{what}: sharding_rule must name each dimension, got {mapping} for shape {shape}.")
    return [*unnamed, *[dim if isinstance(dim, CompoundFactor) else (dim,) for dim in named]]


def factors_text(rule: SizedRule) -> str:
    """The rule as an attribute: ``#sdy.op_sharding_rule<([i, j])->([ij]) {i=2, j=4}, custom>``."""
    order: dict[str, int] = {}
    takes, gives = [
        ", ".join([f"[{', '.join([_dimension(factors, order) for factors in dims])}]" for dims in arrays])
        for arrays in (rule.operands, rule.results)
    ]
    listed = ", ".join([f"{_letter(number)}={rule.sizes[factor]}" for factor, number in order.items()])
    texts = [f" {{{listed}}}" if listed else ""]
    for kind, factors in rule.kinds._asdict().items():
        numbers = sorted([order[factor] for factor in factors])
        texts.append(f" {kind.removesuffix('_factors')}={{{', '.join(map(_letter, numbers))}}}" if factors else "")
    return f"#sdy.op_sharding_rule<({takes})->({gives}){''.join(texts)}, custom>"


def _dimension(factors: Sequence[str], order: dict[str, int]) -> str:
    return "".join([_letter(order.setdefault(factor, len(order))) for factor in factors])


def _letter(number: int) -> str:
    """Shardy's name of a factor: i, j, ..., z, z_1, z_2, ..."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"
