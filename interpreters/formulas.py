"""Formulas: what a rule performs, remembered.

    rule(op, *operands) == outer.take(formula.program, operands)

What a rule of the package's own performs depends on its operation, on the types of the operands, and on which of them
are marked: have a tangent, are mapped. So it is recorded once, and the run outside takes the recording over whenever it
is asked for (``Run.take``). The rules of a user's operation run every time.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects import config
from ..effects.caches import CACHES, CacheInfo
from ..effects.operations import Operation
from ..effects.programs import Program
from ..effects.stack import BASE, inside
from ..effects.types import ArrayType
from .record import Record

Rule = Callable[..., tuple[Sequence[Any], Any]]
Key = tuple[Any, ...]  # types of the operands and their marks; those of different handlers must differ
Describe = Callable[[Operation, Key], tuple[Rule, Sequence[ArrayType]]]
CAPACITY = 8192  # of all operations together


class Formula(NamedTuple):
    """The results that a rule gives as values, and what else it says of them."""

    program: Program
    marks: Any


class Formulas(dict[Key, Any]):
    """Those of one operation under one record of settings; False where its rule has to run."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__  # each is itself: they are counted by weak references
    __hash__ = object.__hash__  # type: ignore[assignment]


def remembered(op: Operation, key: Key, describe: Describe) -> Formula | None:
    """The formula of an operation that has a memo; None, or False, where its rule has to run.

    ``describe(op, key)`` gives the rule, from values to results and marks, and the types of these values.
    """
    mark = (config.CONFIG.get() or config.PROCESS.settings).mark
    if mark is None:
        return None
    formulas = op.memo.get(mark)  # type: ignore[union-attr]
    found = None if formulas is None else formulas.get(key)
    return _learnt(op, mark, key, describe) if found is None else found


def _learnt(op: Operation, mark: object, key: Key, describe: Describe) -> Formula | None:
    ours = type(op).__module__.startswith("handlax.")
    if not ours or op.multiple or op.bodied or op.effectful or op.named or op.late:
        return None
    formulas = op.memo.setdefault(mark, Formulas())  # type: ignore[union-attr]
    with _LOCK:
        _EVERY.add(formulas)
    if next(_LEARNT) % CAPACITY == CAPACITY - 1:  # full: programs whose shapes never return must not fill the memory
        _CACHE.clear()
    formulas[key] = found = _recorded(*describe(op, key)) or False
    return found  # type: ignore[return-value]


def _recorded(rule: Rule, types: Sequence[ArrayType]) -> Formula | None:
    recorder = Record(BASE, "")
    try:
        with inside(recorder):
            results, marks = rule(*[recorder.input(t) for t in types])
            program = recorder.freeze(results)
    except Exception:  # it looks at values, or refuses: it runs again in the user's place, and says so there
        return None
    return Formula(program, marks) if is_formula(program) else None


def is_formula(program: Program) -> bool:
    """Whether every equation has one result, and no body, effect or axis."""
    return not any([op.multiple or op.bodied or op.effectful or op.named for op in program.ops])


class Stretch:
    """Equations of a tape that were taken over from a formula, as their transposition wants to know it.

    ``linear`` says in which operands the formula is linear; ``places``: where each stands first, as equation and
    position; ``gives``: the equations whose results it gives. ``adjoints`` are kept by which of these have a cotangent.
    """

    __slots__ = ("program", "linear", "places", "gives", "adjoints")

    def __init__(self, program: Program, linear: tuple[bool, ...], places: Sequence[Any], gives: Sequence[int]):
        self.program = program
        self.linear = linear
        self.places = places
        self.gives = gives
        self.adjoints: dict[Any, Any] = {}


def stretch(program: Program, residuals: int) -> Stretch | None:
    """Of a formula whose first operands are residuals; None where equation after equation is to be transposed."""
    count = len(program.in_types)
    found: dict[int, tuple[int, int]] = {}
    for i, numbers in enumerate(program.args):
        for k, n in enumerate(numbers):
            found.setdefault(n, (i, k))
    places = [found.get(n) for n in range(count)]
    gives = [n - count for n in program.outs]
    if not gives or min(gives) < 0 or len(set(gives)) < len(gives) or None in places[:residuals]:
        return None
    return Stretch(program, (False,) * residuals + (True,) * (count - residuals), places, gives)


_EVERY: weakref.WeakSet[Formulas] = weakref.WeakSet()
_LOCK = threading.RLock()  # nobody goes through a set that grows
_LEARNT = itertools.count()


class _Cache:
    """All formulas, as one cache beside the others."""

    name = "formulas"

    @property
    def every(self) -> list[Formulas]:
        with _LOCK:
            return list(_EVERY)

    def clear(self) -> None:
        for formulas in self.every:
            formulas.clear()

    def info(self) -> CacheInfo:
        return CacheInfo(0, 0, sum([len(formulas) for formulas in self.every]), CAPACITY)


_CACHE = _Cache()
CACHES.append(_CACHE)  # type: ignore[arg-type]
