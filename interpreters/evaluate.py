"""Evaluate: the base interpretation. Operations are answered by NumPy, which is their specification."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects import config
from ..effects.arrays import ConcreteArray, concrete
from ..effects.columns import EVALUATE
from ..effects.dtypes import ExtendedDType
from ..effects.errors import UnboundAxis, UnhandledEffect
from ..effects.escape import escaped
from ..effects.operations import Operation, result_type
from ..effects.programs import Program
from ..effects.stack import BASE, Run
from .straight import ERRORS, SILENT, evaluated

_RULES = EVALUATE.registry

# Types of arrays for which NumPy may be slow; CHOOSER is asked about operations on these, and gives None or the result.
# WHOLE answers higher-order operations without a cell of their own. All three are installed once, by the package.
HEAVY: set[Any] = set()
CHOOSER: Callable[[Operation, tuple[Any, ...], tuple[Any, ...]], Any] = lambda op, operands, types: None
WHOLE: Callable[[Operation, tuple[Any, ...]], Any] | None = None
# In an operation's memo, beside its result types: (*types, _SETTLED) -> function and result type, where NumPy answers.
_SETTLED = object()
LASTING = True  # whether what CHOOSER leaves to NumPy is NumPy's for good


def ask_always() -> None:
    """From now on CHOOSER is asked about everything, each time: it is no longer the types alone that it looks at."""
    global HEAVY, LASTING, _SETTLED
    HEAVY, LASTING, _SETTLED = _Everything(), False, object()


class _Everything(set[Any]):
    """A set that shares an element with every other, whatever is added."""

    def isdisjoint(self, others: Any) -> bool:
        return False


def answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """Answer ``op`` with NumPy: what the base run does. Written out for one and two operands of settled types."""
    memo, scoped = op.memo, config.CONFIG.get()
    if memo is None or (scoped is not None and scoped.mark is None):
        return _answer(op, operands)
    try:
        if len(operands) == 1:
            (x,) = operands
            settled = memo.get((x.type, _SETTLED))
            if settled is None:
                return _answer(op, operands)
            f, made = settled
            value = x._value
            token = ERRORS.set(SILENT)
            try:
                y = f(x._read() if value is None else value)
            finally:
                ERRORS.reset(token)
        elif len(operands) == 2:
            a, b = operands
            settled = memo.get((a.type, b.type, _SETTLED))
            if settled is None:
                return _answer(op, operands)
            f, made = settled
            value, other = a._value, b._value
            token = ERRORS.set(SILENT)
            try:
                y = f(a._read() if value is None else value, b._read() if other is None else other)
            finally:
                ERRORS.reset(token)
        else:
            return _answer(op, operands)
    except AttributeError:
        _no_boxes(operands)
        raise
    if y.__class__ is np.ndarray and y.dtype is made.dtype:
        return concrete(made, y)
    return wrap(y, made)


def _answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """Answer any operation, under any settings."""
    kind = type(op)
    scoped = config.current().mark is None
    rule = None if scoped else _RULES.get(kind)
    if rule is None:
        if op.bodied and WHOLE is not None and not EVALUATE.has(kind) and not config.current().disable_jit:
            _no_boxes(operands)
            return WHOLE(op, operands)
        rule = find(op)
    types = tuple([x.type for x in operands])
    settled, light = _SETTLED, HEAVY.isdisjoint(types)  # the mark first: what is found now holds for it alone
    token = ERRORS.set(SILENT)
    try:
        if not light and (y := CHOOSER(op, operands, types)) is not None:
            return y
        made = result_type(op, types)
        y = rule(op, *[x._read() if x._value is None else x._value for x in operands])
    except AttributeError:
        _no_boxes(operands)
        raise
    finally:
        ERRORS.reset(token)
    if op.multiple:
        return tuple(map(wrap, y, made))
    if (light or LASTING) and not scoped and op.memo is not None:
        op.memo[(*types, settled)] = _function(rule, op, types), made
    return wrap(y, made)


def take(program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a formula: what the base run does."""
    run = program._cache.get(_SETTLED)
    if run is None:
        run = program._cache[_SETTLED] = _straight(program)
    try:
        return run(*operands)
    except AttributeError:
        _no_boxes(operands)
        raise


def _straight(program: Program) -> Callable[..., tuple[Any, ...]]:
    """All at once; where a type is heavy or a rule is missing, one operation after the other."""
    rules = [_RULES.get(type(op)) for op in program.ops]
    if None in rules or not HEAVY.isdisjoint(program.value_types()):
        return lambda *operands: Run.take(BASE, program, operands)
    known = program.type_of
    functions = [_function(f, op, [*map(known, args)]) for f, op, args in zip(rules, program.ops, program.args)]
    return evaluated(program, functions, _fitted)


def _function(rule: Any, op: Operation, types: Sequence[Any]) -> Callable[..., Any]:
    """The rule as a function of operands of these types: one of NumPy's where the rule's ``chosen`` says so."""
    choose = getattr(rule, "chosen", None)
    found = None if choose is None else choose(op, types)
    return functools.partial(rule, op) if found is None else found


def wrap(y: Any, type: Any) -> ConcreteArray:
    """The array of what a NumPy rule gave."""
    return concrete(type, _fitted(y, type))


def _fitted(y: Any, type: Any) -> np.ndarray[Any, Any]:
    """What a NumPy rule gave, with exactly the type that was promised."""
    dtype = type.dtype
    if y.__class__ is not np.ndarray:
        y = np.asarray(y)
    if isinstance(dtype, ExtendedDType):
        if not y.size:  # where there is no key its words look like none to a rule
            y = y.reshape((*type.shape, *dtype.shape))
    elif y.dtype is not dtype and y.dtype != dtype:
        with np.errstate(all="ignore"):
            y = y.astype(dtype)
    return y


def find(op: Operation) -> Callable[..., Any]:
    kind = type(op)
    if not EVALUATE.has(kind):
        if op.named:
            raise UnboundAxis(
                f"{op.name}: nothing binds the axis {', '.join(map(repr, op.axis_names))}.",  # type: ignore[attr-defined]
                hint="run it under vmap(..., axis_name=...).",
            )
        if op.effectful:
            raise UnhandledEffect(
                f"{op.name}: nobody handles this effect.",
                hint=getattr(op, "remedy", "run it under hx.handle(handler)(f), with a clause for it."),
            )
    return EVALUATE.find(kind)


def _no_boxes(operands: Sequence[Any]) -> None:
    for x in operands:
        if x.run is not None:
            raise escaped(x)
