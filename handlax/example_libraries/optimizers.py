"""``handlax.example_libraries.optimizers``: gradient descent as triples of functions, under JAX's names.

    init, update, get_params = adam(1e-3)
    state = init(params);  for i in range(n): state = update(i, grads, state);  params = get_params(state)

Parameters, gradients and states are trees. A step size is a number or a function of the iteration, a schedule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects.base.errors import BadArgument, ShapeMismatch, TreeMismatch
from ..effects.base.wrapping import wraps
from ..effects.core.arrays import Array, as_array
from ..effects.trees import pytrees
from ..effects.trees.registration import register_pytree_node
from ..numpy.arrays.creation import asarray, zeros, zeros_like
from ..numpy.arrays.index_arrays import where
from ..numpy.mathematics.arithmetic import maximum, minimum
from ..numpy.mathematics.elementary_functions import sqrt

Schedule = Callable[[Any], Any]
"""The step size at a step: ``schedule(i)``."""


class OptimizerState(NamedTuple):
    """The states of all parameters: the leaves of each state, the treedef of the parameters, the treedef of each state.
    """

    packed_state: tuple[tuple[Any, ...], ...]
    tree_def: Any
    subtree_defs: tuple[Any, ...]


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


class Optimizer(NamedTuple):
    """``init_fn(params)`` and ``update_fn(i, grads, state)``, which return a state, and ``params_fn(state)``."""

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Optimizer]:
    """Decorator: ``opt_maker(...)``, which returns ``init, update, params`` for one array, as an optimizer of trees.

    Raises (``update_fn``): TreeMismatch: the gradients have not the structure of the parameters, or an update changes
    the structure of a state.

    >>> @optimizer
    ... def halving():
    ...     return (lambda x: x), (lambda i, g, x: x - g / 2), (lambda x: x)
    >>> init, update, get_params = halving()
    >>> get_params(update(0, {"a": 2.0}, init({"a": 3.0})))
    {'a': 2.0}
    """

    @wraps(opt_maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_all(params: Any) -> OptimizerState:
            leaves, tree = pytrees.flatten(params)
            return _packed(tree, [init(x) for x in leaves])

        def update_all(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            gs, tree = pytrees.flatten(grads)
            if tree != state.tree_def:
                raise TreeMismatch(f"optimizer: gradients must have the structure {state.tree_def}, got {tree}.")
            new = _packed(tree, [update(i, g, x) for g, x in zip(gs, _unpacked(state))])
            for old, made in zip(state.subtree_defs, new.subtree_defs):
                if old != made:
                    raise TreeMismatch(f"optimizer: an update must keep the structure {old} of a state, got {made}.")
            return new

        def params_of(state: OptimizerState) -> Any:
            return pytrees.unflatten(state.tree_def, [get_params(x) for x in _unpacked(state)])

        return Optimizer(init_all, update_all, params_of)

    return made


def _packed(tree: Any, states: Sequence[Any]) -> OptimizerState:
    """The states of parameters, one for each leaf of ``tree``, as one ``OptimizerState``."""
    pairs = [pytrees.flatten(x) for x in states]
    return OptimizerState(tuple([tuple(leaves) for leaves, _ in pairs]), tree, tuple([data for _, data in pairs]))


def _unpacked(state: OptimizerState) -> list[Any]:
    """The state of each parameter, as its optimizer made it: the inverse of ``_packed``."""
    return [pytrees.unflatten(tree, leaves) for tree, leaves in zip(state.subtree_defs, state.packed_state)]


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent: ``x - step g``."""
    step = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - step(i) * g), (lambda x: x)


def _first(state: Any) -> Any:
    """The parameter of a state, its first element."""
    return state[0]


def _with_velocity(step_size: Any, mass: float, direction: Callable[[Any, Any], Any]) -> Any:
    """Gradient descent along ``direction(g, v)``, where the velocity v is ``mass v + g`` of the velocity before."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * direction(g, v), v

    return (lambda x: (x, zeros_like(x))), update, _first


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with momentum: ``v = mass v + g``, ``x - step v``."""
    return _with_velocity(step_size, mass, lambda g, v: v)


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum: ``v = mass v + g``, ``x - step (mass v + g)``."""
    return _with_velocity(step_size, mass, lambda g, v: mass * v + g)


def _inverse_root(x: Any) -> Any:
    """``1 / sqrt(x)``; 0 where ``x`` is."""
    positive = x > 0
    return where(positive, 1.0 / sqrt(where(positive, x, 1.0)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Steps divided by the root of the sum of all squared gradients, with momentum.

    Source: Duchi, Hazan & Singer, Adaptive Subgradient Methods (2011).
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + g * g
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - step(i) * m, squares, m

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Steps divided by the root of the running mean of squared gradients: ``x - step g / sqrt(mean + eps)``."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + g * g * (1.0 - gamma)
        return x - step(i) * g / sqrt(mean + eps), mean

    return (lambda x: (x, zeros_like(x))), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """``rmsprop`` with momentum."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, m = state
        mean = mean * gamma + g * g * (1.0 - gamma)
        m = momentum * m + step(i) * g / sqrt(mean + eps)
        return x - m, mean, m

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Steps along the running mean of gradients over the root of the running mean of their squares, bias corrected.

    Source: Kingma & Ba, Adam (2015), algorithm 1.

    >>> init, update, get_params = adam(0.1)
    >>> round(float(get_params(update(0, 5.0, init(1.0)))), 5)
    0.9
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1.0 - b1) * g + b1 * m
        v = (1.0 - b2) * (g * g) + b2 * v
        count = asarray(i + 1, as_array(m).type.dtype)
        mean, square = m / (1.0 - b1**count), v / (1.0 - b2**count)
        return x - step(i) * mean / (sqrt(square) + eps), m, v

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """``adam`` with the maximum of discounted absolute gradients in place of the root of the mean of squares.

    Source: Kingma & Ba, Adam (2015), algorithm 2.
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1.0 - b1) * g + b1 * m
        largest = maximum(b2 * largest, abs(g))
        count = asarray(i + 1, as_array(m).type.dtype)
        return x - (step(i) / (1.0 - b1**count)) * m / (largest + eps), m, largest

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """``adagrad`` with less memory: a sum for each index of each dimension, whose minimum stands for an element's sum.

    Source: Anil, Gupta, Koren & Singer, Memory-Efficient Adaptive Optimization (2019), algorithm SM3-II.
    """
    step = make_schedule(step_size)

    def init(x: Any) -> Any:
        t = as_array(x).type
        return x, zeros_like(x), [zeros(n, t.dtype) for n in t.shape] or [zeros((), t.dtype)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, sums = state
        rank = len(as_array(g).type.shape)
        along = [v.reshape([-1 if d == axis else 1 for d in range(rank)]) for axis, v in enumerate(sums)]
        squares = functools.reduce(minimum, along) + g * g
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        sums = [squares.max([d for d in range(rank) if d != axis]) for axis in range(rank)] or [squares]
        return x - step(i) * m, m, sums

    return init, update, _first


def constant(step_size: Any) -> Schedule:
    """The same step size in every iteration."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """``step_size * decay_rate**(i / decay_steps)``."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``; the quotient rounded down for a ``staircase``."""
    return lambda i: step_size / (1 + decay_rate * (i // decay_steps if staircase else i / decay_steps))


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From ``step_size`` to ``final_step_size`` by the power ``(1 - i / decay_steps)**power``, then constant."""

    def schedule(i: Any) -> Any:
        rest = (1 - minimum(i, decay_steps) / decay_steps) ** power
        return rest * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """``values[j]``, where ``j`` boundaries are less than the iteration.

    Raises: ShapeMismatch: there is not one value more than boundaries.

    >>> [float(piecewise_constant([2, 4], [1.0, 0.5, 0.1])(i)) for i in (2, 3)]
    [1.0, 0.5]
    """
    boundaries, values = asarray(boundaries), asarray(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.size + 1,):
        raise ShapeMismatch(
            f"piecewise_constant: vectors with one value more than boundaries are needed, got {values.type} and "
            f"{boundaries.type}."
        )
    return lambda i: values[(i > boundaries).sum()]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function itself, as a schedule; a number as the constant schedule. Raises: BadArgument: it is neither."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if as_array(scalar_or_schedule).type.shape:
        raise BadArgument(f"make_schedule: a number or a function is needed, got {scalar_or_schedule!r}.")
    return constant(scalar_or_schedule)


def l2_norm(tree: Any) -> Array:
    """The root of the sum of all squares in a tree.

    >>> l2_norm({"a": 3.0, "b": 4.0})
    Array(5., dtype=float32)
    """
    return sqrt(sum([(as_array(x) * x).sum() for x in pytrees.tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """A tree of gradients, scaled down to the l2 norm ``max_norm`` if their norm is larger."""
    norm = l2_norm(grad_tree)
    return pytrees.map(lambda g: where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf that holds the tree of the state of one parameter."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a tree of the parameters' structure, with a ``JoinPoint`` for each of them: for storing it.

    >>> state = momentum(0.1, 0.9)[0]({"a": 1.0})
    >>> unpack_optimizer_state(state)["a"].subtree[0]
    1.0
    """
    return pytrees.unflatten(opt_state.tree_def, map(JoinPoint, _unpacked(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of ``unpack_optimizer_state``. Raises: TreeMismatch: a leaf is no ``JoinPoint``."""
    leaves, tree = pytrees.flatten(marked_pytree)
    if not all([isinstance(leaf, JoinPoint) for leaf in leaves]):
        raise TreeMismatch("pack_optimizer_state: every leaf must be a JoinPoint.")
    return _packed(tree, [leaf.subtree for leaf in leaves])
