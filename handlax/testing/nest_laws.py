"""The laws of control flow, as values: each a name, one sentence, and a check of a nest.

    for law in NEST_LAWS: law.check(nest, seed)

The reference of every law is the same nest with Python's loops and branches, evaluated by NumPy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np

from .. import numpy as hnp
from ..effects.base.config import configure
from ..effects.core.arrays import as_array
from ..effects.programs.program import Program, interpret
from ..interpreters.analysis.simplify import dead_code_elimination
from ..interpreters.analysis.typecheck import typecheck
from ..interpreters.core.record import record
from ..interpreters.differentiation.partial_eval import partial_eval_program
from .closeness import assert_results_equal
from .drawn_programs import refusal_of, with_reduced_program
from .generator.control import CONTROL
from .generator.nests import DIFFERENTIABLE, Nest
from .generator.unrolled import UNROLLED, evaluated
from .law import Law, check_law, no_refusal
from .operation_laws import assert_preserved, joined_results
from .tangents import assert_quotients, drawn_tangents, pairing, smooth_part


def check_nest_law(law: Law, nest: Nest, seed: int, *, seconds: float = 10.0) -> str | None:
    """Check a law for a nest: None if it holds, or why it does not apply.

    It does not where the nest has a statement that the law is ``without``, or where the law needs reverse mode, which
    the nest refuses.

    Args:
        seconds: how long a nest that fails is reduced.

    Raises: LawFails: it fails; with a reduced nest that fails with the same exception.
    """
    for name in law.without:
        if f"hx.{name}(" in nest.source:
            return f"the nest has {name}"
    refusal = refusal_of if "reverse" in law.needs else no_refusal
    return check_law(
        "control flow", law, (nest, seed), seed, with_reduced_program, refusal=refusal, kept=seconds)


# change(control, f, *inputs): results of a transformation of f, of the functions of a control, CONTROL or UNROLLED
Change = Callable[..., Any]


def _of_floats(f: Callable[..., Any], k: Any, p: Any) -> Callable[..., Any]:
    """A function of x, v, w, k, p with fixed k and p, and without the results that have no derivatives."""
    return lambda *xs: tuple(smooth_part(f(*xs, k, p)))


def jitted(control: Any, f: Callable[..., Any], *inputs: Any) -> Any:
    """The results of the function under ``jit``."""
    return control.jit(f)(*inputs)


def forwards(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The results and their tangents along (sin x, cos v, 1)."""
    y, dy = control.jvp(_of_floats(f, k, p), (x, v, w), (hnp.sin(x), hnp.cos(v), hnp.ones_like(w)))
    return (*y, *dy)


def pushed(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The results of ``linearize``, and of its linear map at two tangents."""
    y, push = control.linearize(_of_floats(f, k, p), x, v, w)
    return (*y, *push(x, hnp.ones_like(v), hnp.cos(w)), *push(hnp.ones_like(x), v, w))


def backwards(control: Any, f: Callable[..., Any], *inputs: Any) -> Any:
    """The gradient of a weighted sum of the results."""

    def loss(*inputs: Any) -> Any:
        return sum([hnp.sum(hnp.cos(y + i)) for i, y in enumerate(smooth_part(f(*inputs)))], hnp.asarray(0.0))

    return control.grad(loss, DIFFERENTIABLE)(*inputs)


def pulled(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The cotangents of the inputs that ``vjp`` gives if every other result has a zero cotangent."""
    y, pull = control.vjp(_of_floats(f, k, p), x, v, w)
    return pull(tuple([hnp.sin(part) if i % 2 == 0 else hnp.zeros_like(part) for i, part in enumerate(y)]))


def transposed(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The transpose of the linear map from tangents to tangents, which is a ``jvp`` that computes primals too."""

    def along(*direction: Any) -> Any:
        return control.jvp(_of_floats(f, k, p), (x, v, w), direction)[1]

    ct = tuple([hnp.cos(part) for part in along(x, v, w)])
    return control.linear_transpose(along, x, v, w)(ct)


def mapped(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The results of ``vmap`` over three lanes in which all inputs are mapped, along different axes."""
    t = hnp.asarray([1.0, -0.5, 0.3])
    ks, ps = (k + hnp.arange(3, dtype="int32")) % 5, p ^ (t > 0)
    return control.vmap(f, (0, 1, 1, 0, 0))(x * t, v[:, None] * t, w[:, None] * t[:, None], ks, ps)


def partly_mapped(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The results of ``vmap`` over two lanes that share all inputs but one vector."""
    return control.vmap(f, (None, 0, None, None, None))(x, hnp.stack([v, -v]), w, k, p)


def chosen_by_lane(control: Any, f: Callable[..., Any], x: Any, v: Any, w: Any, k: Any, p: Any) -> Any:
    """The results of ``vmap`` over lanes that differ only in the integer and the bool, which steer control flow."""
    ks, ps = (k + hnp.arange(3, dtype="int32")) % 5, p ^ hnp.asarray([True, False, True])
    return control.vmap(f, (None, None, None, 0, 0))(x, v, w, ks, ps)


FORWARD: tuple[Change, ...] = (jitted, forwards, pushed, mapped, partly_mapped, chosen_by_lane)
REVERSE: tuple[Change, ...] = (*FORWARD, backwards, pulled, transposed)


def tower(control: Any, f: Callable[..., Any], changes: Sequence[Change]) -> Callable[..., Any]:
    """``f`` with all changes applied, the first one innermost."""
    for change in changes:
        f = partial(change, control, f)
    return f


def changes_of(seed: int, among: Sequence[Change], most: int = 3) -> list[Change]:
    """A random sequence of up to ``most`` changes."""
    random = Random(seed)
    return [random.choice(among) for _ in range(random.randint(0, most))]


def _agree(nest: Nest, seed: int, changes: Sequence[Change]) -> None:
    """Assert that the changed nest and the changed reference have equal results."""
    inputs = [as_array(x) for x in nest.inputs(seed)]
    names = " of ".join([change.__name__ for change in reversed(changes)]) or "value"
    changed = lambda control: tower(control, nest.function(hx=control), changes)
    expected = evaluated()(changed(UNROLLED))(*inputs)
    in_force = configure(default_float="float64") if jitted in changes else evaluated()
    assert_results_equal(in_force(changed(CONTROL))(*inputs), expected, what=f"{names}, against loops in Python")


def agrees(*changes: Change) -> Callable[[Nest, int], None]:
    """The check that these changes of the nest and of its reference have equal results."""
    return lambda nest, seed: _agree(nest, seed, changes)


@evaluated()
def _differences(nest: Nest, seed: int) -> None:
    """Of ``jvp``: the results are those of the nest, and the derivative is the difference quotient of it.

    Unless a branch or trip count changes in between.
    """
    x, v, w, k, p = nest.inputs(seed)
    results = forwards(CONTROL, nest, x, v, w, k, p)
    y, tangents = results[: len(results) // 2], results[len(results) // 2 :]
    assert_results_equal([*y], smooth_part(nest(x, v, w, k, p)), what="the results of jvp")
    assert_quotients(tangents, lambda d: smooth_part(nest(x + d * np.sin(x), v + d * np.cos(v), w + d, k, p)))


@evaluated()
def _adjoint(nest: Nest, seed: int) -> None:
    """<u, Jv> = <J^T u, v>."""
    x, v, w, k, p = nest.inputs(seed)
    f, direction = _of_floats(nest, k, p), drawn_tangents(seed, x, v, w)
    _, dy = CONTROL.jvp(f, (x, v, w), direction)
    y, pull = CONTROL.vjp(f, x, v, w)
    u = drawn_tangents(seed + 1, *y)
    left, right = pairing(u, dy), pairing(direction, pull(u))
    size = 1.0 + sum([float(np.abs(b).sum()) for b in map(np.asarray, dy)])
    assert abs(left - right) <= 1e-10 * size, f"<u, Jv> = {left}, <J^T u, v> = {right}"


def _program(nest: Nest, seed: int, among: Sequence[Change]) -> tuple[Program, list[Any], list[Any]]:
    """The program of a nest with up to two changes, its inputs and its results."""
    inputs = [as_array(x) for x in nest.inputs(seed)]
    f = tower(CONTROL, nest, changes_of(seed, among, 2))
    program = record(lambda *xs: list(f(*xs)), [x.type for x in inputs])
    return program, inputs, list(interpret(program, inputs))


@evaluated()
def _partition(nest: Nest, seed: int) -> None:
    """The known and the unknown part of a program compute its results together."""
    program, inputs, expected = _program(nest, seed, FORWARD)
    random = Random(seed)
    for unknown in [[random.random() < 0.5 for _ in inputs] for _ in range(3)]:
        parts = partial_eval_program(program, unknown)
        for half in (parts.known, parts.rest):
            typecheck(half)
        assert_results_equal(joined_results(parts, unknown, inputs), expected, what=f"partitioned at {unknown}")


@evaluated()
def _text(nest: Nest, seed: int) -> None:
    """The program of a nest is the same after printing and parsing, after pickling, and after type checking."""
    assert_preserved(_program(nest, seed, FORWARD)[0])


@evaluated()
def _dead_code(nest: Nest, seed: int) -> None:
    """A program without its dead code computes the results that are used."""
    program, inputs, expected = _program(nest, seed, FORWARD)
    random = Random(seed)
    used = [random.random() < 0.5 for _ in expected]
    smaller, live = dead_code_elimination(program, used)
    typecheck(smaller)
    actual = list(interpret(smaller, [x for x, yes in zip(inputs, live) if yes]))
    wanted = [y for y, yes in zip(expected, used) if yes]
    assert_results_equal(actual, wanted, what=f"without dead code, {used} being used")


NEST_LAWS = (
    Law("value", "control flow equals Python's loops and branches", agrees()),
    Law("compiled", "compiled control flow equals Python's loops and branches", agrees(jitted)),
    Law("differences", "jvp equals the difference quotient", _differences),
    Law("jvp", "jvp equals that of the unrolled function", agrees(forwards)),
    Law("linearize", "the linear map equals that of the unrolled function", agrees(pushed)),
    Law("adjoint", "<u, Jv> = <J^T u, v>", _adjoint, ("reverse",)),
    Law("grad", "the gradient equals that of the unrolled function", agrees(backwards), ("reverse",)),
    Law("transpose", "a linear map whose loops also compute primals is transposed", agrees(transposed), ("reverse",)),
    Law("vmap", "vmap equals the loop over lanes", agrees(mapped)),
    Law("choices", "lanes that branch differently equal those evaluated alone", agrees(chosen_by_lane)),
    Law(
        "forward towers",
        "jit, vmap, jvp and linearize commute with control flow",
        lambda nest, seed: _agree(nest, seed, changes_of(seed, FORWARD)),
    ),
    Law(
        "reverse towers",
        "jit, vmap, jvp, linearize, grad and vjp commute with control flow",
        lambda nest, seed: _agree(nest, seed, changes_of(seed, REVERSE)),
        needs=("reverse",),
    ),
    Law("partial_eval", "the known and the unknown part of a program compute its results", _partition),
    Law(
        "text",
        "print and parse, pickle and typecheck preserve the program",
        _text,
        without=("custom_jvp", "custom_vjp"),  # their rules are Python functions, which are not printed
    ),
    Law("dead_code", "dead code elimination preserves the results that are used", _dead_code),
)
"""The laws of control flow, which hold for each nest of loops, branches and transformations."""
