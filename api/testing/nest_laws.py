"""The laws of control flow, as values: each a name, one sentence, and a check of a nest.

    for law in NEST_LAWS: law.check(nest, seed)

The reference of every law is the same text with Python's loops and branches, evaluated by NumPy in float64.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from .. import numpy as hnp
from ..effects import config, dtypes
from ..effects.arrays import lift
from ..effects.columns import EVALUATE
from ..effects.operations import OPERATIONS, rules
from ..effects.parsing import parse_program
from ..effects.programs import Program, interpret
from ..interpreters.partial_eval import partial_eval_program
from ..interpreters.record import record
from ..interpreters.simplify import dead_code_elimination
from ..interpreters.typecheck import typecheck
from .laws import assert_close
from .nests import CONTROL, SMOOTH, Nest
from .reducing import reduced
from .unrolled import UNROLLED


class NestLaw(NamedTuple):
    """A property of functions with control flow: ``check`` raises AssertionError where it fails."""

    name: str
    sentence: str
    check: Callable[[Nest, int], None]
    reverse: bool = False  # speaks of reverse mode: nests must have one
    without: tuple[str, ...] = ()  # nodes of which it does not speak


def hold(law: NestLaw, nest: Nest, seed: int) -> None:
    """Check a law; where it fails, say so with the smallest nest that fails in the same way.

    Raises: AssertionError: the law does not hold.
    """
    found = _failure(law, nest, seed)
    if found is not None:
        small = reduced(nest, lambda other: type(_failure(law, other, seed)) is type(found))
        found = _failure(law, small, seed)
        raise AssertionError(f"{law.sentence}: not so for seed {seed} and\n{small.source}{found}") from found


def _failure(law: NestLaw, nest: Nest, seed: int) -> Exception | None:
    try:
        law.check(nest, seed)
    except Exception as error:
        return error
    return None


@contextlib.contextmanager
def evaluated() -> Iterator[None]:
    """Operations are evaluated by NumPy, in float64; loops and branches too, which ``disable_jit`` makes Python's."""
    bodied = {kind for kind in OPERATIONS.values() if kind.bodied and not EVALUATE.has(kind) and hasattr(kind, "runs")}
    with config.configure(default_float="float64"), rules(evaluate={kind: EVALUATE.find(kind) for kind in bodied}):
        yield


def same(found: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    """Two tuples of results agree."""
    assert len(found) == len(wanted), f"{what}: {len(found)} and {len(wanted)} results"
    for i, (y, z) in enumerate(zip(found, wanted)):
        assert_close(y, z, 10.0, f"{what}, result {i}")


# A change takes the control (this library's, or the reference) and a function of x, v, w, k, p, and gives another one.
Change = Callable[[Any, Callable[..., Any]], Callable[..., Any]]


def _smooth(ys: Sequence[Any]) -> list[Any]:
    return [y for y in map(lift, ys) if dtypes.is_inexact(y.dtype)]


def compiled(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    return control.jit(f)


def forwards(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """The results and their derivative along (sin x, cos v, 1)."""

    def derivative(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        direction = hnp.sin(x), hnp.cos(v), hnp.ones_like(w)
        y, dy = control.jvp(lambda *xs: tuple(_smooth(f(*xs, k, p))), (x, v, w), direction)
        return (*y, *dy)

    return derivative


def pushed(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """The linear map of a linearized function, at two directions."""

    def derivative(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        y, push = control.linearize(lambda *xs: tuple(_smooth(f(*xs, k, p))), x, v, w)
        return (*y, *push(x, hnp.ones_like(v), hnp.cos(w)), *push(hnp.ones_like(x), v, w))

    return derivative


def backwards(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a weighted sum of the results."""

    def loss(*inputs: Any) -> Any:
        return sum([hnp.sum(hnp.cos(y + i)) for i, y in enumerate(_smooth(f(*inputs)))], hnp.asarray(0.0))

    return lambda *inputs: control.grad(loss, SMOOTH)(*inputs)


def pulled(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Cotangents of the inputs, some of the results having none."""

    def derivative(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        y, pull = control.vjp(lambda *xs: tuple(_smooth(f(*xs, k, p))), x, v, w)
        return pull(tuple([hnp.sin(part) if i % 2 == 0 else hnp.zeros_like(part) for i, part in enumerate(y)]))

    return derivative


def transposed(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """The transpose of the linear map, whose body also computes what does not depend on its argument."""

    def derivative(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        def along(*direction: Any) -> Any:
            return control.jvp(lambda *xs: tuple(_smooth(f(*xs, k, p))), (x, v, w), direction)[1]

        ct = tuple([hnp.cos(part) for part in along(x, v, w)])
        return control.linear_transpose(along, x, v, w)(ct)

    return derivative


def mapped(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Three lanes, with all inputs mapped, along different axes."""

    def lanes(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        t = hnp.asarray([1.0, -0.5, 0.3])
        xs, vs = x * t, v[:, None] * t
        ws, ks, ps = w[:, None] * t[:, None], (k + hnp.arange(3, dtype="int32")) % 5, p ^ (t > 0)
        return _lanes(control, f, (0, 1, 1, 0, 0))(xs, vs, ws, ks, ps)

    return lanes


def partly_mapped(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Two lanes that share all but one vector."""

    def lanes(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        return _lanes(control, f, (None, 0, None, None, None))(x, hnp.stack([v, -v]), w, k, p)

    return lanes


def chosen_by_lane(control: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Lanes that differ in what chooses alone."""

    def lanes(x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
        ks, ps = (k + hnp.arange(3, dtype="int32")) % 5, p ^ hnp.asarray([True, False, True])
        return _lanes(control, f, (None, None, None, 0, 0))(x, v, w, ks, ps)

    return lanes


def _lanes(control: Any, f: Callable[..., Any], axes: Sequence[int | None]) -> Callable[..., Any]:
    """``f`` over lanes, whose results are stacked in front; the reference takes one lane after the other."""

    def run(*inputs: Any) -> Any:
        if control is UNROLLED:
            size = next(x.shape[a] for x, a in zip(inputs, axes) if a is not None)
            rows = [f(*[x if a is None else hnp.take(x, i, a) for x, a in zip(inputs, axes)]) for i in range(size)]
            return tuple([hnp.stack(column) for column in zip(*rows)])
        return control.vmap(f, tuple(axes))(*inputs)

    return run


FORWARD: tuple[Change, ...] = (compiled, forwards, pushed, mapped, partly_mapped, chosen_by_lane)
REVERSE: tuple[Change, ...] = (*FORWARD, backwards, pulled, transposed)


def tower(control: Any, f: Callable[..., Any], changes: Sequence[Change]) -> Callable[..., Any]:
    """``f`` changed again and again."""
    for change in changes:
        f = change(control, f)
    return f


def changes_of(seed: int, among: Sequence[Change], most: int = 3) -> list[Change]:
    """Up to ``most`` changes."""
    random = Random(seed)
    return [random.choice(among) for _ in range(random.randint(0, most))]


def _agree(nest: Nest, seed: int, changes: Sequence[Change]) -> None:
    """A tower over the nest gives what it gives over the reference."""
    inputs = nest.inputs(seed)
    names = " of ".join([change.__name__ for change in reversed(changes)]) or "value"
    with evaluated():
        wanted = tower(UNROLLED, nest.function(UNROLLED), changes)(*map(lift, inputs))
    with contextlib.ExitStack() as scope:
        scope.enter_context(config.configure(default_float="float64"))
        if compiled not in changes:
            scope.enter_context(evaluated())
        found = tower(CONTROL, nest, changes)(*map(lift, inputs))
    same(found, wanted, f"{names}, against loops in Python")


def agrees(*changes: Change) -> Callable[[Nest, int], None]:
    return lambda nest, seed: _agree(nest, seed, changes)


def _differences(nest: Nest, seed: int) -> None:
    """The derivative is the quotient of differences, unless a branch changes between."""
    x, v, w, k, p = nest.inputs(seed)
    step = 1e-6
    with evaluated():
        made = forwards(CONTROL, nest)(x, v, w, k, p)
        found = made[len(made) // 2 :]
        up, down = [
            _smooth(nest(x + sign * np.sin(x), v + sign * np.cos(v), w + sign, k, p)) for sign in (step, -step)
        ]
        for y, a, b in zip(found, map(np.asarray, up), map(np.asarray, down)):
            if np.abs(a - b).max(initial=0.0) < 1e-3:
                np.testing.assert_allclose(np.asarray(y), (a - b) / (2 * step), rtol=1e-4, atol=1e-4)


def _adjoint(nest: Nest, seed: int) -> None:
    """<u, Jv> = <J^T u, v>."""
    x, v, w, k, p = nest.inputs(seed)
    rng = np.random.default_rng(seed)
    with evaluated():
        f = lambda *xs: tuple(_smooth(nest(*xs, k, p)))
        direction = [np.asarray(rng.normal(size=a.shape)) for a in (x, v, w)]
        _, dy = CONTROL.jvp(f, (x, v, w), tuple(direction))
        y, pull = CONTROL.vjp(f, x, v, w)
        u = [np.asarray(rng.normal(size=part.shape)) for part in y]
        left = sum([float(np.sum(a * np.asarray(b))) for a, b in zip(u, dy)])
        right = sum([float(np.sum(a * np.asarray(b))) for a, b in zip(direction, pull(tuple(u)))])
    size = 1.0 + sum([float(np.abs(b).sum()) for b in map(np.asarray, dy)])
    assert abs(left - right) <= 1e-10 * size, f"<u, Jv> = {left}, <J^T u, v> = {right}"


def _program(nest: Nest, seed: int, among: Sequence[Change]) -> tuple[Program, list[Any], list[Any]]:
    """The program of a tower of up to two changes, its inputs, and what it gives."""
    inputs = [lift(x) for x in nest.inputs(seed)]
    f = tower(CONTROL, nest, changes_of(seed, among, 2))
    program = record(lambda *xs: list(f(*xs)), [x.type for x in inputs])
    return program, inputs, list(interpret(program, inputs))


def _split(nest: Nest, seed: int) -> None:
    """Known inputs to known results and residuals; these and the unknown inputs to the rest."""
    with evaluated():
        program, inputs, wanted = _program(nest, seed, FORWARD)
        random = Random(seed)
        for unknown in [[random.random() < 0.5 for _ in inputs] for _ in range(3)]:
            parts = partial_eval_program(program, unknown)
            for half in (parts.known, parts.rest):
                typecheck(half)
            known = [x for x, yes in zip(inputs, unknown) if not yes]
            first = interpret(parts.known, known)
            residuals = [known[n] if given else first[n] for given, n in parts.residuals]
            rest = iter(interpret(parts.rest, [*residuals, *[x for x, yes in zip(inputs, unknown) if yes]]))
            done = iter(first)
            found = [next(rest) if yes else next(done) for yes in parts.unknown]
            same(found, wanted, f"split at {unknown}")


def _text(nest: Nest, seed: int) -> None:
    with evaluated():
        program, *_ = _program(nest, seed, FORWARD)
    assert typecheck(program) is program
    parsed = parse_program(str(program), program.consts).unwrap()
    assert parsed == program, program.diff(parsed)
    assert pickle.loads(pickle.dumps(program)) == program


def _dead_code(nest: Nest, seed: int) -> None:
    with evaluated():
        program, inputs, wanted = _program(nest, seed, FORWARD)
        random = Random(seed)
        used = [random.random() < 0.5 for _ in wanted]
        smaller, kept = dead_code_elimination(program, used)
        typecheck(smaller)
        found = interpret(smaller, [x for x, yes in zip(inputs, kept) if yes])
    same(found, [y for y, yes in zip(wanted, used) if yes], f"without dead code, {used} being used")


NEST_LAWS = (
    NestLaw("value", "control flow gives what Python's loops and branches give", agrees()),
    NestLaw("compiled", "compiled, it gives the same", agrees(compiled)),
    NestLaw("differences", "jvp equals the quotient of differences", _differences),
    NestLaw("jvp", "jvp equals that of the unrolled function", agrees(forwards)),
    NestLaw("linearize", "the linear map equals that of the unrolled function", agrees(pushed)),
    NestLaw("adjoint", "<u, Jv> = <J^T u, v>", _adjoint, reverse=True),
    NestLaw("grad", "the gradient equals that of the unrolled function", agrees(backwards), reverse=True),
    NestLaw("transpose", "a loop that computes what its linear part needs is transposed", agrees(transposed), True),
    NestLaw("vmap", "vmap equals the loop over lanes", agrees(mapped)),
    NestLaw("choices", "lanes that choose differently give what each gives alone", agrees(chosen_by_lane)),
    NestLaw(
        "forward towers",
        "jit, vmap, jvp and linearize commute with control flow",
        lambda nest, seed: _agree(nest, seed, changes_of(seed, FORWARD)),
    ),
    NestLaw(
        "reverse towers",
        "so do grad and vjp, in any order with the others",
        lambda nest, seed: _agree(nest, seed, changes_of(seed, REVERSE)),
        reverse=True,
    ),
    NestLaw("partial_eval", "the two parts of a split program make the whole", _split),
    NestLaw(
        "text",
        "print and parse, pickle and typecheck give the program back",
        _text,
        without=("custom_jvp", "custom_vjp"),  # rules are functions of Python, which have no text
    ),
    NestLaw("dead_code", "what is not used may go", _dead_code),
)
