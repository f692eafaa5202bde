"""Evaluate: the base interpretation. Operations on concrete arrays are answered by NumPy, which is their specification.

    answer(op, operands)         one operation, by its evaluate rule
    inline(program, operands)    a cached rule program, by one generated function

A function and result type per operation and operand types are memoised on the operation; from then on ``answer`` is a
look-up and a NumPy call. The package installs hooks that compile instead: ``CHOOSER`` for operations on large
arrays, ``PROGRAM_CHOOSER`` for programs with these, ``EXECUTE_BODIED`` for operations with bodies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.caches import AttachedCache
from ...effects.base.errors import ExecutionRefused, UnhandledEffect
from ...effects.base.source_locations import Site
from ...effects.base.stack import BASE, Run
from ...effects.core.arrays import ConcreteArray, UnsealedArray, concrete
from ...effects.core.columns import EVALUATE
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.core.named_axes import unbound_axis
from ...effects.core.operation import MEMOS, Operation, result_type
from ...effects.programs.program import Program, bind, memoised
from ...effects.types.dtypes import INTEGER, ExtendedDType
from .bad_values import bad_result, bad_value
from .numpy_errors import IN_CALLERS_CONTEXT, IN_OWN_CONTEXT, context_for
from .rule_codegen import numpy_function

_RULES = EVALUATE.registry
CONFIG, ndarray = config.CONFIG, np.ndarray  # which the hot path reads

# Array types for which NumPy may be slow. For operations with such an operand CHOOSER is called: it returns the result,
# or None for NumPy.
HEAVY: set[Any] = set()
CHOOSER: Callable[[Operation, tuple[Any, ...], tuple[Any, ...]], Any] = lambda op, operands, types: None
# For rule programs with a value of such a type: True, NumPy is to evaluate all of it; None, CHOOSER is to be called for
# each operation; else what compiles the program, and returns the function of its operands.
PROGRAM_CHOOSER: Callable[[Program], Any] = lambda program: None
_INTERPRETED = 3  # so many times before such a program is compiled
# Executes operations with bodies that have no evaluate rule; None: their default rule interprets the bodies.
EXECUTE_BODIED: Callable[[Operation, tuple[Any, ...]], Any] | None = None
CACHE_CHOICES = True  # whether the choice between NumPy and XLA may be cached per operand types
_FUNCTIONS = AttachedCache("NumPy functions", "functions", 1 << 16, MEMOS)
EPOCH = object()  # functions generated for rule programs are valid as long as this is the same object


def choose_every_time() -> None:
    """From now on CHOOSER is called for every operation, each time: its choice depends on more than operand types."""
    global HEAVY, CACHE_CHOICES, EPOCH
    HEAVY, CACHE_CHOICES, EPOCH = _Everything(), False, object()
    for memo in MEMOS.alive():
        memo.functions = {}  # a new dictionary: entries that another thread still adds to the old one are lost


class _Everything(set[Any]):
    """A set that is disjoint from none."""

    def isdisjoint(self, others: Any) -> bool:
        return False


def answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The base run's answer to ``op``. The memoised case is written out for one and two operands: it is a hot path."""
    memo = op.memo
    if memo is None or not CONFIG.get().settings.memoises:
        return _answer(op, operands)
    try:
        if len(operands) == 1:
            (x,) = operands
            found = memo.functions.get(x.type)
            if found is None:
                return _answer(op, operands)
            context, f, type = found
            value = x._value
            y = context.run(f, x._read_buffer() if value is None else value)
        elif len(operands) == 2:
            a, b = operands
            found = memo.functions.get((a.type, b.type))
            if found is None:
                return _answer(op, operands)
            context, f, type = found
            left, right = a._value, b._value
            y = context.run(f, a._read_buffer() if left is None else left, b._read_buffer() if right is None else right)
        else:
            found = memo.functions.get(tuple([x.type for x in operands]))
            if found is None:
                return _answer(op, operands)
            context, f, type = found
            y = context.run(f, *[x._read_buffer() if x._value is None else x._value for x in operands])
    except AttributeError:
        _no_boxes(operands)
        raise
    if y.__class__ is ndarray and y.dtype is type.dtype:
        new = UnsealedArray()
        new.type = type
        new._value = y
        new._buffer = None
        new.__class__ = ConcreteArray
        return new
    return _wrapped(op, y, type)


def _answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The base run's answer to any operation under any configuration. Raises: FoundNaN: the settings search for it."""
    y = _evaluate(op, operands)
    settings = config.current()
    if settings.debug_nans or settings.debug_infs:
        _check(op, operands, y, settings)
    return y


def _check(op: Operation, operands: Sequence[Any], y: Any, settings: Any, site: Site | None = None) -> None:
    """Raises: FoundNaN: a result is bad; names the operation in a body of ``op`` where it has some."""
    found = bad_value(op.as_results(y), settings)
    if found is not None:
        if op.bodied:
            find(op)(op, *[x.value for x in operands])
        raise bad_result(op, operands, found, site)


def search(program: Program, operands: Sequence[Any], sites: Any) -> tuple[Any, ...]:
    """The results of a program; ``sites`` are the lines of its equations, None: all have that being executed.

    Raises: FoundNaN: the results of an equation are bad.
    """
    settings = config.current()
    values = bind(program, operands)
    for (op, args, numbers, _), site in zip(program.steps(), repeat(None) if sites is None else sites):
        inputs = tuple([values[n] for n in args])
        if op.bodied and op.runs == "once" and len(op.bodies[0].in_types) == len(inputs):  # type: ignore[attr-defined]
            y: Any = search(op.bodies[0], inputs, op.bodies[0].sites)  # type: ignore[attr-defined]
        else:
            y = _evaluate(op, inputs)
            _check(op, inputs, y, settings, None if site is None else Site(*site))
        for n, result in zip(numbers, op.as_results(y)):
            values[n] = result
    return tuple([values[n] for n in program.outs])


def _evaluate(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The results of any operation under any configuration; memoises its function where it may."""
    kind = type(op)
    settings = config.current()
    if settings.no_execution:
        raise ExecutionRefused(f"{op.name}: nothing is executed under no_execution.", hint="jit(f).lower(x).compile().")
    scoped = settings.mark is None
    rule = None if scoped else _RULES.get(kind)
    if rule is None:
        if op.bodied and EXECUTE_BODIED is not None and not EVALUATE.has(kind) and not settings.disable_jit:
            _no_boxes(operands)
            return EXECUTE_BODIED(op, operands)
        rule = find(op)
    types = tuple([x.type for x in operands])
    functions = None if op.memo is None else op.memo.functions  # before HEAVY: ``choose_every_time`` sets HEAVY first
    light = HEAVY.isdisjoint(types)
    try:
        if not light and (y := CHOOSER(op, operands, types)) is not None:
            return y
        out_type = result_type(op, types)
        values = [x._read_buffer() if x._value is None else x._value for x in operands]
        y = IN_CALLERS_CONTEXT.run(rule, op, *values)
    except AttributeError:
        _no_boxes(operands)
        raise
    if (light or CACHE_CHOICES) and not scoped and functions is not None:
        f = _function(rule, op, types)
        _FUNCTIONS.add(functions, types[0] if len(types) == 1 else types, (context_for(kind, f, types), f, out_type))
    return _wrapped(op, y, out_type)


def inline(program: Program, operands: Sequence[Any], sites: Any = None) -> tuple[Any, ...]:
    """The results of a program under the base run.

    Without ``sites`` the program is a cached rule program, evaluated by one generated function; else it is interpreted.
    """
    settings = CONFIG.get().settings
    if not settings.memoises and (settings.debug_nans or settings.debug_infs or settings.no_execution):
        return search(program, operands, sites)
    if sites is not None:
        return Run.inline(BASE, program, operands, sites)
    try:
        return function_of(program)(*operands)
    except AttributeError:
        _no_boxes(operands)
        raise


def function_of(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The function from concrete arrays to the results of a rule program."""
    return program.facts.get(EPOCH) or memoised(program, EPOCH, lambda: _inline_function(program))


def _inline_function(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The function that evaluates a rule program: by NumPy, compiled, or each operation as it is best."""
    rules = [_RULES.get(type(op)) for op in program.ops]
    if None in rules or not (CACHE_CHOICES or HEAVY.isdisjoint(program.value_types())):
        return lambda *operands: Run.inline(BASE, program, operands)
    choice = HEAVY.isdisjoint(program.value_types()) or PROGRAM_CHOOSER(program)
    if choice is None:
        return lambda *operands: Run.inline(BASE, program, operands)
    if choice is not True:
        return _compiled_later(program, choice)
    types = [[*map(program.type_of, args)] for args in program.args]
    functions = [*map(_function, rules, program.ops, types)]
    contexts = {*map(context_for, map(type, program.ops), functions, types)}
    context = contexts.pop() if len(contexts) == 1 else IN_CALLERS_CONTEXT if contexts else IN_OWN_CONTEXT
    return numpy_function(program, functions, _fitted, None if context is IN_CALLERS_CONTEXT else context)


def _compiled_later(program: Program, compiled: Callable[[], Any]) -> Callable[..., tuple[Any, ...]]:
    """The function that evaluates a program: compiled, once it was interpreted a few times."""
    count, function = 0, None

    def evaluated(*operands: Any) -> tuple[Any, ...]:
        nonlocal count, function
        if function is None:
            count += 1  # two threads may count one call, or both compile: then the program is the same
            if count <= _INTERPRETED:
                return Run.inline(BASE, program, operands)
            function = compiled()
        return function(*operands)

    return evaluated


def _function(rule: Any, op: Operation, types: Sequence[Any]) -> Callable[..., Any]:
    """The function from NumPy arrays of these types to the result: NumPy's own where the operation names it."""
    found = op.numpy_function(types)
    return functools.partial(rule, op) if found is None else found


def _wrapped(op: Operation, y: Any, type: Any) -> Any:
    """The results of an operation, as performing it returns them, from what its evaluate rule gave."""
    return tuple(map(wrap, y, type)) if op.multiple_results else wrap(y, type)


def wrap(y: Any, type: Any) -> ConcreteArray:
    """The array of this type with the result of an evaluate rule."""
    return concrete(type, _fitted(y, type))


def _fitted(y: Any, type: Any) -> np.ndarray[Any, Any]:
    """The result of an evaluate rule as a NumPy array of exactly the dtype of ``type``."""
    dtype = type.dtype
    if y.__class__ is not ndarray:
        y = np.asarray(y, dtype) if isinstance(y, np.integer) and dtype in INTEGER else np.asarray(y)
    if isinstance(dtype, ExtendedDType):
        if not y.size:  # a rule on an empty array cannot infer the trailing axes of the representation
            y = y.reshape((*type.shape, *dtype.shape))
    elif y.dtype is not dtype and y.dtype != dtype:
        if y.dtype.kind in "biu":
            return y.astype(dtype)
        with np.errstate(all="ignore"):  # a number may be too large
            y = y.astype(dtype)
    return y


def find(op: Operation) -> Callable[..., Any]:
    """The evaluate rule in force for an operation.

    Raises: UnboundAxis, UnhandledEffect: it names an axis, or is an effect, and reached the base unhandled.
    """
    kind = type(op)
    if not EVALUATE.has(kind):
        if op.named:
            raise unbound_axis(op.name, op.axis_names[0])  # type: ignore[attr-defined]
        if op.effectful:
            raise UnhandledEffect(
                f"{op.name}: no handler handles this effect.",
                hint=op.remedy or "run it under hx.handle(handler)(f), with a clause for it.",
            )
    return EVALUATE.find(kind)


def _no_boxes(operands: Sequence[Any]) -> None:
    """Raises: EscapedBox: an operand is a box, whose run is not among the handlers in force."""
    for x in operands:
        if x.run is not None:
            raise escaped_box_error(x)
