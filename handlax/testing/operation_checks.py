"""Checks of the laws of operations, on drawn operands that an operation accepts; those that fail are made small.

    check_operation(op) == check_laws(repr(op), OPERATION_LAWS, draws of operands)
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, text_of
from ..effects.core.arrays import Array, as_array
from ..effects.core.cell_sources import where_written
from ..effects.core.columns import COLUMNS, decomposed
from ..effects.core.operation import Operation
from ..effects.operations.random_bits import KEY, random_wrap
from ..effects.types import dtypes
from ..effects.types.array_type import Shape, array_type
from .closeness import brief, data
from .generator.reducing import reduced
from .law import Law, Report, check_laws
from .operation_laws import HALVES, LANES, OPERATION_LAWS, REALS, Arrays, has_type, of_one_type
from .strategies import Domain, Operands

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
    that it does not accept, is left out, with the reason; so are rules that no law is about, such as ``sparse``.

    Args:
        op: an operation, or one with the domains, shapes and dtypes of its operands. By default these are numbers
            between -3 and 3, of the dtypes and shapes that ``result_type`` accepts: all operands of one dtype, and of
            one shape, rank 0, or shapes of a product of matrices; where it takes no such numbers, random keys, and
            numbers after them. For the law of compiled values there are zeros, infinities and NaN among them, or the
            extremes of the domains.
        operands: draws of operands to be used instead, each a list of NumPy arrays, or of arrays of handlax where they
            are keys.
        laws: those to check, all by default.
        examples: how many times operands are drawn.
        seconds: how long; each law is checked once at least.
        seed: of the first draw.

    Raises: LawFails: a law fails; the error has the operands, reduced, and the lines of the rules that the law is
        about. BadArgument: ``op`` is none, or ``result_type`` accepts no operands that are tried.

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
    described = [op] if isinstance(op, Operands) else accepted_operands(op) if operands is None else []
    op = op.op if isinstance(op, Operands) else op
    types = [(each, dtype, shapes) for each in described for dtype in each.family for shapes in each.shapes]
    types = [types[i] for i in np.random.default_rng(0).permutation(len(types))]  # each quarter of them is of all kinds
    if operands is not None and not len(operands):
        raise BadArgument("check_operation: there must be a draw of operands, got none.", hint="operands=[[x, y]].")
    given = [[_drawn(x) for x in each] for each in operands or ()]

    def drawn(k: int, needs: Sequence[str], wants: Sequence[str] = ()) -> list[Any]:
        rng, family = np.random.default_rng(k), _numbers(needs)
        some = [each for each in types if family is None or each[1] in family]
        some = some[k % 4 :: 4] if len(some) > 8 else some  # XLA takes some ten milliseconds for each
        times = LANES if "lanes" in wants else 1
        draws = given or [each.draw(dtype, shapes, rng) for each, dtype, shapes in some for _ in range(times)]
        if "extremes" in wants and not given:  # at the ends of the dtypes, too
            draws += [each.draw(dtype, shapes, rng, extremes=True) for each, dtype, shapes in some]
        return [each for each in draws if _all_of(family, each)]

    shown = lambda family: " or ".join(sorted([dtype.name for dtype in family]))
    missing = {name: f"there are no operands of {shown(family)}"
               for name, family in NUMBERS.items() if not drawn(0, [name])}
    laws = OPERATION_LAWS if laws is None else tuple(laws)
    about = {name for law in laws for name in law.rules}
    report = check_laws(
        repr(op), laws, lambda law, k: (op, drawn(k, law.needs, law.wants)), lacks={**op.exempt, **missing},
        examples=1 if given else examples, seconds=seconds, seed=seed, show=_shown,
        reduce=partial(reduced, smaller=_smaller, seconds=seconds),
    )
    return replace(report, unchecked={name: place for name, place in rules_of(op).items() if name not in about})


def accepted_operands(op: Operation) -> list[Operands]:
    """What an operation accepts, by shapes, of the operands that are tried: numbers; if it takes none, keys first.

    Raises: BadArgument: there are none.
    """
    parameters = list(inspect.signature(type(op).result_type).parameters.values())[1:]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    fixed = sum(p.kind is not p.VAR_POSITIONAL for p in parameters)
    arities = range(fixed, fixed + 3 * variadic + 1)
    found = [each for arity in arities for each in _accepted(op, 0, arity)]
    found = found or [each for arity in arities for keys in range(1, arity + 1) for each in _accepted(op, keys, arity)]
    if not found:
        raise BadArgument(
            f"check_operation: {op} accepts none of the operands that are tried, numbers of one dtype and keys.",
            hint="give some: check_operation(Operands(op, domains, shapes)), or operands=[[x, y], ...].",
        )
    return found


def _accepted(op: Operation, keys: int, arity: int) -> list[Operands]:
    """The operands that an operation accepts of those tried, ``arity`` many: the first ``keys`` are random keys, the
    others numbers; an element for each tuple of shapes, and for floats and other numbers.
    """
    families = [(shape,) * arity for shape in SHAPES]
    families += [(*((),) * k, (2, 3), *((),) * (arity - k - 1)) for k in range(arity)] if arity > 1 else []
    families += PRODUCTS if arity == 2 else ()
    tried = DTYPES if not keys else BESIDE_KEYS if keys < arity else BESIDE_KEYS[:1]
    found = []
    for shapes in families:
        types = lambda dtype: [array_type(shape, KEY if i < keys else dtype) for i, shape in enumerate(shapes)]
        family = {dtype for dtype in tried if _accepts(op, types(dtype))}
        for numbers, some in ((FLOATS, family & dtypes.FLOATING), (Domain(), family - dtypes.FLOATING)):
            if some:
                domains = (Keys(),) * keys + (numbers,) * (arity - keys)
                found.append(Operands(op, domains, (shapes,), frozenset(some)))
    return found


def _accepts(op: Operation, types: Sequence[Any]) -> bool:
    first = [t for t in types if t.dtype == KEY] or types  # beside keys numbers are of other dtypes
    return (op.dtypes is None or all([t.dtype in op.dtypes for t in first])) and has_type(op, types)


def _drawn(x: Any) -> Any:
    """An operand as draws have it: a NumPy array, or an array of keys."""
    if isinstance(x, Array):
        return x if x.type.dtype == KEY else data(x)
    return np.asarray(x)


NUMBERS: Mapping[str, frozenset[Any]] = MappingProxyType({"reals": REALS, "halves": HALVES})


def _numbers(needs: Sequence[str]) -> frozenset[Any] | None:
    """The dtypes of numbers that a law needs; None: any."""
    return next((NUMBERS[name] for name in needs if name in NUMBERS), None)


def _all_of(family: frozenset[Any] | None, operands: Arrays) -> bool:
    """Whether operands have real or complex numbers, of these dtypes alone."""
    smooth = [x.dtype for x in operands if dtypes.is_inexact(x.dtype)]
    return family is None or (bool(smooth) and family.issuperset(smooth))


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
            lines.append(f"operand {i}: {as_array(x).type} {brief(data(x))}")
    return "\n".join(lines)


def _smaller(example: Any) -> Iterator[Any]:
    """Simpler examples (operation, draws of operands) than this one: with one draw alone, with the draws of one type
    alone, or with all axes of one length cut to a shorter one.
    """
    op, draws = example
    for fewer in [*[[draw] for draw in draws], *of_one_type(draws)]:
        if len(fewer) < len(draws):
            yield op, fewer
    for n in sorted({n for operands in draws for x in operands for n in x.shape if n > 1}, reverse=True):
        for m in dict.fromkeys((1, n // 2, n - 1)):
            yield op, [[_cut(x, n, m) for x in operands] for operands in draws]


def _cut(x: Any, n: int, m: int) -> Any:
    """An operand whose axes of length ``n`` are cut to ``m``."""
    return x[tuple([slice(m) if size == n else slice(None) for size in x.shape])] if n in x.shape else x
