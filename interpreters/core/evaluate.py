"""Evaluate: the base interpretation, of operations on concrete arrays. NumPy is their specification.

An eager call is a program of one operation or several. ``executor`` decides from the estimated work of the program
whether NumPy executes it operation by operation, or XLA as a whole.

    answer(op, operands)         == executor of the program of ``op`` alone
    inline(program, operands)    == executor(program)(*operands)

The executor of one operation is memoised on the operation by the types of its operands, that of a program on the
program. By NumPy it is one generated function. ``LaterLayers.plan`` may compile it instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.caches import AttachedCache, Cache
from ...effects.base.errors import BadStaticArgument, ExecutionRefused, HandlaxError, OutOfMemory
from ...effects.base.later_layers import LaterLayers
from ...effects.base.source_locations import Site, is_ours
from ...effects.base.stack import BASE, Run
from ...effects.base.wrapping import errors_ignored
from ...effects.core.columns import DEFAULT, EVALUATE, LOWER
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.core.named_axes import unbound_axis
from ...effects.core.operation import MEMOS, Memo, Operation, result_type
from ...effects.programs.program import Program, bind, memoised
from ...effects.programs.unhandled_effects import unhandled
from ...effects.types.dtypes import INTEGER, ExtendedDType
from .bad_values import bad_result, bad_value
from .numpy_errors import IN_CALLERS_CONTEXT, IN_OWN_CONTEXT, context_for
from .rule_codegen import numpy_function
from .rule_results import checked_rule

CONFIG, ndarray = config.CONFIG, np.ndarray
Executor = Callable[..., Any]


class Plan(NamedTuple):
    """How to compile a program: the nanoseconds saved by each call, those that compiling takes, and the compiler."""

    saved: float
    price: float
    compiled: Callable[[], Executor]


PATIENCE = 32  # a program is compiled when its calls, so many times over, would have saved what compiling takes
_FUNCTIONS = AttachedCache("executors", "functions", 1 << 16, MEMOS)
"""Functions of concrete arrays that execute one operation, by the types of its operands; attached to the operation."""
_MADE_ANEW = Cache("operations made anew")
"""A memo of executors for all equal operations that have none of their own, since each call makes another one."""
EPOCH = object()  # executors of programs are valid as long as this is the same object


def forget_executors() -> None:
    """Drop all executors: the choice between NumPy and XLA has changed."""
    global EPOCH
    EPOCH = object()
    for memo in MEMOS.alive():
        memo.functions = {}  # a new dictionary: entries that another thread still adds to the old one are lost


def answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The results of ``op`` on concrete operands: a fast path for memoised executors, else ``_answer``."""
    memo = op.memo
    if memo is None or not CONFIG.get().settings.memoises:
        return _answer(op, operands)
    if len(operands) == 2:  # a hot path: a tuple of two is made at once
        a, b = operands
        f = memo.functions.get((a.type, b.type))
    else:
        f = memo.functions.get(operands[0].type if len(operands) == 1 else tuple([x.type for x in operands]))
    if f is None:
        return _answer(op, operands)
    try:
        return f(*operands)
    except (AttributeError, MemoryError) as error:
        _explain(error, operands)
        raise


def _answer(op: Operation, operands: tuple[Any, ...]) -> Any:
    """The results of any operation under any configuration.

    Raises: FoundNaN: a result has a NaN or infinity, and the settings ``debug_nans`` or ``debug_infs`` forbid it.
    """
    y = _evaluate(op, operands)
    settings = config.current()
    if settings.debug_nans or settings.debug_infs:
        _check(op, operands, y, settings)
    return y


def _check(op: Operation, operands: Sequence[Any], y: Any, settings: Any, site: Site | None = None) -> None:
    """Check the result of ``op`` for values that the settings forbid; if ``op`` has bodies, also inside of these.

    Raises: FoundNaN: there is one; names the innermost operation with such a result.
    """
    bad = bad_value(op.as_results(y), settings)
    if bad is not None:
        if op.bodied:
            find(op)(op, *[x.value for x in operands])
        raise bad_result(op, operands, bad, site)


def search(program: Program, operands: Sequence[Any], sites: Any) -> tuple[Any, ...]:
    """The results of a program, each equation checked for NaN and infinity as the settings say.

    ``sites``: the source lines of the equations, None if all have the line being executed.

    Raises: FoundNaN: a result of an equation has a NaN or infinity that the settings forbid.
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
    """The results of any operation under any configuration; memoises its executor where it may."""
    settings = config.current()
    if settings.no_execution:
        raise ExecutionRefused(
            f"{op.name}: nothing is executed under no_execution.", hint="jit(f).lower(x).compile() compiles it."
        )
    types = tuple([x.type for x in operands])
    key = types[0] if len(types) == 1 else types
    interpreted = op.bodied and settings.disable_jit
    # the dictionary is read before a plan is asked for: see ``forget_executors``
    own = interpreted or (settings.mark is None and _in_scope(op, settings))
    memo = None if own else op.memo or _shared_memo(op)
    functions = None if memo is None else memo.functions
    try:
        f = None if functions is None else functions.get(key)
        if f is None:
            f = _executor_of(op, types, interpreted)
        y = f(*operands)
    except (AttributeError, MemoryError) as error:
        _explain(error, operands)
        raise
    if functions is not None and key not in functions:
        _FUNCTIONS.add(functions, key, f)
    return y


def _in_scope(op: Operation, settings: config.Configuration) -> bool:
    """Whether the executor of an operation may be another one within the scopes of rules in force."""
    return op.bodied or EVALUATE.in_scope(type(op)) or [*settings.tables] != [EVALUATE.name]


def _executor_of(op: Operation, types: tuple[Any, ...], interpreted: bool) -> Executor:
    """The function from concrete arrays of these types to the results of an operation; ``interpreted``: its bodies are.

    A default clause may answer by a Python object, which no program has.
    """
    if _by_default(type(op)):
        return lambda *operands: LaterLayers.answer_by_default(op, operands)
    program, bare = program_of(op, types), not op.multiple_results
    return _separately(program, bare) if interpreted else executor(program, bare)


def _shared_memo(op: Operation) -> Memo | None:
    """The memo of all operations equal to this one; None: it holds functions of the user's, not to be kept alive."""
    if op.bodied or op.deferred or op.calls_host:
        return None
    try:
        return _MADE_ANEW.entries.get(op) or _MADE_ANEW.add(op, Memo())
    except BadStaticArgument:  # it has a field that cannot be hashed, which is refused where programs are compared
        return None


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
    except (AttributeError, MemoryError) as error:
        _explain(error, operands)
        raise


def function_of(program: Program) -> Executor:
    """The memoised executor of a rule program."""
    return program.facts.get(EPOCH) or memoised(program, EPOCH, lambda: executor(program))


def program_of(op: Operation, types: tuple[Any, ...]) -> Program:
    """The program of one operation on operands of these types."""
    results, n = result_type(op, types), len(types)
    outs = range(n, n + len(op.as_results(results)))
    return Program(types, (op,), (tuple(range(n)),), (results,), outs, name=op.name)


def executor(program: Program, bare: bool = False) -> Executor:
    """The function from concrete arrays to a program's results, or to its only result if ``bare``.

    A program with an operation whose evaluate rule ``hx.rules`` overrides is never compiled, however much work it is.
    """
    in_scope = any([EVALUATE.in_scope(type(op)) for op in program.ops])
    return chosen(program, None if in_scope else LaterLayers.plan(program), bare)


def _by_default(kind: type[Operation]) -> bool:
    """Whether the base answers operations of this class by a default clause."""
    return kind.effectful and DEFAULT.has(kind) and not (EVALUATE.has(kind) or LOWER.has(kind))


def chosen(program: Program, plan: Plan | None, bare: bool = False) -> Executor:
    """The executor by a plan: NumPy's without a plan, else the compiled one, at once or after enough calls."""
    if plan is None:
        return _separately(program, bare)
    if plan.saved * PATIENCE >= plan.price:
        f = plan.compiled()
    else:
        f = _compiled_in_time(_separately(program), plan)
    return (lambda *operands: f(*operands)[0]) if bare else f


def _compiled_in_time(separate: Executor, plan: Plan) -> Executor:
    """An executor that calls ``separate`` until compiling would have paid off, then the compiled function."""
    calls, function = 0, None

    def evaluated(*operands: Any) -> Any:
        nonlocal calls, function
        if function is None:
            calls += 1  # two threads may count one call, or both compile: then the executable is the same
            if calls * plan.saved * PATIENCE < plan.price:
                return separate(*operands)
            function = plan.compiled()
        return function(*operands)

    return evaluated


def _by_numpy(op: Operation, types: tuple[Any, ...]) -> bool:
    """Whether NumPy can execute the operation, and XLA would not be faster."""
    return EVALUATE.has(type(op)) and not LaterLayers.plan(program_of(op, types))


def _separately(program: Program, bare: bool = False) -> Executor:
    """The executor that evaluates a program operation by operation: a generated function if NumPy executes all."""
    ops, types = program.ops, [tuple(map(program.type_of, args)) for args in program.args]
    if len(ops) > 1 and not all(map(_by_numpy, ops, types)):
        return lambda *operands: Run.inline(BASE, program, operands)
    functions = [*map(_function, map(find, ops), ops, types)]
    contexts = {*map(context_for, map(type, ops), functions, types)}
    context = contexts.pop() if len(contexts) == 1 else IN_CALLERS_CONTEXT if contexts else IN_OWN_CONTEXT
    return numpy_function(program, functions, _fitted, None if context is IN_CALLERS_CONTEXT else context, bare)


def _function(rule: Any, op: Operation, types: Sequence[Any]) -> Callable[..., Any]:
    """The function by which ``rule`` evaluates ``op`` on NumPy arrays of these types.

    NumPy's own function where the operation names one as equal to the rule of its block; a rule from ``hx.rules`` is
    always called itself. What a rule of the user's returns is checked.
    """
    function = op.numpy_function(types) if rule is EVALUATE.registered(type(op)) else None
    if function is not None:
        return function
    ours = rule is EVALUATE.registered(type(op)) and is_ours(type(op).__module__)
    return functools.partial(rule, op) if ours else checked_rule(rule, op, result_type(op, tuple(types)))


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
        y = errors_ignored(y.astype, dtype)  # a number may be too large
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
            raise unhandled(op.name, [op])
    return EVALUATE.find(kind)


def _explain(error: AttributeError | MemoryError, operands: Sequence[Any]) -> None:
    """Explain an error of operations on these operands that reached the base run.

    Raises: EscapedBox: an operand is a box, so that its run is not among the handlers in force. OutOfMemory: NumPy has
    no memory for a result.
    """
    if isinstance(error, MemoryError) and not isinstance(error, HandlaxError):
        raise OutOfMemory(f"the memory of the host must suffice, got {str(error) or 'a MemoryError'}.") from None
    for x in operands:
        if x.run is not None:
            raise escaped_box_error(x)
