"""The laws of transformations and of interpreters, as values, and their checks.

    check_transformation(hx.checkpoint, meaning=lambda f: f)
    check_interpreter(bounds_of, related=lambda ends, y: ends[0] <= y <= ends[1])

Both take functions to functions, and are checked on random programs with loops, branches, calls and effects. Whatever
they do to the operations of a program, they cross its bodies and its effects by one law, or refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import numpy as hnp
from ..effects.base.config import configure
from ..effects.base.errors import ConcretizationError
from ..effects.base.stack import STACK
from ..effects.core.arrays import as_array
from ..effects.trees import pytrees
from ..interpreters.core.body_transform import BodyTransformer
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import handler
from ..interpreters.transformations.derivatives import jvp
from .closeness import assert_results_equal
from .crossing_laws import INNER_JIT, JIT, LANES, assert_arrays_equal, crosses
from .drawn_programs import REFUSALS, check_on_programs, refusal
from .generator.control import CONTROL, HANDLER, NestTell
from .generator.control_flow import CHOOSING, NODES, TRACED_LENGTH
from .generator.nests import Nest
from .generator.unrolled import SELECTED, UNROLLED, evaluated, next_state
from .law import Law, Report
from .recordings import Transformation, plain
from .tangents import assert_quotients, drawn_tangents


@dataclass(frozen=True)
class TransformationCase:
    """A transformation of functions ``(x, v, w, k, p) -> arrays``, and what its results mean.

    ``meaning``: the transformation that it is to equal. ``related(z, y)``: whether what it gives is right for the
    results ``y`` of the function itself.
    """

    transform: Transformation
    meaning: Transformation | None = None
    related: Callable[[Any, Any], bool] | None = None

    def crossed(self, nest: Nest, of: Transformation = plain) -> Callable[..., Any]:
        """What it makes of a program, or of what a transformation makes of the program."""
        return self.transform(of(under_handler(nest)))

    def unrolled(self, nest: Nest) -> Callable[..., Any]:
        """What it makes of the program with loops and branches of Python."""
        return self.transform(under_handler(by_python(nest)))

    def same(self, actual: Any, expected: Any, what: str) -> None:
        """Assert that two trees of results are close."""
        assert_arrays_equal(actual, expected, what)


def by_python(nest: Nest) -> Callable[..., Any]:
    """The program with loops and branches of Python, and with effects for handlers as before."""
    return nest.by(UNROLLED, tell=CONTROL.tell, handled=CONTROL.handled)


def under_handler(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function under the handler of the effects of programs, without its last state."""
    return lambda *xs: handle(HANDLER, np.float64(0.25))(f)(*xs)[1]


# the laws: check(case, nest, seed)


@evaluated()
def _called(case: TransformationCase, nest: Nest, seed: int) -> None:
    f, calls = under_handler(nest), 0

    def counted(*xs: Any) -> Any:
        nonlocal calls
        calls += 1
        return f(*xs)

    given = case.transform(counted)(*nest.inputs(seed))
    assert calls, f"its function was not called, and it gave {given!r:.200}"
    assert pytrees.leaves(given), f"what it gave has no arrays, got {given!r:.200}"


@evaluated()
def _meaning(case: TransformationCase, nest: Nest, seed: int) -> None:
    assert case.meaning is not None
    f, inputs = under_handler(nest), nest.inputs(seed)
    case.same(case.transform(f)(*inputs), case.meaning(f)(*inputs), "against its meaning")


@evaluated()
def _related(case: TransformationCase, nest: Nest, seed: int) -> None:
    assert case.related is not None
    f, inputs = under_handler(nest), nest.inputs(seed)
    given, y = case.transform(f)(*inputs), f(*inputs)
    assert case.related(given, y), f"{given} is not what belongs to {y}"


@evaluated()
def _selected(case: TransformationCase, nest: Nest, seed: int) -> None:
    inputs = nest.inputs(seed)
    actual = case.transform(nest.by(CONTROL, tell=hnp.sin))(*inputs)
    expected = case.transform(nest.by(UNROLLED, tell=hnp.sin, **SELECTED))(*inputs)
    case.same(actual, expected, "with loops and branches, against Python's loops and selected results")


@evaluated()
def _performed(case: TransformationCase, nest: Nest, seed: int) -> None:
    """Of a program without control flow too, in which nothing else may go wrong.

    Without a meaning the operands of effects are known there alone: in other programs they may be what it changes.
    """
    inputs = nest.inputs(seed)
    for f in (in_order, nest):
        actual, expected = [count_effects(t(f))(*inputs)[0] for t in (case.transform, case.meaning or plain)]
        assert int(actual[0]) == int(expected[0]), f"it performs {actual[0]} effects, expected {expected[0]}"
        if f is in_order or case.meaning is not None:
            what = f"the {expected[0]} effects, in another order or with other operands: what they make of a state"
            assert_results_equal(actual[1], expected[1], what=what)


def in_order(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """Performs two effects, one after the other."""
    return (CONTROL.tell(x) + CONTROL.tell(2.0 * x), v)


def count_effects(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the number of effects that it performs, and the state of their handler after them."""
    return handle(COUNTING, (0, np.float64(0.25)))(f)


COUNTING = handler({NestTell: lambda s, op, x: ((s[0] + 1, next_state(s[1], x)), s[1])})


@evaluated()
def _effects(case: TransformationCase, nest: Nest, seed: int) -> None:
    inputs = nest.inputs(seed)
    loops, python = (under_handler(case.transform(f)) for f in (nest, by_python(nest)))
    refused = refusal(under_handler(case.transform(nest)), *inputs)
    if refused is None:
        case.same(loops(*inputs), python(*inputs), "handled outside, against Python's loops")
    else:
        remedied = "\n  hint: " in refused and "\n  hint: help(" not in refused  # which is where none is known
        assert remedied, f"refused without a remedy: {refused}"


@evaluated()
def _again(case: TransformationCase, nest: Nest, seed: int) -> None:
    f, inputs, others = case.crossed(nest), nest.inputs(seed), nest.inputs(seed + 1000)
    first = f(*inputs)
    case.same(f(*others), case.crossed(nest)(*others), "called again, with other arguments")
    case.same(f(*inputs), first, "called again")


@evaluated()
def _tangent(case: TransformationCase, nest: Nest, seed: int) -> None:
    """Unless a branch or trip count changes in between."""
    f, (x, v, w, k, p) = case.crossed(nest), nest.inputs(seed)
    smooth = lambda *xs: [y for y in map(as_array, pytrees.leaves(f(*xs, k, p))) if y.dtype == np.float64]
    dx, dv, dw = direction = drawn_tangents(seed, x, v, w)
    y, tangents = jvp(smooth, (x, v, w), direction)
    assert_results_equal(y, smooth(x, v, w), what="the results of jvp")
    assert_quotients(tangents, lambda d: smooth(x + d * dx, v + d * dv, w + d * dw))


@evaluated()
def _parts(case: TransformationCase, nest: Nest, seed: int) -> None:
    """Of every box that the program computes with: ``box(*split(x))`` is as ``x``, and ``part_types`` are its types."""

    def watched(*xs: Any) -> Any:
        ys, run = under_handler(nest)(*xs), STACK.get()
        assert isinstance(run, BodyTransformer)
        for y in ys:
            mark, parts = run.split(y)
            again = run.split(run.box(mark, parts))
            assert again[0] == mark, f"split(box(mark, parts)) has the mark {again[0]}, not {mark}"
            assert_results_equal(again[1], parts, what="split(box(mark, parts))")
            types = tuple([as_array(part).type for part in parts])
            assert tuple(run.part_types(mark, y.type)) == types, f"part_types({mark}) of parts of {types}"
            assert_results_equal(run.force(y, mark), parts, what="force(x, mark)")
        return ys

    case.transform(watched)(*nest.inputs(seed))


LOOPS_AND_BRANCHES = ("scan", "fori_loop", "map", "cond", "switch")
SHARED_LAWS = (
    Law("again", "its results depend on no earlier call", _again),  # or other laws would fail for it
    Law("unrolled", "it crosses loops and calls as it crosses those of Python", crosses, without=CHOOSING),
    Law("choices", "it crosses branches and loops of unknown length as it crosses those of Python", crosses,
        ("values",)),
    Law("effects", "a handler outside of it gets the effects of loops as those of Python's, or they are refused",
        _effects, without=CHOOSING),
    JIT,
    INNER_JIT,
    LANES,
)
CALLED = Law("called", "it calls its function, and gives arrays", _called)
TRANSFORMATION_LAWS = (
    CALLED,
    Law("meaning", "it equals its meaning", _meaning, ("a meaning",)),
    Law("performed", "it performs the effects of its meaning, or of its function: each once, and in order", _performed),
    *SHARED_LAWS,
    Law("selected", "it changes the bodies of loops and branches as it changes what is not in a body", _selected,
        without=(*[name for name in NODES if name not in LOOPS_AND_BRANCHES], TRACED_LENGTH)),
    Law("tangent", "its tangents are the difference quotients of it", _tangent),
)
"""The laws of a transformation, in the order in which they are checked."""
INTERPRETER_LAWS = (
    CALLED,
    Law("related", "what it gives belongs to the results of the program", _related, ("a relation",)),
    Law("parts", "a box is made of its mark and its parts", _parts, ("boxes",)),
    *SHARED_LAWS,
)
"""The laws of an interpreter, in the order in which they are checked."""


def check_transformation(
    transform: Transformation,
    *,
    meaning: Transformation | None = None,
    laws: Sequence[Law] | None = None,
    examples: int = 20,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Check the laws of transformations, ``TRANSFORMATION_LAWS``, on random programs.

        t(f) == meaning(f),   t(f) == t(f with loops and branches of Python),   jit(t(f)) == t(jit(f)) == t(f)

    and so on: the report has a sentence for each. What it refuses is found out, and the programs do not have it: the
    report says what, and why.

    Args:
        transform: takes a function ``(x, v, w, k, p) -> tuple of arrays`` to a function of the same arguments, which
            are float64 of shapes (), (3,) and (2, 3), an int32 and a bool; what it returns is a tree of arrays.
        meaning: the transformation that it is to equal, in results and in effects. Without one it is to perform the
            effects of the function, each once and in order; a transformation that does not leaves out this law,
            ``laws=[law for law in TRANSFORMATION_LAWS if law.name != "performed"]``.
        laws: those to check, all by default.
        examples: the number of programs.
        seconds: how long it takes, of which a quarter is kept to make a program that fails smaller; each law is checked
            for one program at least.
        seed: of the first program.

    Raises: LawFails: a law fails; the error has the program, reduced, as Python text.

    >>> import handlax as hx
    >>> report = check_transformation(hx.checkpoint, meaning=lambda f: f, examples=1)
    >>> [law.name for law, *_ in report.held]
    ['called', 'meaning', 'performed', 'again', 'unrolled', 'effects', 'jit', ...]
    >>> report.left_out["choices"]
    'Python cannot branch on values of the function: they are recorded, or are in boxes'
    """
    case = TransformationCase(transform, meaning=meaning)
    laws = TRANSFORMATION_LAWS if laws is None else laws
    return _checked(getattr(transform, "__name__", "the transformation"), case, laws, examples, seconds, seed)


def check_interpreter(
    interpret: Transformation,
    *,
    related: Callable[[Any, Any], bool] | None = None,
    laws: Sequence[Law] | None = None,
    examples: int = 20,
    seconds: float = 10.0,
    seed: int = 0,
) -> Report:
    """Check the laws of interpreters, ``INTERPRETER_LAWS``, on random programs.

        interpret(f) == interpret(f with loops and branches of Python),   jit(interpret(f)) == interpret(jit(f)),
        box(*split(x)) == x

    and so on. Expressions without a rule, and statements that it refuses to cross, are found out, and the programs do
    not have them: the report says what, and why.

    Args:
        interpret: executes a function ``(x, v, w, k, p) -> tuple of arrays`` on numbers, by a run of the interpreter:
            a function of the same arguments, that puts them into boxes, and returns a tree of arrays.
        related: whether what it returns is right for the results of the function itself; without it that is not
            checked.
        laws, examples, seconds, seed: as in ``check_transformation``.

    Raises: LawFails: a law fails; the error has the program, reduced, as Python text.
    """
    case = TransformationCase(interpret, related=related)
    laws = INTERPRETER_LAWS if laws is None else laws
    return _checked(getattr(interpret, "__name__", "the interpreter"), case, laws, examples, seconds, seed)


def _checked(
    name: str, case: TransformationCase, laws: Sequence[Law], examples: int, seconds: float, seed: int
) -> Report:
    with configure(default_float="float64"):
        return check_on_programs(name, case, laws, _lacks(case), examples=examples, seconds=seconds, seed=seed)


def _lacks(case: TransformationCase) -> dict[str, str]:
    """What laws need that the transformation does not have, and why."""
    reasons: dict[str, str] = {}
    if case.meaning is None:
        reasons["a meaning"] = "no meaning is given"
    if case.related is None:
        reasons["a relation"] = "no relation is given"

    def asks(x: Any, *rest: Any) -> Any:
        if not isinstance(STACK.get(), BodyTransformer):
            reasons["boxes"] = "it installs no run with boxes"
        try:
            bool(x > 0)
        except ConcretizationError:
            reasons["values"] = "Python cannot branch on values of the function: they are recorded, or are in boxes"
        except REFUSALS as error:
            reasons["values"] = str(error).splitlines()[0]
        return (x,)

    with suppress(Exception):  # a law shows it
        case.transform(asks)(*_INPUTS)
    return reasons


_INPUTS = (np.float64(0.5), np.zeros(3), np.zeros((2, 3)), np.int32(1), np.bool_(True))
