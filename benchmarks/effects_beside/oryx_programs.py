"""The programs in oryx: ``make_effect_handler`` for primitives, ``sow`` and ``reap`` for values, its ``ppl``."""

from __future__ import annotations

import importlib.metadata

import jax
import jax.numpy as jnp
from jax import lax, random
from oryx.core import ppl
from oryx.core.interpreters.harvest import call_and_reap, plant, sow
from oryx.core.ppl.effect_handler import make_effect_handler
from oryx.distributions import Normal

VERSION = f"{importlib.metadata.version('oryx')} on JAX {jax.__version__}"
NOTES = {
    "counter": "primitives in loops are not seen",
    "array_primitive": "primitives in loops are not seen",
    "draws": "keys are passed by hand",
    "density": "without the loop it gives -3.757",
    "density_inside": "without the loop it gives -3.757",
}
WITHOUT = {
    "early_exit": "no clause ends a program",
    "enumeration": "no clause takes the rest of a program",
    "generator": "no clause takes the rest of a program",
    "scheduler": "no clause takes the rest of a program",
}


def counter():
    def loop(x):
        return lax.fori_loop(0, 5, lambda i, x: 2 * x, x)

    counting = make_effect_handler({lax.mul_p: lambda n, x, y: (x * y, n + 1)})
    y, n = counting(jax.jit(loop))(0, 1.0)
    return [int(n), float(y)]


def walk(key):
    def step(x, key):
        x = ppl.random_variable(Normal(x, 1.0), name="x")(key)
        return x, x

    return lax.scan(step, 0.0, random.split(key, 3))[1]


def draws():
    steps = jnp.diff(jax.jit(walk)(random.key(0)), prepend=0.0)
    return len({round(step, 4) for step in steps.tolist()})


def density():
    return round(float(ppl.joint_log_prob(jax.jit(walk))({"x": jnp.array([1.0, 1.0, 2.0])})), 3)


def density_inside():
    return round(float(jax.jit(ppl.joint_log_prob(walk))({"x": jnp.array([1.0, 1.0, 2.0])})), 3)


def logged_in_grad():
    def loss(x):
        y = sow(x * x, name="y", tag="log")
        return y * x

    slope, seen = call_and_reap(jax.jit(jax.grad(loss)), tag="log")(2.0)
    return [float(seen["y"]), float(slope)]


def array_primitive():
    twice = make_effect_handler({lax.sin_p: lambda s, x, **params: (2 * lax.sin_p.bind(x, **params), s)})
    f = lambda x: lax.fori_loop(0, 2, lambda i, x: jnp.sin(x), x)
    y, _ = twice(jax.vmap(jax.jit(f)))(None, jnp.array([0.5, 1.0]))
    return [round(value, 3) for value in y.tolist()]


def two_handlers():
    f = jax.jit(lambda x: x * sow(1.0, name="setting", tag="settings"))
    return [float(plant(f, tag="settings")({"setting": by}, 1.0)) for by in (2.0, 3.0)]
