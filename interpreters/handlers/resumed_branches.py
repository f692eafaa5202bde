"""Branches, chosen by a traced value, that perform operations with ``ctl`` clauses: the rest of the program after them.

    joined_branch     every body ends by resuming, as most do: one branch gives results and state, and one rest follows
    resuming_branch   otherwise: the rest is one program, recorded once. Where every body resumes once, a branch stands
                      before it and another one after it; else each body calls it as often as it resumes

XLA inlines calls: where bodies resume twice, or where of three some resume and others do not, n such branches in a row
are recorded as n parts, and compiled as up to 2**n.
Both take ``evaluate(body, values, state, resume)``, which evaluates a body and calls ``resume(results, state)`` for the
answer of what follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from ...effects.base import config
from ...effects.base.errors import DTypeMismatch, TreeMismatch
from ...effects.base.stack import current, inside
from ...effects.control.branches import Cond
from ...effects.control.recorded_bodies import common_type, shared_results, with_types
from ...effects.core.arrays import as_array
from ...effects.core.columns import zeros_like
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import Call
from ...effects.programs.program import Program, bind, perform_equations
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ..core.record import Record, record
from .installation import NO_STATE
from .state_movements import leaves_of

Evaluate = Callable[..., Any]
Resume = Callable[[Sequence[Any], Any], Any]
T = TypeVar("T")


def _leaves_of(state: Any) -> tuple[list[Any], Any]:
    """The leaves of a state and its structure; no leaves and None for a handler without a state."""
    return ([], None) if state is NO_STATE else leaves_of(state)


def _state_of(structure: Any, leaves: Sequence[Any]) -> Any:
    return NO_STATE if structure is None else pytrees.unflatten(structure, leaves)


class NotJoined(BaseException):
    """A body does not end by resuming: it resumes twice or under another handler, or goes on afterwards.

    No error, so that no ``except Exception`` of a clause takes it.
    """


def _used(*args: Any, **kwargs: Any) -> Any:
    raise NotJoined


_OPERATORS = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_METHODS = (
    "eq ne lt le gt ge hash bool int float complex index round trunc floor ceil neg pos abs invert "
    "len iter next reversed contains getitem setitem delitem call enter exit "
    "getattribute setattr delattr repr str format bytes reduce_ex array array_ufunc"
)
_USES = (*_OPERATORS.split(), *[f"r{name}" for name in _OPERATORS.split()], *_METHODS.split())

# the answer of ``resume`` while it is not known: every use raises ``NotJoined``, but ``is``, ``type`` and ``match``,
# which Python answers itself: for these the answer is confirmed
_Token = type("_Token", (), {f"__{name}__": _used for name in _USES})


class Joins:
    """Which branches of a handled program are not joined: each is tried once.

    ``attempts``: the number of branches, one in the other, that are being joined. One that is not joined calls the rest
    within its own bodies, so those around it are not joined either. ``answer``: what ``resume`` gives in them.
    ``undoable``: what is evaluated is only recorded, so that it can be evaluated again.
    """

    __slots__ = ("attempts", "failed", "answer", "undoable")

    def __init__(self) -> None:
        self.attempts = 0
        self.failed: set[Any] = set()
        self.answer: Any = None
        self.undoable = False

    def attempt(self, key: Any, bodies: Callable[[Any], T], answer: Any) -> T | None:
        """``bodies(answer)``, the bodies of a branch where ``resume`` gives this answer; None: it is not joined."""
        outside, self.answer = self.answer, answer
        self.attempts += 1
        try:
            if key in self.failed:
                raise NotJoined
            return bodies(answer)
        except NotJoined:
            self.failed.add(key)
            if self.attempts > 1:
                raise
            return None
        finally:
            self.attempts -= 1
            self.answer = outside

    def confirm(self, joined: Sequence[Joined], answer: Any) -> None:
        """Evaluate the bodies of joined branches again with the answer of their rest, now that it is known.

        A clause may have chosen by ``type(y)`` or ``y is None``. The answer of an enclosing branch that is being joined
        is not known yet: it is confirmed with that branch.

        Raises: NotJoined: a body does not return this answer. It is evaluated again, without joining that branch.
        """
        if self.attempts and any([type(leaf) is _Token for leaf in pytrees.leaves(answer)]):
            return
        if not all([self.attempt(x.key, x.bodies, answer) for x in joined if x.answer is not answer]):
            raise NotJoined


class Joined(NamedTuple):
    """A joined branch: its results, the state after it, and how its bodies were evaluated, to be confirmed."""

    results: Any
    state: Any
    key: Any
    bodies: Callable[[Any], Any]
    answer: Any


def joined_branch(
    op: Any, xs: tuple[Any, ...], state: Any, evaluate: Evaluate, resume: Resume, joins: Joins
) -> Joined | None:
    """A branch whose bodies all end by resuming; None: one of them does not.

    A body ends by resuming if after ``resume`` nothing is performed, and if its answer is that of ``resume``. This
    answer is a token here, of which nothing can be computed. Errors, such as those of clauses, are raised as they are.
    A resumption that a clause keeps, and calls when its body has been evaluated, goes on with ``resume``.
    """
    leaves, structure = _leaves_of(state)
    index, *operands = (*xs, *leaves)

    def ended(answer: Any, structures: list[Any], body: Program, values: Sequence[Any]) -> list[Any]:
        run = cast(Record, current())
        scope = config.current()
        ends: list[list[Any]] = []
        performed: list[int] = []  # the number of equations when it resumed
        evaluated = False

        def resume_once(results: Sequence[Any], after: Any) -> Any:
            if evaluated:
                return resume(results, after)
            if ends or current() is not run or config.current() is not scope:
                raise NotJoined
            end, end_structure = _leaves_of(after)
            structures.append(end_structure)
            ends.append([*results, *end])
            performed.append(len(run.builder.ops))
            return answer

        count = len(body.in_types)
        try:
            returned = evaluate(body, values[:count], _state_of(structure, values[count:]), resume_once)
        finally:
            evaluated = True
        if returned is not answer or performed != [len(run.builder.ops)]:
            raise NotJoined
        return ends[0]

    def bodies(answer: Any) -> tuple[list[Program], Any]:
        structures: list[Any] = []
        programs = _recorded(op, operands, partial(ended, answer, structures))
        if any([other != structures[0] for other in structures]):
            raise NotJoined
        types = [_type_of_all(column) for column in zip(*[p.out_types for p in programs])]
        return [with_types(p, types) for p in programs], structures[0]

    key = (id(op), tuple([x.type for x in operands]), structure)
    answer = joins.answer if joins.attempts else _Token()
    made = joins.attempt(key, bodies, answer)
    if made is None:
        return None
    results = _perform(made[0], index, operands)
    count = len(op.bodies[0].outs)
    return Joined(results[:count], _state_of(made[1], results[count:]), key, bodies, answer)


def resuming_branch(op: Any, xs: tuple[Any, ...], state: Any, evaluate: Evaluate, resume: Resume) -> Any:
    """The answer of a branch whose bodies go on, each with the rest of the program, ``resume``.

    Raises: TreeMismatch, DTypeMismatch: the answers of the bodies differ in structure or type.
    """
    leaves, structure = _leaves_of(state)
    index, *operands = (*xs, *leaves)
    rest = _Rest(resume)
    trees: list[Any] = []

    calls: list[list[int]] = []  # for each body the equations that call the rest; -1: one of an inner body

    def answer_of(body: Program, values: Sequence[Any]) -> list[Any]:
        count = len(body.in_types)
        rest.calls = []
        ends, tree = leaves_of(evaluate(body, values[:count], _state_of(structure, values[count:]), rest.call))
        trees.append(tree)
        calls.append([i if run is current() else -1 for run, i in rest.calls])
        return ends

    programs = _recorded(op, operands, answer_of)
    for tree, program in zip(trees, programs):
        if tree != trees[0]:
            raise TreeMismatch(
                f"{op.name}: the branches must give answers of one structure, got {trees[0]} and {tree}.",
                hint="resume equally often in every branch.",
            )
        for t, u in zip(program.out_types, programs[0].out_types):
            if t.shape != u.shape or t.dtype != u.dtype:
                raise DTypeMismatch(f"{op.name}: the branches must give answers of one type, got {u} and {t}.")
    types = programs[0].out_types
    programs = [with_types(program, types) for program in programs]
    if len(rest.programs) == 1 and all([len(numbers) == 1 and numbers != [-1] for numbers in calls]):
        (once,) = rest.programs.values()
        results = _resumed_once(programs, [i for (i,) in calls], once, index, operands)
    else:
        results = _perform(programs, index, operands)
    return pytrees.unflatten(trees[0], results)


def _resumed_once(
    programs: Sequence[Program], calls: Sequence[int], rest: Any, index: Any, operands: Sequence[Any]
) -> Any:
    """The results of a branch whose body ``i`` calls the rest of the program at equation ``calls[i]``.

    They are those of a branch over the equations before the calls, one call of the rest, and a branch over the
    equations after them. The first branch also gives the values that the second one uses.
    """
    program, captured, _ = rest
    halves = [_Halves(body, call, len(captured)) for body, call in zip(programs, calls)]
    types, positions = shared_results([half.kept_types for half in halves])

    def between(half: Callable[..., Sequence[Any]], inputs: Sequence[Any]) -> list[Any]:
        kinds = [x.type for x in inputs]
        bodies = [record(partial(half, *own), kinds, own[0].program.name, "handle") for own in zip(halves, positions)]
        return list(_perform(bodies, index, inputs))

    first = between(lambda half, own, *xs: half.before(xs, types, own), operands)
    kept, arguments = first[: len(types)], first[len(types) :]
    answers = current().answer(Call((program,), "rest"), (*captured, *arguments))
    count, last = len(operands), len(operands) + len(types)
    return between(
        lambda half, own, *xs: half.after(xs[:count], [xs[count + n] for n in own], xs[last:]),
        [*operands, *kept, *answers],
    )


class _Halves:
    """A program in two: the equations before the one, ``call``, that calls the rest, and those after it.

    ``kept``: the values of the first half that the second uses.
    """

    def __init__(self, program: Program, call: int, captured: int):
        self.program = program
        self.call = call
        self.starts = program.starts()
        self.arguments = program.args[call][captured:]
        used = {n for args in program.args[call + 1 :] for n in args}.union(program.outs)
        self.kept = sorted([n for n in used if len(program.in_types) <= n < self.starts[call]])
        self.kept_types = [program.type_of(n) for n in self.kept]

    def before(self, inputs: Sequence[Any], types: Sequence[Any], positions: Sequence[int]) -> list[Any]:
        """The values of the first half that any branch keeps, zeros in other branches, and the operands of the rest."""
        env = bind(self.program, inputs)
        perform_equations(self.program, env, 0, self.call, self.starts[0])
        own = {at: env[n] for n, at in zip(self.kept, positions)}
        kept = [own[i] if i in own else zeros_like(t) for i, t in enumerate(types)]
        return [*kept, *[env[n] for n in self.arguments]]

    def after(self, inputs: Sequence[Any], kept: Sequence[Any], answers: Sequence[Any]) -> list[Any]:
        """The results."""
        env = bind(self.program, inputs)
        for n, x in zip(self.kept, kept):
            env[n] = x
        env[self.starts[self.call] : self.starts[self.call + 1]] = answers
        last = len(self.program.ops)
        perform_equations(self.program, env, self.call + 1, last, self.starts[self.call + 1])
        return [env[n] for n in self.program.outs]


class _Rest:
    """The rest of the program after a branch, which its bodies call: recorded once for each type of the state."""

    def __init__(self, resume: Resume):
        self.resume = resume
        self.top = current()
        self.programs: dict[Any, tuple[Program, Any, Any]] = {}
        self.calls: list[tuple[Any, int]] = []  # the run that each call stands in, and the number of its equation

    def call(self, results: Sequence[Any], state: Any) -> Any:
        """The answer of ``resume``, by a call of its program."""
        leaves, structure = _leaves_of(state)
        operands = [*results, *leaves]
        key = (tuple([x.type for x in operands]), structure, config.current())
        if key not in self.programs:
            self.programs[key] = self.recorded([x.type for x in operands], len(results), structure)
        program, captured, tree = self.programs[key]
        run = current()
        self.calls.append((run, len(run.builder.ops) if isinstance(run, Record) else -1))
        return pytrees.unflatten(tree, current().answer(Call((program,), "rest"), (*captured, *operands)))

    def recorded(self, types: Sequence[Any], count: int, structure: Any) -> tuple[Program, Any, Any]:
        """The program for ``count`` results and a state, what it captured, and the structure of the answer."""
        trees: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            answer, tree = leaves_of(self.resume(values[:count], _state_of(structure, values[count:])))
            trees.append(tree)
            return answer

        with inside(self.top):
            (program,), captured = close_all([record(flat, types, "rest", "handle")])
        return program, captured, trees[0]


def _type_of_all(types: Sequence[ArrayType]) -> ArrayType:
    """The common type of a result or of a leaf of the state after branches. Raises: NotJoined: there is none."""
    joined = types[0]
    for t in types[1:]:
        both = common_type(joined, t)
        if both is None:
            raise NotJoined
        joined = both
    return joined


def _recorded(op: Any, operands: Sequence[Any], f: Callable[[Program, Sequence[Any]], list[Any]]) -> list[Program]:
    """``f(body, values)`` for each body, recorded for operands of these types."""
    types = [x.type for x in operands]
    return [record(lambda *values, body=body: f(body, values), types, body.name, "handle") for body in op.bodies]


def _perform(programs: Sequence[Program], index: Any, operands: Sequence[Any]) -> Any:
    """The results of a ``Cond`` whose branches are these programs."""
    bodies, captured = close_all(programs)
    return current().answer(Cond(bodies, len(captured)), (index, *captured, *map(as_array, operands)))
