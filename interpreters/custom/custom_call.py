"""Calls of functions with custom rules: binding of arguments, and whether the call is recorded or evaluated at once."""

from __future__ import annotations

import types
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple

from ...effects.base.caches import HoldsParts
from ...effects.base.errors import BadArgument, BadCall, EscapedBox, MissingUserRule, NotAnArray, need_function
from ...effects.base.stack import BASE, STACK, Run, current, inside, runs
from ...effects.base.tracebacks import boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.custom_rules import CustomVmap
from ...effects.control.recorded_bodies import body_of
from ...effects.core.arrays import Array, as_array
from ...effects.core.signatures import P, R
from ...effects.functions.captured import boxes_in, placeholders_for, replaced
from ...effects.functions.keys import KeyedValue, UserFunction
from ...effects.programs.closure_conversion import close_all
from ...effects.trees import pytrees
from ..core.compile_time import CompileTime
from ..core.static_arguments import listed_names, listed_positions, merge_arguments, signature_of
from ..differentiation.jvp import Jvp
from ..differentiation.linearize_bodies import LinearizingJvp
from ..differentiation.partial_eval import Tape


class BoundArguments:
    """Binds the arguments of a function to positions, and separates the static ones (nondiff_argnums) from values.

    ``word``: what the parameters that name the static ones begin with.
    """

    def __init__(self, where: str, fun: Callable[..., Any], argnums: Any, argnames: Any, word: str = "nondiff"):
        self.where = where
        self.word = word
        self.name = name_of(fun)
        self.signature = signature_of(fun)
        parameters = list(self.signature.parameters.values()) if self.signature else []
        named = [p for p in parameters if p.default is not p.empty or p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        # the number of positional arguments that need no binding; None where every call is bound
        self.plain = None if named or any([p.kind is p.VAR_POSITIONAL for p in parameters]) else len(parameters)
        names = listed_names(argnames, word)
        positions = [p.name for p in parameters]
        for name in names:
            if name not in positions:
                raise BadArgument(f"{where}: {word}_argnames must name parameters of {self.name}, got {name!r}.")
        self.static = tuple(sorted({*listed_positions(argnums, word), *[positions.index(name) for name in names]}))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments of a call by position, with defaults filled in."""
        if not kwargs and (len(args) == self.plain or self.signature is None):
            return args
        if self.signature is None:
            raise BadCall(f"{self.where}: arguments of {self.name} must be positional, since it has no signature.")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadCall(f"{self.where}: {self.name}: {error}.") from None
        bound.apply_defaults()
        named = [name for name in bound.kwargs if name in kwargs]  # defaults are the function's own business
        if named:
            raise BadCall(
                f"{self.where}: arguments of {self.name} are passed to its rule by position, got keyword-only "
                f"{', '.join(named)}.",
                hint="make them positional parameters.",
            )
        return bound.args

    def split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Array], Any]:
        """The static arguments of a call, the leaves of the others, and the treedef of the others."""
        if self.static and self.static[-1] >= len(args):
            raise BadArgument(
                f"{self.where}: {self.word}_argnums must name arguments, got {self.static} for {len(args)} of them."
            )
        if self.static and self.static[0] < 0:
            raise BadArgument(f"{self.where}: {self.word}_argnums must not be negative, got {self.static}.")
        values = tuple([x for i, x in enumerate(args) if i not in self.static]) if self.static else args
        leaves, tree = pytrees.flatten(values)
        try:
            xs = [as_array(x) for x in leaves]
        except NotAnArray as error:
            raise NotAnArray(
                f"{self.where}: arguments of {self.name} must be arrays or numbers. {error.what}",
                hint=f"name it in {self.word}_argnums.",
            ) from None
        return [args[i] for i in self.static], xs, tree


_DEFINITIONS = frozenset(("defjvp", "defjvps", "defvjp", "def_vmap"))


def with_placeholders(value: Any, placeholder_of: Mapping[int, Any]) -> UserFunction:
    """A function or static argument of a deferred rule, with a placeholder for each box that it captured."""
    return UserFunction(replaced(value, placeholder_of))


def substitution(boxes: Sequence[KeyedValue], values: Sequence[Any]) -> dict[int, Any]:
    """The map for ``replaced`` from the placeholders ``boxes`` to these values."""
    return {id(box.value): value for box, value in zip(boxes, values)}


class CustomFunction(HoldsParts, Generic[P, R]):
    """A function with a custom rule: handlers that ask for the rule get it in place of the function's operations.

    ``operation``: the operation that a call performs, with the function as body. ``rule_names``: the attributes that
    hold the user's functions, None while they are not defined; ``definition``: the methods that define them.
    """

    operation: Any
    rule_names: tuple[str, ...]
    definition: str
    captures: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls.captures = ("fun", *cls.rule_names, "__wrapped__")

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        where = type(self).__name__
        need_function(where, fun)
        wraps(fun)(self)
        self.cache_parts = {}
        self.fun: Callable[..., R] = fun
        self._arguments = BoundArguments(where, fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self._arguments.static

    @abstractmethod
    def _rule(self, *parts: Any) -> Any:
        """The deferred rule of one call.

        ``parts``: the name of the function, its static arguments, the treedef of the others, the placeholders of
        captured boxes, the number of captured values before them among the operands, treedef and types of the results
        (None where unknown), and the user's functions, by ``rule_names``.
        """

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        arguments, fun = self._arguments, self.fun
        rules = [getattr(self, name) for name in self.rule_names]
        if None in rules:
            raise MissingUserRule(
                f"{arguments.where}: {arguments.name} has no rule yet.", hint=f"define it with {self.definition}."
            )
        static_values, xs, tree = arguments.split(arguments.positional(args, kwargs))

        def function(*values: Any) -> Any:
            return fun(*merge_arguments(zip(arguments.static, static_values), pytrees.unflatten(tree, values)))

        def make_rule(boxes: Any, first: int, expected: Any, placeholder_of: Any) -> Any:
            statics = tuple([with_placeholders(value, placeholder_of) for value in static_values])
            functions = [with_placeholders(rule, placeholder_of) for rule in rules]
            return self._rule(arguments.name, statics, tree, boxes, first, expected, *functions)

        call = CustomCall(self.operation, arguments.name, function, make_rule, (fun, *rules, *static_values))
        return perform_call(call, xs)

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., R]:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        """Methods that define a rule of another kind are those of the function inside, if it takes such rules."""
        if name in _DEFINITIONS and isinstance(fun := self.__dict__.get("fun"), CustomFunction):
            return getattr(fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class RuleResults(NamedTuple):
    """What a derivative rule returns: results, their tangents (None: zero), and the treedef of the results."""

    outs: list[Any]
    tangents: list[Any]
    tree: Any


class CustomCall(NamedTuple):
    """A call of a function with a custom rule.

    ``function`` takes leaves and returns a tree. ``make_rule(placeholders, first, expected, placeholder_of)`` makes the
    deferred rule: the placeholders of captured boxes; the number of captured values that precede them among the
    operands; treedef and types of the results, None where unknown; and the placeholder of each box by its identity.
    """

    operation: Any
    name: str
    function: Callable[..., Any]
    make_rule: Callable[..., Any]
    functions: Sequence[Any]  # the functions and static arguments, searched for captured boxes


def perform_call(call: CustomCall, xs: Sequence[Array]) -> Any:
    """Perform a call; returns the tree of its results.

    The function is recorded as the body of an operation only where a handler in force needs that. Else it is called
    directly, so that it sees concrete values: under the base, and under derivatives of other values.

    Raises: EscapedBox: the function or rule captures a box in a way that ``boxes_in`` does not follow.
    """
    run = current()
    if run is not BASE and boxes_in(*call.functions):
        return _perform_recorded(call, xs)
    if all([x.run is None for x in xs]) and all([type(each) in _DERIVATIVES for each in runs()]):
        return pytrees.map(as_array, call.function(*xs))  # no argument has a tangent; captured values may
    try:
        return _evaluate(call, xs)
    except EscapedBox as error:
        raise EscapedBox(
            f"{call.name}: {error.what}",
            hint="values that rules capture are found in closures, partial arguments, methods and trees; pass other "
            "values as arguments.",
        ) from error


def _evaluate(call: CustomCall, xs: Sequence[Array]) -> Any:
    """The tree of the results of a call, without a record where possible.

    The base calls the function, as does ``ensure_compile_time_eval`` on concrete operands. A derivative with a box
    among the operands applies the rule at once, one without, and a tape without, is passed over. Every other handler
    gets the recorded operation.
    """
    run = current()
    kind = type(run)
    if run is BASE or (kind is CompileTime and all([x.run is None for x in xs])):
        return pytrees.map(as_array, call.function(*xs))
    owned = any([x.run is run for x in xs])
    if kind is Run or (kind is Tape and not owned) or (kind in FORWARD_MODE and not owned):
        with inside(run.outer):
            return _evaluate(call, xs)
    if isinstance(run, Jvp) and kind in FORWARD_MODE and call.operation is not CustomVmap:
        pairs = [run.unbox(x) for x in xs]
        with inside(run.outer):
            results = call.make_rule((), 0, None, {}).apply((), [x for x, _ in pairs], [dx for _, dx in pairs])
        return pytrees.unflatten(results.tree, [run.pair(y, dy) for y, dy in zip(results.outs, results.tangents)])
    return _perform_recorded(call, xs)


FORWARD_MODE = (Jvp, LinearizingJvp)
_DERIVATIVES = (*FORWARD_MODE, Tape, Run)  # handlers that forward every operation without one of their boxes


def _perform_recorded(call: CustomCall, xs: Sequence[Array]) -> Any:
    """Record the function and perform the operation with that body; captured values and boxes become operands."""
    body = body_of(call.name, call.function, [x.type for x in xs], call.operation.name)
    (program,), captured = close_all([body.program])
    boxes = boxes_in(*call.functions) if current() is not BASE else []
    first, count = len(captured), len(boxes)
    in_types = [x.type for x in (*captured, *boxes, *xs)]
    program = program.rewired(in_types, [*range(first), *range(first + count, len(in_types))])
    placeholders, placeholder_of = placeholders_for(boxes)
    expected = (body.structure, program.out_types)
    rule = call.make_rule(tuple(map(KeyedValue, placeholders)), first, expected, placeholder_of)
    results = STACK.get().answer(call.operation((program,), first + count, rule), (*captured, *boxes, *xs))
    return pytrees.unflatten(body.structure, results)
