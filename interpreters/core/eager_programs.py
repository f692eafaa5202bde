"""Functions of several operations, called eagerly: their program is recorded once, and evaluated by one function.

    def hypot(x, y): ...
    programs(globals())           hypot(x, y) == inline(the program of hypot for these types, (x, y))

It is as if each operation were performed: a program is used where no handler is installed, for concrete arrays, and
where nothing but types and static arguments decides which operations there are. The second call of a kind records.
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
from ...effects.base.errors import HandlaxError
from ...effects.base.source_locations import NO_WARNINGS, WarningRefused
from ...effects.base.stack import BASE, current, inside
from ...effects.core.arrays import Array, ConcreteArray, as_array, duplicate, from_numpy
from ...effects.core.operation import Operation, result_type
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types.dtypes import EVERY
from . import evaluate
from .record import Record, record_apart


class EagerRecord(Record):
    """A record of operations that are to be evaluated. Those on no input are evaluated now, unless they are large."""

    __slots__ = ()

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not op.has_row and all([x.run is None for x in operands]):
            results = op.as_results(result_type(op, tuple([x.type for x in operands])))
            if all([t.nbytes <= _LARGEST for t in results]):
                with inside(BASE):
                    return BASE.answer(op, operands)
        return super().answer(op, operands)


def evaluated_at_once() -> bool:
    """Whether the operations that are performed are evaluated as they are, so that one may do the work of several."""
    run = current()
    return run is BASE or run.__class__ is EagerRecord


F = TypeVar("F", bound=Callable[..., Any])
_STATIC = frozenset({bool, int, str, type(None), type, *map(type, map(np.dtype, np.typecodes["All"]))})
_NUMPY_NUMBERS = frozenset([np.dtype(code).type for code in "?bhilqBHILQefd"])


class _Named:
    """Stands in keys between the arguments by position and those by name."""


_PROGRAMS = Cache("programs of eager functions", 16384)
_COUNTS = Cache("values of numbers in eager functions", 4096)
_MISSING, _ONCE = object(), object()
_LONGEST = 64  # of the sequences among the arguments, which keys contain
_LARGEST = 2048  # bytes of an array that a program keeps, or that is given by NumPy; all that it keeps: twice as many
_MOST = 8  # programs of a function that differ in numbers alone


def programs(namespace: dict[str, Any], direct: Collection[str] = ()) -> None:
    """Make eager programs of the functions that a module defines and exports, without those that are called as written.

    Two names of one function remain two names of one function.
    """
    made: dict[Any, Any] = {}
    for name in namespace["__all__"]:
        f = namespace.get(name)
        if name not in direct and isinstance(f, FunctionType) and unwrap(f).__globals__ is namespace:
            namespace[name] = made[f] = made.get(f) or eager_program(f)


def eager_program(function: F) -> F:
    """Decorator for a pure function of arrays, lists of arrays and static arguments: eagerly, its cached program."""
    known = _PROGRAMS.entries

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
        found = known.get(key, _MISSING)
        if found is None:
            return function(*args, **kwargs)
        if found is _MISSING or found is _ONCE:
            return _called(key, found is _ONCE, function, args, kwargs, arrays)
        program, rebuild = found
        results = (program.facts.get(evaluate.EPOCH) or evaluate.function_of(program))(*arrays)
        return results[0] if rebuild is None else rebuild(results)

    return evaluated  # type: ignore[return-value]


def _read(x: Any, kind: list[Any], arrays: list[Any]) -> bool:
    """Whether ``x`` is an array, static or a sequence of these, which are added to ``arrays`` and ``kind``."""
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
        return all([_read(part, kind, arrays) for part in x])
    else:
        return False
    return True


def _called(key: Any, again: bool, function: Any, args: Any, kwargs: Any, arrays: list[Any]) -> Any:
    """The result of a call without a program; the second one finds it, or that there is none."""
    result = function(*args, **kwargs)
    alike = tuple([x.__class__ if x.__class__ in (int, float) else x for x in key])
    count = _COUNTS.entries.get(alike, 0)
    if again:
        _PROGRAMS.entries.pop(key, None)
        _COUNTS.entries.pop(alike, None)
        _COUNTS.add(alike, count + 1)
    if count < _MOST:
        _PROGRAMS.add(key, _recorded(function, args, kwargs, arrays, result) if again else _ONCE)
    return result


def _recorded(function: Any, args: Any, kwargs: Any, arrays: list[Any], made: Any) -> tuple[Program, Any] | None:
    """The program, and what makes the function's result of its results; None: the result, if it is one array.

    None in place of both: the function reads values, raises, warns, performs what cannot be inlined, would keep large
    arrays in its program, or makes by no operation what it returned in ``made``, a copy or an array that it keeps.
    A function of static arguments alone returns copies of constants.
    """

    def flat(*boxes: Any) -> tuple[list[Any], Any]:
        rest = iter(boxes)
        given = _boxed(args, rest), dict(zip(kwargs, _boxed(kwargs.values(), rest)))
        results, tree = pytrees.flatten(function(*given[0], **given[1]))
        return [as_array(y) for y in results], tree

    leaves = pytrees.leaves(made)
    token = NO_WARNINGS.set(True)
    try:
        program, tree = record_apart(flat, [x.type for x in arrays], kind=EagerRecord)
    except (HandlaxError, WarningRefused):  # it reads values, or a handler outside has to answer; or it warns each time
        return None
    finally:
        NO_WARNINGS.reset(token)
    if not all([isinstance(y, Array) for y in leaves]) or program.effects:
        return None
    if sum([x.type.nbytes for x in program.consts]) > 2 * _LARGEST:
        return None
    if not arrays:
        kept = [n < 0 for n in program.outs]
        return program, lambda results: pytrees.unflatten(
            tree, [duplicate(y) if constant else y for y, constant in zip(results, kept)]
        )
    sources = [arrays[n] if n < len(arrays) else None for n in program.outs if n >= 0]
    same = [x is None or x is y for x, y in zip(sources, leaves)]
    if len(same) < len(leaves) or not all(same):
        return None
    return program, None if isinstance(made, Array) else lambda results: pytrees.unflatten(tree, results)


def _boxed(args: Any, boxes: Iterator[Any]) -> list[Any]:
    """The arguments with a box in the place of each array."""
    return [
        next(boxes) if x.__class__ in (ConcreteArray, np.ndarray)
        else x.__class__(_boxed(x, boxes)) if x.__class__ in (list, tuple)
        else x for x in args
    ]  # fmt: skip
