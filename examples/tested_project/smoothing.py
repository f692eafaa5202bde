"""Values on a ring, smoothed: a project with an operation, an effect and a handler of its own.

    >>> import handlax.numpy as hnp
    >>> smooth(hnp.array([0.0, 4.0, 0.0, 0.0]))
    Array([1., 2., 1., 0.], dtype=float32)
"""

import numpy as np

import handlax as hx
from handlax import lax


# y[i] = x[i - by], around the ends of an axis
@hx.operation
class Turn:
    by: int
    axis: int = 0

    def result_type(op, x):
        return x

    def evaluate(op, x):
        return np.roll(x, op.by, op.axis)

    def batch(op, dims, x):
        (dim,) = dims
        return hx.perform(Turn(op.by, op.axis + (dim <= op.axis)), x), dim

    jvp = hx.columns.linear

    def transpose(op, ct, x):
        return hx.perform(Turn(-op.by, op.axis), ct)

    def decompose(op, x):
        size = x.shape[op.axis]
        cut = (size - op.by) % size
        parts = [lax.slice_in_dim(x, *ends, axis=op.axis) for ends in ((cut, size), (0, cut))]
        return lax.concatenate(parts, op.axis)


# a cost that is reported to whoever adds up
@hx.effect(vmap="per_lane", diff="stop")
class Spend:
    remedy = "add up around the function: hx.handle(spending, 0.0)(f)."

    def result_type(op, cost):
        return None


spending = hx.handler({Spend: lambda total, op, cost: (total + cost, None)})
"""Adds up what is spent: ``handle(spending, 0.0)(f)(x) == (total, f(x))``."""


def spend(cost):
    hx.perform(Spend(), cost)


def smooth(x):
    """Each value with its two neighbours on the ring: a half, and a quarter of each."""
    return 0.5 * x + 0.25 * (hx.perform(Turn(1), x) + hx.perform(Turn(-1), x))


def diffuse(x, steps):
    """``steps`` times smoothed; each step spends the largest value that is left."""
    def step(x, _):
        y = smooth(x)
        spend(lax.reduce_max(y, (0,)))
        return y, None

    return lax.scan(step, x, None, length=steps)[0]
