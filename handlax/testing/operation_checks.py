"""Checks of the laws of operations, on drawn operands that an operation accepts; those that fail are made small.

    check_operation(op) == check_laws(repr(op), OPERATION_LAWS, draws of operands)
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadArgument, BadCall, text_of
from ..effects.core.arrays import Array, as_array
from ..effects.core.cell_sources import where_written
from ..effects.core.columns import COLUMNS, decomposed
from ..effects.core.operation import Operation
from ..effects.operations.random_bits import KEY, random_wrap
from ..effects.types import dtypes
from ..effects.types.array_type import Shape, array_type
from .closeness import data
from .generator.reducing import reduced
from .law import Law, Report, check_laws
from .operation_laws import (
    HALVES,
    LANE_COUNT,
    NO_ROWS,
    OPERATION_LAWS,
    REALS,
    Arrays,
    described,
    lacking_rules,
    of_one_type,
    ragged_size,
)
from .strategies import Domain, Operands, special_values

SHAPES: tuple[tuple[int, ...], ...] = ((3,), (), (2, 3), (3, 3), (0, 2), (2, 3, 3), (0,))
PRODUCTS = (((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 2)))  # what is not square
DTYPES = tuple(map(dtypes.canonical, (
    "float64", "float32", "complex128", "complex64", "bfloat16", "float16", "int32", "int64", "int8", "uint8", "uint32",
    "bool",
)))
BESIDE_KEYS = tuple(map(dtypes.canonical, ("uint32", "int32", "float32")))  # the dtypes of operands beside a key
FLOATS = Domain(extremes=(0.0, -0.0, 1.0, -1.0, 1e3, -1e3, np.inf, -np.inf, np.nan))


class Keys(Domain):
    """Random keys, whatever the dtype of the operands beside them."""

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> Any:
        return random_wrap(rng.integers(0, 2**32, (*shape, 2), np.uint32))


def check_operation(
    op: Operation | Operands,
    operands: Sequence[Arrays] | None = None,
    *,
    laws: Iterable[Law] | None = None,
    examples: int = 4,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Check the laws of operations, ``OPERATION_LAWS``, for an operation.

        jit(op) == evaluate(op),   jvp(op) == differences,   <u, Jv> == <J^T u, v>,   vmap(op) == the loop over lanes

    and so on: the report has a sentence for each. A law that the operation declares exempt, or that is about numbers
    that it does not accept, is left out, with the reason. The report has the dtypes and shapes of the operands, what
    ``result_type`` refused of those tried, and, if all laws are checked, the rules that none is about, as ``sparse``.

    Args:
        op: an operation, or one with the domains, shapes and dtypes of its operands. By default these are numbers
            between -3 and 3, of the dtypes and shapes that ``result_type`` accepts: all operands of one dtype, and of
            one shape, rank 0, or shapes of a product of matrices; where it takes no such numbers, random keys, and
            numbers after them. For the law of compiled values there are zeros, infinities and NaN among them, of
            integers the ends of the dtype, or the extremes of the domains.
        operands: draws of operands to be used instead, each a list of NumPy arrays, or of arrays of handlax where they
            are keys. The domain of an operand is then from its least to its greatest element. The law of ``vmap`` needs
            two draws of one type where an operand is an integer of rank 0.
        laws: those to check, all by default.
        examples: how many times operands are drawn, each time of a quarter of the types, where these are many.
        seconds: how long it takes, of which a quarter is kept to make operands that fail fewer, smaller and simpler;
            each law is checked once at least.
        seed: of the first draw.

    Raises: LawFails: a law fails; the error has the operands, reduced within their domains, and the lines of the rules
        that the law is about. BadArgument: ``op`` is none; ``operands`` are no draws of as many as it has;
        ``result_type`` accepts none that are tried; ``exempt`` names what is neither a law nor a rule.

    >>> from handlax.operations import Sin
    >>> report = check_operation(Sin(), examples=1)
    >>> [law.name for law, *_ in report.held]
    ['typing', 'compiled', ...]
    """
    if not isinstance(op, Operation | Operands):
        made = isinstance(op, type) and issubclass(op, Operation)
        raise BadArgument(
            f"check_operation: an operation is needed, got {text_of(op)}.",
            hint=f"{op.__name__}(), with its fields." if made else "an instance of a class that is @hx.operation.",
        )
    subject = op.op if isinstance(op, Operands) else op
    laws = OPERATION_LAWS if laws is None else tuple(laws)
    _need_known_exemptions(subject, laws)
    draws = Draws.given(subject, operands) if operands is not None else Draws.of(op)
    checked: dict[str, dict[str, None]] = defaultdict(dict)  # shapes, by dtypes

    def example(law: Law, k: int) -> Any:
        drawn = draws.draw(k, law.needs, law.wants)
        for arrays in drawn:
            types = [as_array(x).type for x in arrays]
            names = dict.fromkeys([t.dtype.name for t in types])
            checked[" and ".join(names)][" ".join([str([*t.shape]) for t in types])] = None
        return subject, drawn

    report = check_laws(
        repr(subject), laws, example, lacks={**draws.lacks(), **lacking_rules(type(subject)), **subject.exempt},
        examples=1 if draws.fixed else examples, seconds=seconds, seed=seed, show=_shown,
        reduce=partial(reduced, smaller=draws.smaller),
    )
    about, every = {name for law in laws for name in law.rules}, {*OPERATION_LAWS} <= {*laws}
    unchecked = {name: place for name, place in rules_of(subject).items() if every and name not in about}
    shapes = {names: ", ".join(each) for names, each in sorted(checked.items())}
    return replace(report, refused=draws.refused, unchecked=unchecked, shapes=shapes)


def _need_known_exemptions(op: Operation, laws: Sequence[Law]) -> None:
    """Raises BadArgument if ``exempt`` names what is neither a law nor a rule."""
    names = {*COLUMNS, *[law.name for law in (*OPERATION_LAWS, *laws)]}
    for name in op.exempt:
        if name not in names:
            raise BadArgument(
                f"check_operation: what {op} is exempt from must be a law or a rule, got {name!r}.",
                hint=f"the names are {', '.join(sorted(names))}.")


def operand_names(op: Operation) -> list[str]:
    """The operands' names in the signature of ``result_type``: ``x``, and ``*xs`` where there may be any number."""
    parameters = inspect.signature(op.result_type).parameters.values()
    return ["*" * (p.kind is p.VAR_POSITIONAL) + p.name for p in parameters]


def arity_of(op: Operation) -> tuple[int, bool]:
    """How many operands an operation has at least, and whether it may have more."""
    names = operand_names(op)
    variadic = any([name.startswith("*") for name in names])
    return len(names) - variadic, variadic


TypeOfOperands = tuple[Operands, Any, tuple[Shape, ...]]
"""Operands with one of their dtypes, and one of their shapes."""


class Draws(NamedTuple):
    """The operands on which laws are checked: ``fixed`` ones, or those that are drawn of ``types``.

    ``domains``: where the elements of an operand may lie, by its number and its dtype. ``refused``: the dtypes and
    ranks of which ``result_type`` accepted none, and the first error.
    """

    fixed: list[list[Any]]
    types: list[TypeOfOperands]
    domains: Mapping[tuple[int, Any], Domain]
    refused: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def given(cls, op: Operation, operands: Sequence[Arrays]) -> Draws:
        """The draws that a user gives, each a list of an operation's operands, as arrays.

        Raises: BadArgument: there are no draws, or one is not such a list.
        """
        names, (fixed, variadic) = ", ".join(operand_names(op)), arity_of(op)
        if not len(operands):
            raise BadArgument("check_operation: there must be a draw of operands, got none.", hint="operands=[[x, y]].")
        for each in operands:
            as_many = isinstance(each, Sequence) and (variadic or len(each) == fixed)
            if not as_many or isinstance(Operands.refusal(op, [as_array(x).type for x in each]), BadCall):
                raise BadArgument(
                    f"check_operation: each draw must be a list of the operands {names} of {op}, got {text_of(each)}.",
                    hint=f"operands=[[{names}], ...].")
        draws, elements = [[_drawn(x) for x in each] for each in operands], defaultdict[Any, list[Any]](list)
        for each in draws:
            for i, x in enumerate(each):
                if isinstance(x, np.ndarray):
                    elements[i, x.dtype].append(x.ravel())
        return cls(draws, [], {key: Domain.around(np.concatenate(arrays)) for key, arrays in elements.items()})

    @classmethod
    def of(cls, op: Operation | Operands) -> Draws:
        """Draws of the operands that an operation accepts, or of those that are given with it."""
        accepted, refused = ([op], {}) if isinstance(op, Operands) else accepted_operands(op)
        types = [(each, dtype, shapes) for each in accepted for dtype in each.family for shapes in each.shapes]
        if not types:
            raise BadArgument(
                f"check_operation: {op} accepts no operands of these domains and shapes, of any dtype.",
                hint="dtypes= of those that result_type accepts, in these shapes.")
        domains = {(i, x.dtype): each[0].domains[i] for each in types for i, x in enumerate(each[0].types(*each[1:]))}
        return cls([], [types[i] for i in np.random.default_rng(0).permutation(len(types))], domains, refused)

    def draw(self, k: int, needs: Sequence[str], wants: Sequence[str] = ()) -> list[Any]:
        """The operands of example ``k`` of a law: a draw of each type that it ``needs``, or of a quarter of them.

        If it ``wants`` ``"lanes"``, a draw for each lane; ``"extremes"``, one more with these among its elements.
        """
        fits = lambda operands: all([NEEDS[name](operands) for name in needs if name in NEEDS])
        if self.fixed:
            return [each for each in self.fixed if fits(each)]
        some, rng = [each for each in self.types if fits(each[0].types(*each[1:]))], np.random.default_rng(k)
        some = quarter(some, k) if len(some) > 8 else some  # XLA takes some ten milliseconds for each
        with_extremes = [False] * (LANE_COUNT if "lanes" in wants else 1) + [True] * ("extremes" in wants)
        return [each.draw(dtype, shapes, rng, extremes=yes) for yes in with_extremes for each, dtype, shapes in some]

    def lacks(self) -> dict[str, str]:
        """What laws need of operands and none of these have."""
        every = self.fixed or [operands.types(dtype, shapes) for operands, dtype, shapes in self.types]
        shown = lambda family: " or ".join(sorted([dtype.name for dtype in family]))
        reasons = {name: f"there are no operands of {shown(family)}" for name, family in NUMBERS.items()}
        reasons["rows"] = NO_ROWS
        return {name: reason for name, reason in reasons.items() if not any(map(NEEDS[name], every))}

    def smaller(self, example: Any) -> Iterator[Any]:
        """Simpler examples (operation, draws of operands) than this one: with one draw alone, small ones first, with
        the draws of one type alone, with the axes of one length cut, all or one, or with simpler elements of an
        operand, in its domain.
        """
        op, draws = example
        alone = sorted(draws, key=lambda draw: sum([x.size for x in draw]))
        for fewer in [*[[draw] for draw in alone], *of_one_type(draws)]:
            if len(fewer) < len(draws):
                yield op, fewer
        for n in sorted({n for operands in draws for x in operands for n in x.shape if n > 1}, reverse=True):
            for axes in (range(-8, 0), *[(axis,) for axis in range(-max([x.ndim for draw in draws for x in draw]), 0)]):
                for part in (slice(n // 2), slice(n // 2, n), slice(n - 1), slice(1, n)):
                    yield op, [[_cut(x, n, axes, part) for x in operands] for operands in draws]
        for k, operands in enumerate(draws):
            for i, x in enumerate(operands):
                for y in self.domains[i, x.dtype].simpler(x) if isinstance(x, np.ndarray) else ():
                    yield op, [*draws[:k], [*operands[:i], y, *operands[i + 1 :]], *draws[k + 1 :]]


def quarter(types: Sequence[TypeOfOperands], k: int) -> list[TypeOfOperands]:
    """The ``k``-th quarter of the types of each rank and kind of dtype, one at least; any four in a row are all."""
    alike: dict[Any, list[TypeOfOperands]] = defaultdict(list)
    for each in types:
        _, dtype, shapes = each
        alike[_ranks(shapes), "f" if dtype in dtypes.FLOATING else dtype.kind].append(each)
    return [each for group in alike.values() for n in [min(4, len(group))] for each in group[k % n :: n]]


def _ranks(shapes: Sequence[Shape]) -> tuple[int, ...]:
    return tuple(map(len, shapes))


def accepted_operands(op: Operation) -> tuple[list[Operands], dict[str, str]]:
    """What an operation accepts, by shapes, of the operands that are tried: numbers; if it takes none, keys first.

    With it the dtypes and ranks that ``result_type`` refused.

    Raises: BadArgument: there are none.
    """
    fixed, variadic = arity_of(op)
    arities = range(fixed, fixed + 3 * variadic + 1)
    trials = [_tried(op, 0, arity) for arity in arities]
    if not any(_accepted(trial) for trial in trials):
        trials += [_tried(op, keys, arity) for arity in arities for keys in range(1, arity + 1)]
    accepted = [each for trial in trials for each in _accepted(trial)]
    if not accepted:
        first = next((f"; first {_told(error)}" for trial in trials for _, error in trial if error is not None), "")
        raise BadArgument(
            f"check_operation: {op} accepts none of the operands that are tried, numbers of one dtype and keys{first}.",
            hint="give some: check_operation(Operands(op, domains, shapes)), or operands=[[x, y], ...].",
        )
    refused: dict[str, str] = {}
    for trial in trials:
        if _accepted(trial):
            refused |= _refused(trial)
    return accepted, refused


Trial = list[tuple[Operands, Exception | None]]
"""Operands that are tried, and what ``result_type`` raises for them."""


def _accepted(trial: Trial) -> list[Operands]:
    return [each for each, error in trial if error is None]


def _refused(trial: Trial) -> dict[str, str]:
    """The dtypes of which nothing was accepted, the ranks, and else the dtypes of a rank; each with the first error."""
    errors: dict[tuple[str, str], Exception | None] = {}
    for each, error in trial:
        (dtype,), (ranks,) = each.family, map(_ranks, each.shapes)
        pair = dtype.name, f"rank {' and '.join(map(str, ranks))}"
        errors[pair] = error and errors.get(pair, error)
    some = [pair for pair, error in errors.items() if error is None]
    refused: dict[str, str] = {}
    for (name, rank), error in errors.items():
        if error is not None:
            of_dtype, of_rank = name not in [pair[0] for pair in some], rank not in [pair[1] for pair in some]
            refused.setdefault(name if of_dtype else rank if of_rank else f"{name} of {rank}", _told(error))
    return refused


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _tried(op: Operation, keys: int, arity: int) -> Trial:
    """The operands that are tried of the dtypes that an operation declares, and what ``result_type`` raises for them.

    There are ``arity`` of them, the first ``keys`` random keys, the others numbers: an element for each tuple of shapes
    and dtype.
    """
    families = [(shape,) * arity for shape in SHAPES]
    families += [(*((),) * k, (2, 3), *((),) * (arity - k - 1)) for k in range(arity)] if arity > 1 else []
    families += PRODUCTS if arity == 2 else ()
    tried = DTYPES if not keys else BESIDE_KEYS if keys < arity else BESIDE_KEYS[:1]
    trial: Trial = []
    for shapes in families:
        for dtype in tried:
            declared = KEY if keys else dtype  # beside keys numbers are of other dtypes
            if op.dtypes is None or not arity or declared in op.dtypes:
                types = [array_type(shape, KEY if i < keys else dtype) for i, shape in enumerate(shapes)]
                error = Operands.refusal(op, types)
                domains = (Keys(dtype=KEY),) * keys + (numbers(dtype),) * (arity - keys)
                trial.append((Operands(op, domains, (shapes,), frozenset([dtype])), error))
    return trial


def numbers(dtype: Any) -> Domain:
    """The numbers of a dtype that are tried: integers at the ends of it, too, floats up to infinity and NaN."""
    if dtypes.is_integer(dtype):
        return Domain(extremes=tuple(special_values(dtype).tolist()))
    return FLOATS if dtype in dtypes.FLOATING else Domain()


def _drawn(x: Any) -> Any:
    """An operand as draws have it: a NumPy array, or an array of keys."""
    if isinstance(x, Array):
        return x if x.type.dtype == KEY else data(x)
    return np.asarray(x)


NUMBERS: Mapping[str, frozenset[Any]] = MappingProxyType({"reals": REALS, "halves": HALVES})


def _all_of(family: frozenset[Any], operands: Sequence[Any]) -> bool:
    """Whether operands have real or complex numbers, of these dtypes alone."""
    smooth = [x.dtype for x in operands if dtypes.is_inexact(x.dtype)]
    return bool(smooth) and family.issuperset(smooth)


# what a law needs of operands, arrays or types
NEEDS: Mapping[str, Callable[[Sequence[Any]], bool]] = MappingProxyType({
    **{name: partial(_all_of, family) for name, family in NUMBERS.items()},
    "rows": lambda operands: ragged_size(operands) is not None,
})


def rules_of(op: Operation) -> dict[str, str]:
    """The rules of an operation, by the names of their columns, and where they are written."""
    cells = {name: column.complete().cell(type(op)) for name, column in COLUMNS.items()}
    return {name: where_written(cell, type(op), name) for name, cell in cells.items() if cell not in (None, decomposed)}


def _shown(law: Law, example: Any) -> str:
    """The operation, its rules that the law is about, and the operands of each draw, of large arrays a part."""
    op, draws = example
    written = rules_of(op)
    lines = [f"of {op}", *[f"{name}: {written[name]}" for name in law.rules if name in written]]
    for operands in draws:
        for i, x in enumerate(operands):
            lines.append(f"operand {i}: {described(x)}")
    if "jvp" in law.rules and "jvp" in written and len(draws[0]) > 1:
        lines.append("hint: where an operand is constant, the rule gets its tangent as None, which is zero.")
    return "\n".join(lines)


def _cut(x: Any, n: int, axes: Collection[int], part: slice) -> Any:
    """A part of an operand, along those of these axes, counted from the last, that have the length ``n``."""
    chosen = [size == n and d - x.ndim in axes for d, size in enumerate(x.shape)]
    return x[tuple([part if yes else slice(None) for yes in chosen])] if any(chosen) else x
