"""Random nests of loops, ``vmap``, branches and transformations, and what they mean in plain Python.

A nest is a function of a number and a flag, whose result is a dictionary. A structure takes a nest in plain Python and
the same nest with handlax, and gives both inside it. What a nest in plain Python returns is up to a *reading*, with
methods for the results of lanes, of a loop, of a branch that is not taken, and of two values of one name.
"""

from __future__ import annotations

import random

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


COUNTER = hx.handler({Tick: lambda count, op: (count + 1, None)})


class Results:
    """What is returned: by name an array, stacked by lanes and by loops alike."""

    def one(self, x):
        return np.asarray(x)

    def lanes(self, ys):
        return np.stack(ys)

    loop = loop_backwards = lanes

    def untaken(self, y):
        return np.zeros_like(y)

    def returned(self, ys):
        return ys


class Rows:
    """Rows: by name values and whether they are there, and the axis along which the rows stand."""

    def one(self, x):
        return np.asarray([x]), np.asarray([True]), 0

    def lanes(self, ys):
        return np.stack([y[0] for y in ys]), np.stack([y[1] for y in ys]), min([y[2] for y in ys]) + 1

    def loop(self, ys):
        return (*[np.concatenate([np.moveaxis(y[k], y[2], 0) for y in ys]) for k in (0, 1)], 0)

    loop_backwards = loop

    def untaken(self, y):
        return np.zeros_like(y[0]), np.zeros_like(y[1]), y[2]

    def then(self, y, z):
        at = min(y[2], z[2])
        pairs = [[np.moveaxis(part[k], part[2], at) for part in (y, z)] for k in (0, 1)]
        return (*[np.concatenate(pair, at) for pair in pairs], at)

    def returned(self, ys):
        return {}


class Last:
    """The last value: by name the value, and whether there is one."""

    def one(self, x):
        return np.asarray(x), np.asarray(True)

    def lanes(self, ys):
        return np.stack([y[0] for y in ys]), np.stack([y[1] for y in ys])

    def loop(self, ys):
        last = ys[0]
        for y in ys[1:]:
            last = self.then(last, y)
        return last

    def loop_backwards(self, ys):
        return self.loop(ys[::-1])

    def untaken(self, y):
        return np.zeros_like(y[0]), np.zeros_like(y[1])

    def then(self, y, z):
        return np.where(z[1], z[0], y[0]), y[1] | z[1]

    def returned(self, ys):
        return {}


def named(f, ys):
    return {name: f([y[name] for y in ys]) for name in ys[0]}


def numbers(start, n):
    return np.float32(start) + np.arange(n, dtype="float32")


def vmap(n, read, plain, f):
    xs = numbers(1, n)
    return (
        lambda x, flag: named(read.lanes, [plain(x * each, flag) for each in xs]),
        lambda x, flag: hx.vmap(lambda each: f(x * each, flag))(hnp.asarray(xs)),
    )


def vmap_of_columns(n, read, plain, f):
    xs = numbers(0, n)
    return (
        lambda x, flag: named(read.lanes, [plain(x + each, flag) for each in xs]),
        lambda x, flag: hx.vmap(lambda pair: f(pair[0], flag), in_axes=1, axis_name="columns")(hnp.stack([x + xs, xs])),
    )


def scan(n, read, plain, f):
    step = lambda flag: lambda c, i: (c * 0.5, f(c + i, flag))
    return (
        lambda x, flag: named(read.loop, [plain(x * np.float32(0.5**i) + i, flag) for i in numbers(0, n)]),
        lambda x, flag: lax.scan(step(flag), x, hnp.asarray(numbers(0, n)))[1],
    )


def mapped(n, read, plain, f):
    return (
        lambda x, flag: named(read.loop, [plain(x - i, flag) for i in numbers(0, n)]),
        lambda x, flag: lax.map(lambda i: f(x - i, flag), hnp.asarray(numbers(0, n))),
    )


def scan_backwards(n, read, plain, f):
    """Its results stand in order of the slices, also in a log."""
    step = lambda flag: lambda c, i: (c, f(c + i, flag))
    return (
        lambda x, flag: named(read.loop_backwards, [plain(x + i, flag) for i in numbers(0, n)]),
        lambda x, flag: lax.scan(step(flag), x, hnp.asarray(numbers(0, n)), reverse=True)[1],
    )


def where(test):
    """A branch, of which the other one gives zeros."""

    def branch(n, read, plain, f):
        def other(x):
            return {name: hnp.zeros_like(y) for name, y in read.returned(plain(np.float32(1.0), 1.0)).items()}

        def plainly(x, flag):
            ys = plain(x, flag)
            return ys if test(x, flag, n) else {name: read.untaken(y) for name, y in ys.items()}

        return plainly, lambda x, flag: lax.cond(test(x, flag, n), lambda x: f(x, flag), other, x)

    return branch


def jit(n, read, plain, f):
    return plain, hx.jit(f)


def grad(n, read, plain, f):
    def total(x, flag):
        ys = f(x, flag)
        return sum([y.sum() for y in ys.values()], start=x), ys

    return plain, lambda x, flag: hx.value_and_grad(total, has_aux=True)(x, flag)[0][1]


def checkpoint(n, read, plain, f):
    return grad(n, read, plain, hx.checkpoint(f))


def counting(n, read, plain, f):
    """A handler in the nest, whose state is carried: of its effects lanes are executed in order."""
    return plain, lambda x, flag: hx.handle(COUNTER, 0)(f)(x, flag)[1]


def until(n, read, plain, f):
    """A loop of unknown length, as long in each lane as it says; nothing is returned from it."""

    def loop(x, flag):
        ys = [plain(x * np.float32(0.5**i), flag) for i in range(n) if i == 0 or x * 0.5**i > 0.5]
        nothing = {name: read.untaken(y) for name, y in plain(x, flag).items()}
        return named(read.loop, ys) if x > 0.5 else nothing

    def looped(x, flag):
        def step(carry):
            i, c = carry
            f(c, flag)
            return i + 1, c * 0.5

        lax.while_loop(lambda carry: (carry[0] < n) & (carry[1] > 0.5), step, (0, x))
        return {}

    return loop, looped


STACKING = (vmap, vmap_of_columns, scan, scan_backwards, mapped)
BRANCHES = (where(lambda x, flag, n: x * (-1) ** n > 1.5), where(lambda x, flag, n: flag * (-1) ** n > 0))
AROUND = (jit, grad, checkpoint, counting)
LANES = (vmap, vmap_of_columns)


def random_nest(seed, read, mark, depth, kinds=(STACKING, STACKING, STACKING, BRANCHES, AROUND), name="{level}"):
    """A nest of this depth in plain Python and with handlax; ``mark(name, x)`` performs effects, and gives ``x``.

    Every level marks a value under a name made of the number of its ``level``, and of the ``lanes`` around it.
    """
    draw = random.Random(seed)
    structures = [draw.choice(draw.choice(kinds)) for _ in range(depth)]
    plain, f = (lambda x, flag: {}), (lambda x, flag: {})
    for level in range(depth, -1, -1):
        lanes = sum([each in LANES for each in structures[:level]])
        plain, f = _marked(name.format(level=level, lanes=lanes), level, read, plain, f, mark)
        if level:
            plain, f = structures[level - 1](draw.choice([2, 3]), read, plain, f)
    return plain, f


def _marked(name, level, read, plain, f, mark):
    def own(x, flag):
        ys, y = plain(x, flag), read.one(x * np.float32(level + 1))
        return {**ys, name: read.then(y, ys[name]) if name in ys else y}

    def marked(x, flag):
        y = mark(name, x * np.float32(level + 1))
        return {**read.returned({name: y}), **f(x, flag)}

    return own, marked
