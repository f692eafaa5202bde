"""``python -m handlax.as_jax``: a program written for JAX, with a library as it would be written for JAX."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.new_process import in_new_process

# As optax: transformations of gradients as pairs of functions, states as named tuples, schedules, a global norm.
OPTIMISER = """
from typing import Any, Callable, NamedTuple
import jax
import jax.numpy as jnp
from jax import tree_util as jtu

class Transformation(NamedTuple):
    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], Any]

class Moments(NamedTuple):
    count: jax.Array
    mu: Any
    nu: Any

def global_norm(updates):
    return jnp.sqrt(sum(jnp.sum(x.real ** 2) for x in jax.tree.leaves(updates)))

def clip_by_global_norm(largest):
    def update(updates, state, params=None):
        norm = global_norm(updates)
        clip = lambda t: jax.lax.select(norm < largest, t, (t / norm.astype(t.dtype)) * largest)
        return jax.tree.map(clip, updates), state
    return Transformation(lambda params: (), update)

def adam(rate, b1=0.9, b2=0.999, eps=1e-8):
    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return Moments(jnp.zeros([], jnp.int32), zeros, zeros)
    def update(updates, state, params=None):
        mu = jtu.tree_map(lambda g, m: (1 - b1) * g + b1 * m, updates, state.mu)
        nu = jtu.tree_map(lambda g, v: (1 - b2) * g ** 2 + b2 * v, updates, state.nu)
        count = state.count + jnp.asarray(1, jnp.int32)
        hat = lambda t, b: jax.tree.map(lambda x: x / (1 - b ** count).astype(x.dtype), t)
        scaled = jax.tree.map(lambda m, v: -rate(count) * m / (jnp.sqrt(v) + eps), hat(mu, b1), hat(nu, b2))
        return scaled, Moments(count, mu, nu)
    return Transformation(init, update)

def chain(*parts):
    def update(updates, state, params=None):
        states = []
        for part, s in zip(parts, state):
            updates, s = part.update(updates, s, params)
            states.append(s)
        return updates, tuple(states)
    return Transformation(lambda params: tuple(part.init(params) for part in parts), update)

def cosine_decay(start, steps):
    return lambda count: start * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(count, steps) / steps))

def apply_updates(params, updates):
    return jax.tree.map(lambda p, u: jnp.asarray(p + u).astype(jnp.asarray(p).dtype), params, updates)
"""

TRAINING = """
import sys
import jax
import jax.numpy as jnp
import optimiser

def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.nn.initializers.lecun_normal()(k, shape), "b": jnp.zeros(shape[1])}
            for k, shape in zip(keys, zip(sizes, sizes[1:]))]

def model(layers, x):
    *hidden, last = layers
    for layer in hidden:
        x = jax.nn.tanh(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]

def loss(layers, x, y):
    return jnp.mean((jax.vmap(model, in_axes=(None, 0))(layers, x) - y) ** 2)

optimum = optimiser.chain(optimiser.clip_by_global_norm(1.0), optimiser.adam(optimiser.cosine_decay(1e-2, 60)))
layers = init(jax.random.key(0), [2, 16, 1])
x = jax.random.normal(jax.random.key(1), (32, 2))
y = jnp.sin(x[:, :1]) * x[:, 1:]

@jax.jit
def step(layers, state):
    value, slopes = jax.value_and_grad(loss)(layers, x, y)
    updates, state = optimum.update(slopes, state, layers)
    return optimiser.apply_updates(layers, updates), state, value

state = optimum.init(layers)
values = []
for _ in range(60):
    layers, state, value = step(layers, state)
    values.append(float(value))
print(__name__, *sys.argv[1:])
print(values[0], values[-1], jnp.arange(3.0).dtype, jnp.float64(1).dtype, jax.__version__)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "optimiser.py").write_text(OPTIMISER)
    script = tmp_path / "training.py"
    script.write_text(TRAINING)
    return script


def run(*arguments, **options):
    """What ``python -m handlax.as_jax`` with these arguments prints, line by line."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_training(lines):
    first, last, *types = lines[1].split()
    np.testing.assert_allclose([float(first), float(last)], [0.72171527, 0.10837536], rtol=1e-4)
    assert types == ["float32", "float32", "0.12.0"]


def test_a_script_for_jax_with_a_library_trains(program):
    lines = run("-m", "handlax.as_jax", str(program), "--steps", "60")
    assert lines[0] == "__main__ --steps 60"
    check_training(lines)


def test_a_module_is_run_under_its_name(program):
    lines = run("-m", "handlax.as_jax", "-m", "training", "-x", cwd=program.parent)
    assert lines[0] == "__main__ -x"
    check_training(lines)


@pytest.mark.peer
def test_training_has_the_values_of_jax(program):
    ours, theirs = run("-m", "handlax.as_jax", str(program)), run(str(program))
    values = [[float(word) for word in lines[1].split()[:2]] for lines in (ours, theirs)]
    np.testing.assert_allclose(*values, rtol=1e-5)


def test_handlax_itself_loads_nothing_of_it():
    code = "import sys, handlax; print([name for name in sys.modules if name.startswith('handlax.as_jax')])"
    assert in_new_process(code) == "[]"
