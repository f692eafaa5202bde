"""The laws of handlers, as values, and their check.

    check_handler(handler({Tick: lambda n, op: (n + 1, None)}), 0, performs=lambda x: tick())

A law is checked on random programs of loops, branches, calls and checkpoints that perform the effects of the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from .. import lax
from .. import numpy as hnp
from ..effects.base.config import configure
from ..effects.base.errors import BadArgument, some_of
from ..effects.base.stack import STACK, Run, installed
from ..effects.core.arrays import Array, as_array
from ..effects.core.operation import Operation
from ..effects.operations.elementwise.transcendental import Tanh
from ..effects.trees import pytrees
from ..interpreters.direct.install import direct
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import Handler
from ..interpreters.handlers.installation import NO_STATE, HandlerRun
from ..interpreters.handlers.state_movements import When, append, merge, split
from ..interpreters.transformations.checkpoint import checkpoint
from ..interpreters.transformations.derivatives import jvp
from ..interpreters.transformations.vmap import vmap
from ..lowering.jit.ahead_of_time import eval_shape
from .closeness import assert_close
from .crossing_laws import INNER_JIT, JIT, LANES, assert_arrays_equal, crosses, inside
from .drawn_programs import check_on_programs
from .generator.control import CONTROL
from .generator.control_flow import CHOOSING
from .generator.nests import Nest
from .generator.unrolled import UNROLLED, evaluated
from .law import Law, Report
from .recordings import Transformation, plain
from .tangents import drawn_tangents, smooth_part


@dataclass(frozen=True)
class HandlerCase:
    """A handler with its initial state, and how programs perform its effects: ``performs`` a number gives a number."""

    handler: Handler
    state: Any
    performs: Callable[[Any], Any]
    normal: Callable[[Any], Any]

    def answers(self, op: Operation) -> bool:
        """Whether the handler answers an operation, or what its bodies may perform."""
        return HandlerRun(STACK.get(), self.handler, self.state).sees(op)

    @property
    def stateful(self) -> bool:
        """Whether an answer is a state and a result."""
        return self.state is not NO_STATE and self.handler.returns is None

    def handled(self, f: Callable[..., Any], state: Any = None) -> Callable[..., Any]:
        """The function under the handler, from its initial state or another one."""
        return handle(self.handler, self.state if state is None else state)(f)

    def tell(self, x: Any) -> Any:
        """Performs effects, and gives a number made of their answer, another one for each answer."""
        answer = self.performs(x)
        return hnp.arcsinh(x + total(answer)) if pytrees.leaves(answer) else x

    @property
    def ends(self) -> bool:
        """Whether clauses give the answer of the whole program, as those of ``ctl`` and ``final`` do."""
        return self.handler.resumes or self.handler.aborts

    def program(self, nest: Nest, control: Any = CONTROL) -> Callable[..., Any]:
        """The nest as a program that performs, with the loops and branches of a control."""
        return self.answered(nest.by(control, tell=self.tell))

    def answered(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gives a tuple of arrays; where a clause gives its answer, that is a number, their sum."""
        return (lambda *xs: total(f(*xs))) if self.ends else f

    def crossed(self, nest: Nest, of: Transformation = plain) -> Callable[..., Any]:
        """The program under the handler, or what a transformation makes of the program."""
        return self.handled(of(self.program(nest)))

    def unrolled(self, nest: Nest) -> Callable[..., Any]:
        """The program of Python's loops and branches under the handler, executed by Python as far as these go."""
        f = self.program(nest, UNROLLED)
        return direct(self.handler, *[self.state] * (self.state is not NO_STATE))(f) if self.ends else self.handled(f)

    def same(self, actual: Any, expected: Any, what: str) -> None:
        """Assert that two answers are close, of a state its normal form."""
        assert_arrays_equal(self.seen(actual), self.seen(expected), what)

    def seen(self, answer: Any) -> Any:
        return (self.normal(answer[0]), answer[1]) if self.stateful else answer

    def results(self, answer: Any) -> Any:
        """An answer without the state."""
        return answer[1] if self.stateful else answer


def total(tree: Any) -> Any:
    """The sum of all elements of the arrays of a tree, a float64."""
    return sum([hnp.sum(hnp.asarray(y, "float64")) for y in pytrees.leaves(tree)], hnp.zeros((), "float64"))


def log_values(log: Any) -> Any:
    """The values of a log that were written, by leaf, in an order that says nothing of loops and lanes."""
    columns: dict[int, list[Any]] = {}
    for entry in log:
        masks = []
        while isinstance(entry, When):
            masks.append(np.asarray(entry.taken))
            entry = entry.value
        for k, leaf in enumerate(pytrees.leaves(entry)):
            values = np.asarray(leaf)
            taken = np.ones(values.shape, bool)
            for mask in masks:  # over the leading axes
                taken &= mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim))
            columns.setdefault(k, []).append(values[taken])
    written = [np.sort(np.concatenate(column)) for column in columns.values()]
    return [values for values in written if values.size]  # a loop of no iterations has entries without values


# the laws: check(case, nest, seed)


@evaluated()
def _again(case: HandlerCase, nest: Nest, seed: int) -> None:
    f, inputs, others = case.program(nest), nest.inputs(seed), nest.inputs(seed + 1000)
    first, other = case.handled(f)(*inputs), case.handled(f)(*others)
    if case.stateful:
        case.handled(f, other[0])(*others)
    case.same(case.handled(f)(*inputs), first, "called again, after calls with other arguments and from another state")


@evaluated()
def _typed(case: HandlerCase, nest: Nest, seed: int) -> None:
    state, _ = case.handled(case.tell)(nest.inputs(seed)[0])
    before, after = (pytrees.map(lambda x: as_array(x).type.update(weak=False), s) for s in (case.state, state))
    assert after == before, f"the type of the state changes: {before} at the start, {after} after one effect"


@evaluated()
def _prefix(case: HandlerCase, nest: Nest, seed: int) -> None:
    f, inputs = case.program(nest), nest.inputs(seed)
    first, _ = case.handled(f)(*inputs)
    second, _ = case.handled(f, first)(*inputs)
    assert len(first) <= len(second), f"the log has {len(second)} entries, {len(first)} before"
    before, after = ([as_array(x) for x in pytrees.leaves(log)] for log in (first, second[: len(first)]))
    for x, y in zip(after, before, strict=True):
        assert_close(x, y, what="an earlier entry of the log")


@evaluated()
def _merged(case: HandlerCase, nest: Nest, seed: int) -> None:
    """The laws of a commutative monoid, at the start and at states that programs reach, which perform once at least."""
    moves, body = cast("merge", case.handler.moves), nest.by(CONTROL, tell=case.tell)
    f = case.answered(lambda x, *rest: (case.tell(x), *body(x, *rest)))
    op, unit, start = moves.op, moves.unit, case.state
    (t, alone), (u, _) = (case.handled(f, unit)(*nest.inputs(number)) for number in (seed, seed + 1000))
    after, y = case.handled(f, u)(*nest.inputs(seed))
    case.same((t, y), (t, alone), "an answer reads the state that is merged")
    for what, actual, expected in (
        ("the unit of merge, left", (op(unit, start), op(unit, t)), (start, t)),
        ("the unit of merge, right", (op(start, unit), op(t, unit)), (start, t)),
        ("merge is commutative", (op(start, t), op(u, t)), (op(t, start), op(t, u))),
        ("merge is associative", (op(op(start, t), u), op(op(t, u), u)), (op(start, op(t, u)), op(t, op(u, u)))),
        ("a merged state", (after, case.handled(f)(*nest.inputs(seed))[0]), (op(u, t), op(start, t))),
    ):
        for one, other in zip(actual, expected):
            case.same((one, ()), (other, ()), what)


def _each(across: Callable[..., Any]) -> Callable[..., None]:
    """The check that performing for each of three numbers ``across`` them is performing one after the other."""

    @evaluated()
    def check(case: HandlerCase, nest: Nest, seed: int) -> None:
        xs = as_array(np.random.default_rng(seed).uniform(-1, 1, 3))
        actual, expected = [
            case.handled(case.answered(lambda xs, each=each: (hnp.stack([*each(case.tell, xs)]),)))(xs)
            for each in (across, lambda f, xs: [f(x) for x in xs])
        ]
        case.same(actual, expected, "against one after the other")

    return check


@evaluated()
def _derivative(case: HandlerCase, nest: Nest, seed: int) -> None:
    x, v, w, k, p = nest.inputs(seed)
    loops, python = [
        lambda *xs, f=f: smooth_part(case.results(f(*xs, k, p))) for f in (case.crossed(nest), case.unrolled(nest))
    ]
    actual, expected = (jvp(f, (x, v, w), drawn_tangents(seed, x, v, w)) for f in (loops, python))
    assert_arrays_equal(actual, expected, "jvp, against that with Python's loops and branches")
    assert_arrays_equal(actual[0], loops(x, v, w), "the results of jvp")


@evaluated()
def _idle(case: HandlerCase, nest: Nest, seed: int) -> None:
    f, inputs = case.answered(nest.by(CONTROL, tell=hnp.sin)), nest.inputs(seed)
    start = (case.state,) * (case.state is not NO_STATE)
    y, returns = f(*inputs), case.handler.returns
    expected = returns(*start, y) if returns is not None else (*start, y) if start else y
    case.same(case.handled(f)(*inputs), expected, "of a function that performs none of its effects")


HANDLER_LAWS = (
    Law("again", "its answers depend on no earlier call", _again),  # or other laws would fail for it
    Law("typing", "its state keeps its type", _typed),
    Law("prefix", "a log is a prefix of the next one", _prefix),
    Law("merge", "merge is commutative and associative, it has a unit, and no answer reads the state", _merged),
    Law("unrolled", "it crosses loops, branches and calls as it crosses those of Python", crosses),
    JIT,
    INNER_JIT,
    Law("checkpoint", "what it handles may be computed again for a derivative",
        inside(checkpoint, "checkpoint inside the handler")),
    Law("in a loop", "the iterations of a loop perform one after the other", _each(lax.map)),
    Law("in lanes", "lanes perform in order of their index", _each(lambda f, xs: vmap(f)(xs))),
    LANES,
    Law("derivative", "its derivative is that of the program with Python's loops and branches", _derivative),
    Law("idle", "without an effect to answer it returns the result", _idle, ("effects alone",)),
)
"""The laws of a handler, in the order in which they are checked."""


def check_handler(
    handler: Handler,
    state: Any = NO_STATE,
    *,
    performs: Callable[[Any], Any],
    normal: Callable[[Any], Any] | None = None,
    laws: Sequence[Law] | None = None,
    examples: int = 20,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Check the laws of handlers, ``HANDLER_LAWS``, on random programs that perform the effects of a handler.

        handle(h, s)(f) == handle(h, s)(f with loops and branches of Python)
        jit(handle(h, s)(f)) == handle(h, s)(jit(f)) == handle(h, s)(f)
        vmap(handle(h, s)(f)) == the lanes one after the other

    and so on: the report has a sentence for each. What the handler refuses to cross is found out, and left out of the
    programs: the report says what, and why.

    Args:
        performs: a function of a float64 scalar that performs operations of the handler, at least once; later
            statements use the numbers that it returns, an array, a tree of them, or None.
        normal: maps a state to the part that has to be equal; by default the whole state, and of a log its values. Of a
            handler that answers pure operations, too, it is nothing: programs may perform others of these, and more or
            fewer, and mean the same.
        laws: those to check, all by default.
        examples: the number of programs.
        seconds: how long it takes, of which a quarter is kept to make a program that fails smaller; each law is checked
            for one program at least.
        seed: of the first program.

    Raises: LawFails: a law fails; the error has the program, reduced, as Python text. BadArgument: ``performs``
        performs nothing that the handler answers.

    >>> import handlax as hx
    >>> @hx.effect(vmap="per_lane")
    ... class Count:
    ...     def result_type(op):
    ...         return None
    >>> counter = hx.handler({Count: lambda n, op: (n + 1, None)})
    >>> report = check_handler(counter, 0, performs=lambda x: hx.perform(Count()), examples=1)
    >>> print(report)  # doctest: +ELLIPSIS
    handler(Count): ...
    """
    default = log_values if handler.moves == append else lambda state: state
    case = HandlerCase(handler, state, performs, normal or default)
    with configure(default_float="float64"):
        need_performed(case)
        missing = lacks(case)
        if "effects alone" in missing and normal is None:
            missing["merge"] = missing["prefix"] = f"states are not compared: {missing['effects alone']}"
            case = replace(case, normal=lambda state: ())
        counted = dict.fromkeys(CHOOSING, "a tally counts by the text what may be executed")
        return check_on_programs(
            repr(handler), case, HANDLER_LAWS if laws is None else laws, missing, examples=examples, seconds=seconds,
            seed=seed, without=counted if handler.tallies else {},
        )


NUMBERS = (Array, np.ndarray, np.generic, bool, int, float, complex)  # parts of a state; others are constant


def need_performed(case: HandlerCase) -> None:
    """Trace the handler once, from a state of unknown arrays: a clause that keeps what it is given fails later.

    Raises: BadArgument: ``performs`` performs nothing that the handler answers.
    """
    performed: list[Operation] = []
    leaves, tree = pytrees.flatten(case.state)

    def watched(x: Any) -> Any:
        with installed(Watch(STACK.get(), performed)):
            return case.performs(x)

    def traced(x: Any, *numbers: Any) -> Any:
        unknown = iter(numbers)
        state = pytrees.unflatten(tree, [next(unknown) if isinstance(leaf, NUMBERS) else leaf for leaf in leaves])
        return case.handled(watched, state)(x)

    try:
        eval_shape(traced, np.float64(0.5), *[leaf for leaf in leaves if isinstance(leaf, NUMBERS)])
    except Exception:  # of a clause: a law shows it
        if not performed:
            raise
    if not any(map(case.answers, performed)):
        names = some_of(sorted({op.name for op in performed})) or "nothing"
        raise BadArgument(
            f"check_handler: performs must perform an operation that {case.handler} answers, it performs {names}.",
            hint="performs=lambda x: hx.perform(Effect(), x), or a function of yours that performs.",
        )


class Watch(Run):
    """Keeps the operations that it receives, and hands them on."""

    __slots__ = ("performed",)
    owns_boxes = False

    def __init__(self, outer: Run, performed: list[Operation]):
        super().__init__(outer, "")
        self.performed = performed

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        self.performed.append(op)
        return self.outer.answer(op, operands)


def lacks(case: HandlerCase) -> dict[str, str]:
    """What laws need that the handler does not have, and why."""
    moves, kinds = case.handler.moves, cast("Iterable[type[Operation]]", case.handler.clauses)
    reasons: dict[str, str] = {}
    pure = [kind.name for kind in kinds if not kind.effectful]
    if case.handler.otherwise is not None and case.answers(Tanh()):
        pure.append("all others")
    if pure:
        reasons["effects alone"] = f"it answers pure operations, {some_of(pure)}"
    if not case.stateful or case.ends or case.handler.tallies or moves == append:
        reasons["typing"] = "it has no state that clauses change"
    if moves != append or not case.stateful:
        reasons["prefix"] = "its state is no log"
    if not isinstance(moves, merge) or not case.stateful:
        reasons["merge"] = "its state is not merged"
    if isinstance(moves, split):
        reasons["in lanes"] = "each lane gets a key of its own"
    for kind in kinds:
        if kind.effectful and kind.vmap != "per_lane":
            reasons["in lanes"] = f"{kind.name} is not performed by each lane"
    return reasons
