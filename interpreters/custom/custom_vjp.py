"""Functions with a reverse derivative rule: custom_vjp, custom_gradient, linear_call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ...effects.base.errors import TreeMismatch, need_function
from ...effects.base.stack import perform
from ...effects.base.tracebacks import boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.custom_rules import Adjoint, CustomVjp
from ...effects.control.recorded_bodies import body_of
from ...effects.core.arrays import as_array, type_of
from ...effects.core.signatures import P, R
from ...effects.functions.captured import boxes_in, placeholders_for, replaced
from ...effects.functions.keys import KeyedValue, UserFunction
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ..core.rule_results import checked
from ..differentiation.deferred_rules import DeferredRule, describe_function
from ..transformations.derivatives import tangent_type, zero_tangent
from ..transformations.make_program import closure_convert
from .custom_call import CustomFunction, substitution, with_placeholders
from .derivative_rules import UserVjp

_NOT_GIVEN = pytrees.Unspecified()  # ``custom_gradient(with_logs=True)`` is a decorator


class custom_vjp(CustomFunction[P, R]):
    """A function with a rule for its reverse derivative.

        f.defvjp(fwd, bwd);  y, pull = vjp(f, *xs):  y, r = fwd(*xs),  pull(ct) == bwd(r, ct)

    ``bwd`` is called for every result that is used, also where its cotangent is zero, but not in that case within a
    jitted function, a checkpoint, a loop or a branch. Forward mode follows where ``bwd`` is linear in the cotangent:
    its adjoint is the forward derivative.

    Args:
        nondiff_argnums, nondiff_argnames: arguments that are passed on as Python values, in their positions to ``fwd``
            and first to ``bwd``.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: a result or cotangent of a rule has another structure,
    shape or dtype than the function's. NotDifferentiable: forward mode, where ``bwd`` is not linear.

    >>> from handlax import grad, numpy as hnp
    >>> @custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (hnp.clip(ct, -1.0, 1.0),))
    >>> grad(lambda x: 5.0 * clipped(x))(3.0)
    Array(1., dtype=float32, weak_type=True)
    """

    operation = CustomVjp
    rule_names = ("fwd", "bwd")
    definition = "defvjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    logs: bool = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules, ``fwd(*args) -> (results, residuals)`` and ``bwd(*nondiff, residuals, cts) -> cts of args``.

        Residuals are trees of arrays and Python numbers, which reach ``bwd`` as they are. ``bwd`` returns a tuple with
        one entry for each argument; None is zero.

        Args:
            symbolic_zeros: leaves of the arguments are passed to ``fwd`` as ``CustomVJPPrimal``, with ``value`` and
                ``perturbed``; cotangents known to be zero are passed to ``bwd`` as ``SymbolicZero``.
            optimize_remat: ignored; unused residuals and results are dropped in any case.
        """
        need_function("defvjp", fwd)
        need_function("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros, self.logs = fwd, bwd, symbolic_zeros, False

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """``defvjp`` with a ``bwd`` that returns ``(cts, logs)``, where ``logs`` is a dictionary of trees, or None.

        ``pull.with_logs(ct)`` of ``vjp`` gives ``(cts, logs)``, logs stacked along loops and lanes; ``pull`` and
        ``grad`` discard them. A name is logged by one call of a rule: where several calls log, each passes its names
        to the rule, by ``nondiff_argnums``.
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.logs = True

    def _rule(self, *parts: Any) -> UserVjp:
        return UserVjp(*(*parts, self.symbolic_zeros, self._arguments.static, self.logs))


@overload
def custom_gradient(fun: Callable[P, tuple[R, Any]], *, with_logs: bool = False) -> Callable[P, R]: ...
@overload
def custom_gradient(*, with_logs: bool = False) -> Callable[[Callable[P, tuple[R, Any]]], Callable[P, R]]: ...
def custom_gradient(fun: Callable[..., Any] | pytrees.Unspecified = _NOT_GIVEN, *, with_logs: bool = False) -> Any:
    """A function from one that returns value and pullback: ``fun(*args) = (y, pull)``, ``pull(ct)`` the cotangents.

    ``pull`` returns a tuple, or for one argument its cotangent alone; it may use any value that ``fun`` computed. With
    ``with_logs`` it returns ``(cts, logs)``, as ``bwd`` of ``custom_vjp.defvjp_with_logs``.

    >>> from handlax import grad
    >>> grad(custom_gradient(lambda x: (x * x, lambda ct: 10.0 * ct)))(3.0)
    Array(10., dtype=float32, weak_type=True)
    """
    if isinstance(fun, pytrees.Unspecified):
        return lambda f: custom_gradient(f, with_logs=with_logs)
    need_function("custom_gradient", fun)

    @wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        single = len(args) == 1

        def value(*args: Any) -> Any:
            return fun(*args, **kwargs)[0]

        @wraps(fun)  # messages name the user's function as the rule
        def fwd(*args: Any) -> Any:
            y, pull = fun(*args, **kwargs)
            convertible, captured = closure_convert(pull, pytrees.map(_cotangent_like, y))
            return y, pytrees.Partial(convertible, *captured)

        @wraps(fun)
        def bwd(residuals: Any, ct: Any) -> Any:
            returned = residuals.func(ct, *residuals.args)
            if with_logs and (not isinstance(returned, tuple) or len(returned) != 2):
                return returned  # refused as no pair
            cts, logs = returned if with_logs else (returned, None)
            alone = single and not (isinstance(cts, tuple) and len(cts) == 1)
            cts = (cts,) if alone else cts
            return (cts, logs) if with_logs else cts

        value.__name__ = name_of(fun)
        function = custom_vjp(value)
        define = function.defvjp_with_logs if with_logs else function.defvjp
        define(fwd, bwd)
        return function(*args)

    return wrapped


def _cotangent_like(y: Any) -> Any:
    """A value of the type of the cotangents of ``y``."""
    t = type_of(y)
    return y if tangent_type(t) is not None else zero_tangent(t)


class UserLinear(DeferredRule):
    """A linear function of the user's as a deferred rule: from residuals and leaves of the linear argument to results.

    ``boxes`` stand for captured values, which are the first residuals; ``types`` are those of the results.
    """

    f: UserFunction
    boxes: tuple[KeyedValue, ...]
    residual_tree: Any
    tree: Any
    out_tree: Any
    types: tuple[ArrayType, ...]

    @property
    def shown(self) -> str:
        return f"linear_call, {describe_function(self.f.value)}"

    @boundary
    def __call__(self, residuals: Any, values: Any) -> list[Any]:
        f = replaced(self.f.value, substitution(self.boxes, residuals))
        residual_args = pytrees.unflatten(self.residual_tree, residuals[len(self.boxes) :])
        leaves, tree = pytrees.flatten(f(residual_args, pytrees.unflatten(self.tree, values)))
        if tree != self.out_tree:
            raise TreeMismatch(f"{self.shown}: the function must return the structure {self.out_tree}, got {tree}.")
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, self.types)]


@boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """``fun(residual_args, linear_args)``, linear in the second, with ``fun_transpose`` as its adjoint.

        <ct, fun(r, x)> == <fun_transpose(r, ct), x>

    >>> from handlax import linear_transpose
    >>> f = lambda r, x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, r, x)
    >>> linear_transpose(lambda x: f(2.0, x), 1.0)(3.0)
    (Array(1.5, dtype=float32, weak_type=True),)
    """
    need_function("linear_call", fun)
    need_function("linear_call", fun_transpose)
    residuals, residual_tree = pytrees.flatten(residual_args)
    values, tree = pytrees.flatten(linear_args)
    boxes = boxes_in(fun, fun_transpose)
    placeholders, placeholder_of = placeholders_for(boxes)
    held = tuple(map(KeyedValue, placeholders))
    xs = [as_array(x) for x in (*residuals, *values)]
    count = len(residuals)

    def flat(*ys: Any) -> Any:
        return fun(pytrees.unflatten(residual_tree, ys[:count]), pytrees.unflatten(tree, ys[count:]))

    body = body_of("linear_call", flat, [x.type for x in xs])
    types, out_types = tuple([x.type for x in xs[count:]]), body.program.out_types
    forward = UserLinear(with_placeholders(fun, placeholder_of), held, residual_tree, tree, body.structure, out_types)
    adjoint = with_placeholders(fun_transpose, placeholder_of)
    backward = UserLinear(adjoint, held, residual_tree, body.structure, tree, types)
    fixed = tuple([x.type for x in (*boxes, *xs[:count])])
    results = perform(Adjoint(backward, forward, fixed, out_types), *boxes, *xs)
    return pytrees.unflatten(body.structure, results)
