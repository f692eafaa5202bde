"""Branches: one of several functions is executed, chosen by a value that the program computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias, overload

import numpy as np

from ..base.errors import BadArgument, DTypeMismatch, ShapeMismatch, need_function
from ..base.stack import perform
from ..base.tracebacks import boundary
from ..base.wrapping import name_of
from ..core.array_interface import ArrayLike
from ..core.arrays import Array, as_array
from ..core.columns import add_tangents, data_movement
from ..core.operation import operation
from ..core.signatures import R, Ts, X, Y
from ..core.varying import vary
from ..operations.elementwise.comparison import clamp, select_n
from ..operations.elementwise.conversion import convert
from ..programs.closure_conversion import close_all
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..trees import pytrees
from ..types.array_type import array_type
from ..types.dtypes import bool_, int32
from .eager_control import concrete_or_none, unrolls
from .recorded_bodies import body_of, diverging, need_all_devices, need_one_choice, perform_bodies, same_results

Platforms: TypeAlias = tuple[tuple[str, ...] | None, ...]
"""Of each branch the platforms that take it; None: all that no earlier branch has."""

NOT_GIVEN = pytrees.Unspecified()
_PLATFORMS_CALLED = {"gpu": ("cuda", "rocm")}


# y = bodies[min(max(index, 0), n - 1)](x)
@operation
class Cond(HigherOrder):
    """``share``: where only the last body does anything, in how many of how many executions it does; () if that is not
    known. ``branches_platforms``: those of each body, None for all others, where the platform of a compiled program
    chooses.
    """

    bodies: tuple[Program, ...]
    shared: int = 0
    share: tuple[int, ...] | None = None
    branches_platforms: Platforms | None = None
    runs = "one"
    selects = 1
    carry = 0
    param_names = {"bodies": "branches", "shared": None, "share": None, "branches_platforms": None}

    def result_type(op, *operands):
        need_all_devices("cond", op.bodies, operands[0].varying)
        results = HigherOrder.result_type(op, *operands)
        need_one_choice("cond", operands[0], operands[1:], results)
        return results

    def lower(op, emit, index, *values):
        if op.branches_platforms is None:
            return emit.case(index, [lambda body=body: emit.program(body, values) for body in op.bodies], emit.made)
        return emit.program(op.bodies[branch_on(emit.platform, op.branches_platforms)], values)

    def of_lane(op, which, cases):
        """A result of a lane that evaluates all branches; it has chosen ``which``."""
        return select_n(which, *cases)


# y = sum over i of bodies[i](x), of which those that the index does not choose are 0, or not used
@operation
class CondAdjoint(Cond):
    """The adjoint of a conditional in which lanes meet; each body has cotangents of its own, 0 if it is not chosen.

    A lane gets cotangents from each collective in which it takes part, and where lanes choose differently it takes part
    in those of all branches. So it adds the results of the bodies, where ``Cond`` selects one.
    """

    def of_lane(op, which, cases):
        return reduce(add_tangents, cases)



# y = the number of the branch for the platform
@operation
class PlatformIndex:
    platforms: Platforms
    exempt = {"jvp": "it has no operands", "transpose": "it has no operands", "batch": "it has no operands"}
    flops = data_movement

    def result_type(op):
        return array_type((), int32)

    def evaluate(op):
        return np.int32(branch_on("cpu", op.platforms))

    def lower(op, emit):
        return emit.constant(branch_on(emit.platform, op.platforms), emit.made)


def branch_on(platform: str, platforms: Platforms) -> int:
    """The number of the first branch for a platform. Raises: BadArgument: there is none."""
    for number, names in enumerate(platforms):
        if names is None or platform in names:
            return number
    given = ", ".join([repr(name) for names in platforms for name in names or ()]) or "none"
    raise BadArgument(
        f"platform_dependent: a function for {platform!r} must be given, got those for {given}.",
        hint="default=f serves all other platforms.",
    )


@overload
def cond(
    pred: ArrayLike, true_fun: Callable[[*Ts], ArrayLike], false_fun: Callable[[*Ts], ArrayLike], *operands: *Ts
) -> Array: ...
@overload
def cond(pred: ArrayLike, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], R], *operands: *Ts) -> R: ...
@overload
def cond(pred: ArrayLike, true_fun: Callable[[X], R], false_fun: Callable[[X], R], *, operand: X) -> R: ...
@overload
def cond(pred: ArrayLike, x: X, f: Callable[[X], R], y: Y, g: Callable[[Y], R], /) -> R: ...
@boundary  # type: ignore[misc]
def cond(
    pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = NOT_GIVEN
) -> Any:
    """Apply one of two functions, chosen by a boolean that the program computes.

        cond(p, f, g, *xs) == (f if p else g)(*xs)

    JAX's old form is ``cond(p, x, f, y, g) == (f(x) if p else g(y))``.
    Under ``vmap`` with a mapped predicate both are computed, and the results are selected per lane; under
    ``vmap(group=True)`` each is computed on the lanes that take it.

    Raises: ShapeMismatch: the predicate is no scalar. DTypeMismatch: it is complex or a key. TreeMismatch,
    StateTypeError: the functions give different trees or types.

    >>> cond(True, lambda x: x + 1.0, lambda x: x * 2.0, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
        x, f, y, g = true_fun, false_fun, *operands
        return cond(pred, lambda x, _: f(x), lambda _, y: g(y), x, y)
    need_function("cond", true_fun)
    need_function("cond", false_fun)
    x = as_array(pred)
    if x.type.shape:
        raise ShapeMismatch(f"cond: the predicate must be a scalar, got {x.type}.", hint="where() selects elements.")
    if x.type.dtype.kind not in "biuf":
        raise DTypeMismatch(f"cond: the predicate must be a boolean or a real number, got {x.type}.")
    arguments = operands if operand is NOT_GIVEN else (operand,)
    return _one_of("cond", convert(convert(x, bool_), int32), (false_fun, true_fun), arguments)


@overload
def switch(index: ArrayLike, branches: Sequence[Callable[[*Ts], ArrayLike]], *operands: *Ts) -> Array: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[[*Ts], R]], *operands: *Ts) -> R: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[[X], R]], *, operand: X) -> R: ...
@boundary  # type: ignore[misc]
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = NOT_GIVEN) -> Any:
    """Apply one of several functions, chosen by an index, which is clamped to their range.

        switch(i, fs, *xs) == fs[clip(i, 0, len(fs) - 1)](*xs)

    Raises: BadArgument: there is no branch. ShapeMismatch, DTypeMismatch: the index is no integer scalar. TreeMismatch,
    StateTypeError: the functions give different trees or types.

    >>> switch(1, [lambda x: x, lambda x: -x], 3)
    Array(-3, dtype=int32, weak_type=True)
    """
    if not isinstance(branches, Iterable):
        raise BadArgument(f"switch: the branches must be a sequence, got {type(branches).__name__}.", hint="[f, g].")
    functions = tuple(branches)
    if not functions:
        raise BadArgument("switch: there must be a branch, got none.")
    for f in functions:
        need_function("switch", f)
    x = as_array(index)
    if x.type.shape:
        raise ShapeMismatch(f"switch: the index must be a scalar, got {x.type}.")
    if x.type.dtype.kind not in "iu":
        raise DTypeMismatch(f"switch: the index must be an integer, got {x.type}.")
    arguments = operands if operand is NOT_GIVEN else (operand,)
    if len(functions) == 1:
        return functions[0](*arguments)
    last = as_array(len(functions) - 1)
    nearest = clamp(convert(0, x.type.dtype, x.type.weak), x, convert(last, x.type.dtype, x.type.weak))
    return _one_of("switch", convert(nearest, int32), functions, arguments)


def execute_if(some: Any, fun: Callable[..., Any], otherwise: Callable[..., Any], share: tuple[int, ...]) -> Any:
    """A ``cond`` between ``fun`` and ``otherwise``; ``share``: in how many of how many executions it calls ``fun``."""
    return _one_of("cond", convert(some, int32), (otherwise, fun), (), share=share)


@boundary
def platform_dependent(*args: Any, default: Callable[..., Any] | None = None, **per_platform: Any) -> Any:
    """The result of the function for the platform on which it is computed, or of ``default``.

        platform_dependent(x, cpu=f, gpu=g, default=h)

    A compiled program has the function of the platform that it is compiled for, one that is exported for several the
    function of each. Platforms are "cpu", "cuda", "rocm" and "tpu"; "gpu" stands for two of them. Effects of all
    functions must be handled, as those of all branches of ``switch``.

    Raises: BadArgument: there is no function for this platform. TreeMismatch, StateTypeError: the functions give
    different trees or types.

    >>> platform_dependent(2.0, cpu=lambda x: x + 1.0, default=lambda x: x)
    Array(3., dtype=float32, weak_type=True)
    """
    platforms: Platforms = tuple([_PLATFORMS_CALLED.get(name, (name,)) for name in per_platform])
    functions = list(per_platform.values())
    if default is not None:
        platforms, functions = (*platforms, None), [*functions, default]
    for f in functions:
        need_function("platform_dependent", f)
    index = perform(PlatformIndex(platforms))
    return _one_of("platform_dependent", index, functions, args, branches_platforms=platforms)


def _one_of(
    name: str, index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any], **options: Any
) -> Any:
    """The results of branch ``index`` by ``Cond``; under ``disable_jit`` Python calls the branch."""
    leaves, structure = pytrees.flatten(tuple(operands))
    xs = [as_array(x) for x in leaves]
    if unrolls() and (number := concrete_or_none(int, index)) is not None:
        return pytrees.tree_map(as_array, branches[number](*pytrees.unflatten(structure, xs)))
    types = [x.type for x in xs]
    distinct = {id(f): f for f in branches}  # a function that stands in several places is called once
    recorded = {
        key: body_of(name_of(f), lambda *ys, f=f: f(*pytrees.unflatten(structure, ys)), types, name)
        for key, f in distinct.items()
    }
    bodies = [recorded[id(f)] for f in branches]
    order = (1, 0) if name == "cond" else range(len(bodies))  # the bodies of cond are those of 0 and 1
    programs, captured = close_all(same_results(name, bodies, order))
    varying = index.type.varying
    need_all_devices(name, programs, varying)
    inputs = [vary(x, varying) for x in (*captured, *xs)]
    results = perform_bodies(Cond(tuple(diverging(programs, varying)), len(captured), **options), index, *inputs)
    return pytrees.unflatten(bodies[0].structure, results)
