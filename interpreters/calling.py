"""Functions with rules of their own, when they are called: which arguments are values, and who has to know the rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects import trees
from ..effects.arrays import Array, lift
from ..effects.bodies import body_of
from ..effects.closing import close_all
from ..effects.closures import boxes_in, holes_for
from ..effects.errors import BadArgument, BadCall, EscapedBox, NotAnArray
from ..effects.stack import BASE, STACK, Run, current, inside, runs
from .jvp import Jvp
from .late import Held
from .partial_eval import Tape


class Arguments:
    """How a function is called: keywords become positions, and static arguments are told from values."""

    def __init__(self, where: str, fun: Callable[..., Any], argnums: Any, argnames: Any):
        self.where = where
        self.name = getattr(fun, "__name__", type(fun).__name__)
        self.signature: inspect.Signature | None
        try:
            self.signature = inspect.signature(fun)
        except (TypeError, ValueError):
            self.signature = None
        parameters = list(self.signature.parameters.values()) if self.signature else []
        named = [p for p in parameters if p.default is not p.empty or p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        # how many arguments need not be bound to their parameters
        self.plain = None if named or any([p.kind is p.VAR_POSITIONAL for p in parameters]) else len(parameters)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        places = [p.name for p in parameters]
        for name in names:
            if name not in places:
                raise BadArgument(f"{where}: nondiff_argnames must name parameters of {self.name}, got {name!r}.")
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        self.static = tuple(sorted({*numbers, *[places.index(name) for name in names]}))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults included."""
        if not kwargs and (len(args) == self.plain or self.signature is None):
            return args
        if self.signature is None:
            raise BadCall(f"{self.where}: {self.name} shows no signature, so its arguments go by position.")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadCall(f"{self.where}: {self.name}: {error}.") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise BadCall(
                f"{self.where}: arguments of {self.name} go by position to its rule, got {', '.join(bound.kwargs)} "
                "by keyword alone.",
                hint="make them positional parameters.",
            )
        return bound.args

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Held, ...], list[Array], Any]:
        """Static arguments, the leaves of the others, and the tree of these."""
        if self.static and self.static[-1] >= len(args):
            raise BadArgument(
                f"{self.where}: nondiff_argnums must name arguments, got {self.static} for {len(args)} of them."
            )
        if self.static and self.static[0] < 0:
            raise BadArgument(f"{self.where}: nondiff_argnums must not be negative, got {self.static}.")
        values = tuple([x for i, x in enumerate(args) if i not in self.static]) if self.static else args
        leaves, tree = trees.flatten(values)
        try:
            xs = [lift(x) for x in leaves]
        except NotAnArray as error:
            raise NotAnArray(
                f"{self.where}: arguments of {self.name} must be arrays or numbers. {error.what}",
                hint="name it in nondiff_argnums.",
            ) from None
        return tuple([Held(args[i]) for i in self.static]), xs, tree

    def joined(self, statics: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """All arguments in their places."""
        return joined(self.static, statics, values)


def joined(places: Sequence[int], statics: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    made = list(values)
    for place, value in zip(places, statics):
        made.insert(place, value)
    return made


class Made(NamedTuple):
    """What a derivative's rule gives: results, their tangents, None being zero, and the tree of the results."""

    outs: list[Any]
    tangents: list[Any]
    tree: Any


class Call(NamedTuple):
    """A call of a function with a rule.

    ``function`` takes flat values and gives a tree. ``rule(holes, first, expected, which)`` makes the late rule: holes
    for captured boxes, how many values the body captured before, what the body gives, and what goes into which hole.
    """

    operation: Any
    name: str
    function: Callable[..., Any]
    rule: Callable[..., Any]
    held: Sequence[Any]  # what may reach boxes
    derivative: bool = True  # whether the rule is one


def perform_call(call: Call, xs: Sequence[Array]) -> Any:
    """Perform a call; gives the tree of its results.

    Where nobody around needs the function as a program, it runs as it is: the values are those that Python can see.
    """
    run = current()
    if run is not BASE and boxes_in(*call.held):
        return recorded(call, xs)
    if all([x.run is None for x in xs]) and all([type(each) in _DERIVATIVES for each in runs()]):
        return trees.map(lift, call.function(*xs))  # no argument is differentiated, what is captured may be
    try:
        made = directly(call, xs)
    except EscapedBox as error:
        raise EscapedBox(
            f"{call.name}: {error.what}",
            hint="what rules capture is followed through closures, partial arguments, methods and trees; pass other "
            "values as arguments.",
        ) from error
    return trees.unflatten(made.tree, made.outs)


def directly(call: Call, xs: Sequence[Array]) -> Made:
    run = current()
    kind = type(run)
    if run is BASE:
        outs, tree = trees.flatten(call.function(*xs))
        return Made([lift(y) for y in outs], [], tree)
    mine = any([x.run is run for x in xs])
    if kind is Run or (kind is Tape and not mine) or (kind is Jvp and not mine):
        with inside(run.outer):
            return directly(call, xs)
    if isinstance(run, Jvp) and call.derivative:
        pairs = [run.unbox(x) for x in xs]
        with inside(run.outer):
            made = call.rule((), 0, None, {}).made([x for x, _ in pairs], [dx for _, dx in pairs])
        return Made([run.pair(y, dy) for y, dy in zip(made.outs, made.tangents)], [], made.tree)
    outs, tree = trees.flatten(recorded(call, xs))
    return Made(outs, [], tree)


_DERIVATIVES = (Jvp, Tape, Run)  # those that answer for their own boxes alone


def recorded(call: Call, xs: Sequence[Array]) -> Any:
    """Perform the operation, over the function as a program."""
    body = body_of(call.name, call.function, [x.type for x in xs])
    (program,), captured = close_all([body.program])
    boxes = boxes_in(*call.held) if current() is not BASE else []
    first, count = len(captured), len(boxes)
    types = [*[x.type for x in captured], *[x.type for x in boxes], *[x.type for x in xs]]
    program = program.rewired(types, [*range(first), *range(first + count, len(types))])
    holes, which = holes_for(boxes)
    rule = call.rule(tuple(map(Held, holes)), first, (body.structure, program.out_types), which)
    results = STACK.get().answer(call.operation((program,), first + count, rule), (*captured, *boxes, *xs))
    return trees.unflatten(body.structure, results)
