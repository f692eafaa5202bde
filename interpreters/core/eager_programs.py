"""Functions of several operations, called eagerly: their program is recorded once, and evaluated by one function.

    def hypot(x, y): ...
    programs(globals())           hypot(x, y) == inline(the program of hypot for these types, (x, y))

It is as if each operation were performed: a program is used where no handler is installed, for concrete arrays, and
where nothing but types and static arguments decides which operations there are. The second call of a kind records, the
first one for large arrays: operation by operation it would hold many more of them.
Numbers are static, since they take the dtype of the arrays they meet. A number that changes from call to call would
make a program, and of large arrays an executable, for each of its values: only the first few of them get one.

A module of functions ends with ``programs(globals())``, which makes one of each in its ``__all__``. To look for the
program takes 0.7 us; so ``direct`` are functions that perform at most one operation on their arguments as they are,
and those whose operations depend on values (``nonzero``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import wraps
from inspect import unwrap
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from ...effects.base.caches import Cache
from ...effects.base.config import CONFIG
from ...effects.base.source_locations import NO_WARNINGS
from ...effects.base.stack import BASE, current, inside
from ...effects.base.wrapping import unwound
from ...effects.core.arrays import Array, ConcreteArray, as_array, duplicate, from_numpy
from ...effects.core.operation import Operation, result_type
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types.dtypes import EVERY
from . import evaluate
from .record import Record, record_apart


class EagerRecord(Record):
    """A record for eager evaluation: pure operations on no input, with small results, are evaluated at once."""

    __slots__ = ()

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not op.effects and all([x.run is None for x in operands]):
            results = op.as_results(result_type(op, tuple([x.type for x in operands])))
            if all([t.nbytes <= _LARGEST for t in results]):
                with inside(BASE):
                    return BASE.answer(op, operands)
        return super().answer(op, operands)


def evaluated_at_once() -> bool:
    """Whether no handler but an eager record sees operations, so that one operation may do the work of several."""
    run = current()
    return run is BASE or run.__class__ is EagerRecord


F = TypeVar("F", bound=Callable[..., Any])
_STATIC = frozenset({bool, int, str, type(None), type, *map(type, map(np.dtype, np.typecodes["All"]))})
_NUMPY_NUMBERS = frozenset([np.dtype(code).type for code in "?bhilqBHILQefd"])


class _Named:
    """A separator in cache keys, between positional arguments and keyword arguments."""


_PROGRAMS = Cache("programs of eager functions", 16384)
"""Programs of eager calls, by function, types of arrays, other arguments and settings; or that one call was made."""
_KNOWN = _PROGRAMS.entries  # a global, since libraries read the closures of functions that they are given
_COUNTS = Cache("values of numbers in eager functions", 4096)
"""How many programs of a function differ in the Python numbers among the arguments alone, by the rest of their key."""
_MISSING, _ONCE = object(), object()
_LONGEST = 64  # of the sequences among the arguments, which keys contain
_LARGEST = 2048  # bytes of an array that a program keeps, or that is given by NumPy; all that it keeps: twice as many
_AT_ONCE = 1 << 21  # bytes of arguments from which on the first call of a kind records
_MOST = 8  # programs of a function that differ in numbers alone


def programs(namespace: dict[str, Any], direct: Collection[str] = ()) -> None:
    """Apply ``eager_program`` to all functions that a module defines and exports, except those named in ``direct``.

    Two names of one function remain two names of one function.
    """
    made: dict[Any, Any] = {}
    for name in namespace["__all__"]:
        f = namespace.get(name)
        if name not in direct and isinstance(f, FunctionType) and unwrap(f).__globals__ is namespace:
            namespace[name] = made[f] = made.get(f) or eager_program(f)


def eager_program(function: F) -> F:
    """Decorator of a pure function of arrays, lists of them and static arguments: eager calls use a cached program."""

    @wraps(function)
    def evaluated(*args: Any, **kwargs: Any) -> Any:
        settings = CONFIG.get().settings
        if current() is not BASE or not settings.memoises:
            return function(*args, **kwargs)
        kind: list[Any] = [function, settings.mark]
        arrays: list[Any] = []
        for x in (*args, _Named, *kwargs, *kwargs.values()) if kwargs else args:  # as ``_read``: a hot path
            cls = x.__class__
            if cls is ConcreteArray:
                kind.append(x.type)
                arrays.append(x)
            elif cls in _STATIC:
                kind += cls, x
            elif cls is float:
                kind += cls, x or repr(x)
            elif not _read(x, kind, arrays):
                return function(*args, **kwargs)
        key = tuple(kind)
        entry = _KNOWN.get(key, _MISSING)
        if entry is None:
            return function(*args, **kwargs)
        if entry is _MISSING or entry is _ONCE:
            return _called(key, entry is _ONCE, function, args, kwargs, arrays)
        program, rebuild = entry
        results = (program.facts.get(evaluate.EPOCH) or evaluate.function_of(program))(*arrays)
        return results[0] if rebuild is None else rebuild(results)

    return evaluated  # type: ignore[return-value]


def _read(x: Any, kind: list[Any], arrays: list[Any]) -> bool:
    """Whether ``x`` is an array, static, or a sequence of such; adds its arrays to ``arrays``, its key to ``kind``."""
    cls = x.__class__
    if cls is ConcreteArray:
        kind.append(x.type)
        arrays.append(x)
    elif cls in _STATIC:
        kind += cls, x
    elif cls is float:
        kind += cls, x or repr(x)  # -0.0 == 0.0
    elif cls in _NUMPY_NUMBERS:
        kind += cls, x.item() or repr(x)
    elif cls is np.ndarray and x.nbytes <= _LARGEST and x.dtype in EVERY:
        arrays.append(from_numpy(x, copy=True))
        kind += cls, arrays[-1].type
    elif (cls is list or cls is tuple) and len(x) <= _LONGEST:
        kind += cls, len(x)
        try:
            return all([_read(part, kind, arrays) for part in x])
        except RecursionError:  # the function says what is wrong
            return False
    else:
        return False
    return True


@unwound
def _called(key: Any, again: bool, function: Any, args: Any, kwargs: Any, arrays: list[Any]) -> Any:
    """The result of a call whose key has no program; one is recorded if ``again`` of this kind, or arrays are large."""
    alike = tuple([x.__class__ if x.__class__ in (int, float) else x for x in key])
    count = _COUNTS.entries.get(alike, 0)
    recording = again or sum([x.type.nbytes for x in arrays]) >= _AT_ONCE
    if recording:
        _PROGRAMS.entries.pop(key, None)
        _COUNTS.entries.pop(alike, None)
        _COUNTS.add(alike, count + 1)
    if count >= _MOST:
        return function(*args, **kwargs)
    found = _recorded(function, args, kwargs, arrays) if recording else None
    if found is not None and arrays and all([n >= len(arrays) for n in found[0].outs]):  # made by operations alone
        program, rebuild = found
        results = evaluate.function_of(program)(*arrays)
        result = results[0] if rebuild is None else rebuild(results)
    else:
        result = function(*args, **kwargs)
        found = found if found is not None and _gives(found[0], result, arrays) else None
    _PROGRAMS.add(key, found if recording else _ONCE)
    return result


def _recorded(function: Any, args: Any, kwargs: Any, arrays: list[Any]) -> tuple[Program, Any] | None:
    """The program of a call, with a function from the program's results to the call's; None for a bare array.

    None in place of the pair, if the call cannot be replaced by its program: it reads values, raises, warns, has
    effects, or keeps large constants. A function of static arguments alone returns copies of constants.
    """

    def flat(*boxes: Any) -> tuple[list[Any], Any]:
        rest = iter(boxes)
        given = _boxed(args, rest), dict(zip(kwargs, _boxed(kwargs.values(), rest)))
        made = function(*given[0], **given[1])
        results, tree = pytrees.flatten(made)
        return [as_array(y) for y in results], None if isinstance(made, Array) else tree

    around = NO_WARNINGS.get()
    try:
        NO_WARNINGS.set(True)
        program, tree = record_apart(flat, [x.type for x in arrays], kind=EagerRecord)
    except Exception:  # it reads values, or a handler outside has to answer; it warns each time; or it fails on boxes
        return None
    finally:
        NO_WARNINGS.set(around)
    if program.effects or sum([x.type.nbytes for x in program.consts]) > 2 * _LARGEST:
        return None
    if not arrays:
        kept = [n < 0 for n in program.outs]
        whole = pytrees.flatten(0)[1] if tree is None else tree
        return program, lambda results: pytrees.unflatten(
            whole, [duplicate(y) if constant else y for y, constant in zip(results, kept)]
        )
    return program, None if tree is None else lambda results: pytrees.unflatten(tree, results)


def _gives(program: Program, made: Any, arrays: list[Any]) -> bool:
    """Whether a call that returned ``made`` may be replaced by its program: no array in it is a copy of an argument."""
    leaves = pytrees.leaves(made)
    if not all([isinstance(y, Array) for y in leaves]):
        return False
    if not arrays:
        return True
    sources = [arrays[n] if n < len(arrays) else None for n in program.outs if n >= 0]
    return len(sources) == len(leaves) and all([x is None or x is y for x, y in zip(sources, leaves)])


def _boxed(args: Any, boxes: Iterator[Any]) -> list[Any]:
    """The arguments with a box in the place of each array."""
    return [
        next(boxes) if x.__class__ in (ConcreteArray, np.ndarray)
        else x.__class__(_boxed(x, boxes)) if x.__class__ in (list, tuple)
        else x for x in args
    ]
