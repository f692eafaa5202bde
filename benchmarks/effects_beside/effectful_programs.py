"""The programs in effectful: operations and handlers of Python.

What takes the rest of a program is written by executing the program
again with the answers that it had, as effectful's own search does.
"""

from __future__ import annotations

import importlib.metadata

import effectful.handlers.jax.numpy as ejnp
import jax
import jax.numpy as jnp
from effectful.ops.semantics import fwd, handler
from effectful.ops.syntax import ObjectInterpretation, defop, implements
from jax import lax, random

VERSION = f"{importlib.metadata.version('effectful')} on JAX {jax.__version__}"
NOTES = {
    "counter": "the loop's body is traced once",
    "early_exit": "by an exception of Python's, in a loop of Python's",
    "enumeration": "by executing the program again",
    "draws": "the loop's body is traced once, with one draw",
    "array_primitive": "of its own `jax.numpy`, while the function is traced",
    "two_handlers": "the function is compiled for the first one",
    "generator": "collected by the handler, not read one by one",
}
WITHOUT = {
    "scheduler": "no clause takes the rest of a program; Python's async does",
}


@defop
def tick() -> None:
    pass


@defop
def setting() -> float:
    return 1.0


@defop
def leave(x: float) -> None:
    pass


@defop
def flip() -> bool:
    return False


@defop
def log(name: str, x: jax.Array) -> None:
    pass


@defop
def sample(mean: jax.Array) -> jax.Array:
    return mean


@defop
def emit(value: int) -> None:
    pass


class Counter(ObjectInterpretation):
    def __init__(self):
        self.count = 0

    @implements(tick)
    def _(self):
        self.count += 1


def counter():
    def loop(x):
        return lax.fori_loop(0, 5, lambda i, x: (tick(), 2 * x)[1], x)

    counting = Counter()
    with handler(counting):
        y = jax.jit(loop)(1.0)
    return [counting.count, float(y)]


class Left(Exception):
    pass


def early_exit():
    def loop(x):
        for _ in range(10):
            if x > 20:
                leave(x)
            x = 2 * x
        return x

    def leaving(x):
        raise Left(-x)

    try:
        with handler({leave: leaving}):
            return loop(1.0)
    except Left as left:
        return left.args[0]


class NeedsMore(Exception):
    pass


def enumeration():
    def walk():
        return sum([2.0 if flip() else -1.0 for _ in range(3)]) ** 2

    def worlds(program, answers=()):
        given = iter(answers)

        def answered():
            try:
                return next(given)
            except StopIteration:
                raise NeedsMore from None

        try:
            with handler({flip: answered}):
                return [program()]
        except NeedsMore:
            return worlds(program, (*answers, True)) + worlds(program, (*answers, False))

    return sorted(worlds(walk))


def walk(x):
    def step(x, _):
        x = sample(x)
        return x, x

    return lax.scan(step, x, None, length=3)[1]


class Seed(ObjectInterpretation):
    def __init__(self, key):
        self.key = key

    @implements(sample)
    def _(self, mean):
        self.key, key = random.split(self.key)
        return mean + random.normal(key)


class Density(ObjectInterpretation):
    def __init__(self, values):
        self.values = iter(values)
        self.total = 0.0

    @implements(sample)
    def _(self, mean):
        x = next(self.values)
        self.total += jax.scipy.stats.norm.logpdf(x, mean)
        return x


def draws():
    with handler(Seed(random.key(0))):
        steps = jnp.diff(jax.jit(lambda x: walk(x))(0.0), prepend=0.0)
    return len({round(step, 4) for step in steps.tolist()})


def density():
    scoring = Density([1.0, 1.0, 2.0])
    with handler(scoring):
        jax.jit(lambda x: walk(x))(0.0)
    return round(float(scoring.total), 3)


def density_inside():
    @jax.jit
    def scored(xs):
        scoring = Density(xs)
        with handler(scoring):
            walk(0.0)
        return scoring.total

    return round(float(scored(jnp.array([1.0, 1.0, 2.0]))), 3)


def logged_in_grad():
    def loss(x):
        y = x * x
        log("y", y)
        return y * x

    seen = {}
    with handler({log: lambda name, x: seen.update({name: x})}):
        slope = jax.jit(jax.grad(loss))(2.0)
    return [float(seen["y"]), float(slope)]


def array_primitive():
    f = lambda x: lax.fori_loop(0, 2, lambda i, x: ejnp.sin(x), x)
    with handler({ejnp.sin: lambda x: 2 * fwd()}):
        y = jax.vmap(jax.jit(f))(jnp.array([0.5, 1.0]))
    return [round(value, 3) for value in y.tolist()]


def two_handlers():
    f, found = jax.jit(lambda x: x * setting()), []
    for by in (2.0, 3.0):
        with handler({setting: lambda by=by: by}):
            found.append(float(f(1.0)))
    return found


def generator():
    def visit(tree):
        if tree is not None:
            left, value, right = tree
            visit(left)
            emit(value)
            visit(right)

    values = []
    with handler({emit: values.append}):
        visit(((None, 1, None), 2, (None, 3, None)))
    return values
