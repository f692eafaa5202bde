"""custom_vjp and what is made of it: functions whose reverse derivative the user writes."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..effects import trees
from ..effects.arrays import lift
from ..effects.bodies import body_of
from ..effects.closures import boxes_in, holes_for, replaced
from ..effects.custom import Adjoint, CustomVjp
from ..effects.errors import BadCall, TreeMismatch, need_function
from ..effects.stack import perform
from ..effects.types import ArrayType
from ..effects.wrapping import wraps
from .calling import Arguments, Call, perform_call
from .custom_rules import UserVjp, kept, substitution
from .late import Held, Rule, checked, place_of
from .staging import closure_convert


class custom_vjp:
    """A function with a rule for its reverse derivative.

        f.defvjp(fwd, bwd);  y, pull = vjp(f, *xs):  y, r = fwd(*xs),  pull(ct) == bwd(r, ct)

    Forward mode follows where ``bwd`` is linear in the cotangent: its adjoint is the forward derivative.

    Args:
        nondiff_argnums, nondiff_argnames: arguments that are Python values; ``fwd`` takes all arguments as the function
            does, ``bwd`` takes these first.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: what a rule gives does not fit; the message names it.
    NotDifferentiable: forward mode was asked for and ``bwd`` is not linear.

    >>> from handlax import grad, numpy as hnp
    >>> @custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (hnp.clip(ct, -1.0, 1.0),))
    >>> grad(lambda x: 5.0 * clipped(x))(3.0)
    Array(1., dtype=float32, weak_type=True)
    """

    captures = ("fun", "fwd", "bwd", "__wrapped__")
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        need_function("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._arguments = Arguments("custom_vjp", fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self._arguments.static

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules, ``fwd(*args) -> (results, residuals)`` and ``bwd(*nondiff, residuals, cts) -> cts of args``.

        Residuals are trees of arrays. ``bwd`` gives a tuple with one entry for each argument; None is zero.

        Args:
            symbolic_zeros: leaves of the arguments come to ``fwd`` as ``CustomVJPPrimal``, with ``value`` and
                ``perturbed``; cotangents known to be zero come to ``bwd`` as ``SymbolicZero``.
            optimize_remat: nothing to do here, what is not used is dropped in any case.
        """
        need_function("defvjp", fwd)
        need_function("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise BadCall(f"custom_vjp: {self._arguments.name} has no rules yet.", hint="define them with defvjp.")
        arguments, fun, fwd, bwd = self._arguments, self.fun, self.fwd, self.bwd
        statics, xs, tree = arguments.split(arguments.positional(args, kwargs))
        given = [static.value for static in statics]

        def function(*values: Any) -> Any:
            return fun(*arguments.joined(given, trees.unflatten(tree, values)))

        def late(holes: Any, first: int, expected: Any, which: Any) -> UserVjp:
            fixed = tuple([kept(value, which) for value in given])
            rules = (kept(fwd, which), kept(bwd, which))
            symbolic = self.symbolic_zeros
            return UserVjp(arguments.name, fixed, tree, symbolic, holes, first, expected, *rules, arguments.static)

        return perform_call(Call(CustomVjp, arguments.name, function, late, (fun, fwd, bwd, *given)), xs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives its pullback with its value: ``fun(*args) = (y, pull)``, ``pull(ct)`` the cotangents.

    ``pull`` gives a tuple, or for one argument its cotangent alone; it may use whatever ``fun`` computed.

    >>> from handlax import grad
    >>> grad(custom_gradient(lambda x: (x * x, lambda ct: 10.0 * ct)))(3.0)
    Array(10., dtype=float32, weak_type=True)
    """
    need_function("custom_gradient", fun)

    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        def value(*args: Any) -> Any:
            return fun(*args, **kwargs)[0]

        @wraps(fun)  # messages name the user's function as the rule
        def fwd(*args: Any) -> Any:
            y, pull = fun(*args, **kwargs)
            convertible, captured = closure_convert(pull, y)
            return y, trees.Partial(convertible, *captured)

        @wraps(fun)
        def bwd(residuals: Any, ct: Any) -> Any:
            made = residuals.func(ct, *residuals.args)
            alone = len(args) == 1 and not (isinstance(made, tuple) and len(made) == 1)
            return (made,) if alone else made

        value.__name__ = getattr(fun, "__name__", "custom_gradient")
        made = custom_vjp(value)
        made.defvjp(fwd, bwd)
        return made(*args)

    return wrapped


class UserLinear(Rule):
    """A linear function of the user's, from residuals and values to values of certain types."""

    f: Held
    boxes: tuple[Held, ...]
    residual_tree: Any
    tree: Any
    out_tree: Any
    types: tuple[ArrayType, ...]

    @property
    def shown(self) -> str:
        return f"linear_call, {place_of(self.f.value)}"

    def __call__(self, residuals: Any, values: Any) -> list[Any]:
        f = replaced(self.f.value, substitution(self.boxes, residuals))
        given = trees.unflatten(self.residual_tree, residuals[len(self.boxes) :])
        leaves, tree = trees.flatten(f(given, trees.unflatten(self.tree, values)))
        if tree != self.out_tree:
            raise TreeMismatch(f"{self.shown}: the function must give the structure {self.out_tree}, got {tree}.")
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, self.types)]


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """``fun(residual_args, linear_args)``, a linear function whose adjoint the user writes.

        <ct, fun(r, x)> == <fun_transpose(r, ct), x>

    >>> from handlax import linear_transpose
    >>> f = lambda r, x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, r, x)
    >>> linear_transpose(lambda x: f(2.0, x), 1.0)(3.0)
    (Array(1.5, dtype=float32, weak_type=True),)
    """
    need_function("linear_call", fun)
    need_function("linear_call", fun_transpose)
    residuals, residual_tree = trees.flatten(residual_args)
    values, tree = trees.flatten(linear_args)
    boxes = boxes_in(fun, fun_transpose)
    holes, which = holes_for(boxes)
    held = tuple(map(Held, holes))
    xs = [lift(x) for x in (*residuals, *values)]
    count = len(residuals)

    def flat(*ys: Any) -> Any:
        return fun(trees.unflatten(residual_tree, ys[:count]), trees.unflatten(tree, ys[count:]))

    body = body_of("linear_call", flat, [x.type for x in xs])
    types, out_types = tuple([x.type for x in xs[count:]]), body.program.out_types
    forward = UserLinear(kept(fun, which), held, residual_tree, tree, body.structure, out_types)
    backward = UserLinear(kept(fun_transpose, which), held, residual_tree, body.structure, tree, types)
    results = perform(Adjoint(backward, forward, len(boxes) + count, out_types), *boxes, *xs)
    return trees.unflatten(body.structure, results)
