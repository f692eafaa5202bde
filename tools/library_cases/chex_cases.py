"""Dataclasses, assertions and variants of chex."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    count: chex.Array
    mean: chex.Array


def a_dataclass_through_scan():
    def step(state, x):
        count = state.count + 1
        return state.replace(count=count, mean=state.mean + (x - state.mean) / count), state.mean

    state, means = jax.lax.scan(step, State(count=jnp.array(0), mean=jnp.array(0.0)), jnp.arange(6.0) ** 2)
    return state.count, state.mean, means


def assertions():
    x = jnp.ones((3, 2))
    chex.assert_shape(x, (3, None))
    chex.assert_rank([x, x[0]], [2, 1])
    chex.assert_type(x, float)
    chex.assert_trees_all_close({"a": x}, {"a": x + 1e-9})
    chex.assert_tree_all_finite({"a": x})
    chex.assert_scalar_positive(1.0)
    refused = []
    for wrong in (lambda: chex.assert_shape(x, (2, 3)), lambda: chex.assert_type(x, int)):
        try:
            wrong()
        except AssertionError:
            refused.append(True)
    return refused


def traced_once():
    chex.clear_trace_counter()
    f = jax.jit(chex.assert_max_traces(lambda x: x * 2, n=1))
    return f(jnp.ones(2)), f(jnp.zeros(2))


def checks_of_values_in_a_compiled_function():
    @chex.chexify
    @jax.jit
    def root(x):
        chex.assert_trees_all_close(x, jnp.abs(x))
        return jnp.sqrt(x)

    found = [root(jnp.array(4.0))]
    chex.block_until_chexify_assertions_complete()
    try:
        root(jnp.array(-4.0))
        chex.block_until_chexify_assertions_complete()
    except AssertionError:
        found.append(-1.0)
    return found


def without_jit():
    seen = []
    with chex.fake_jit():
        jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)) or x)(1.0)
    return seen
