"""Modules of flax.linen."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import serialization, struct, traverse_util

KEY = jax.random.key(0)
X = jax.random.normal(jax.random.key(1), (4, 6))


class Network(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, training=False):
        x = nn.Dense(self.width)(x)
        x = nn.BatchNorm(use_running_average=not training)(x)
        x = nn.Dropout(0.5, deterministic=not training)(nn.relu(x))
        return nn.Dense(1)(nn.LayerNorm()(x))


def a_network_and_its_gradient():
    model = Network(8)
    variables = model.init(KEY, X)

    @jax.jit
    def loss(params):
        y, changed = model.apply(
            {"params": params, "batch_stats": variables["batch_stats"]}, X, training=True, mutable=["batch_stats"],
            rngs={"dropout": jax.random.key(2)})
        return jnp.mean(y**2), changed

    return model.apply(variables, X), jax.value_and_grad(loss, has_aux=True)(variables["params"])


def a_convolutional_network():
    model = nn.Sequential([nn.Conv(4, (3, 3)), nn.relu, lambda x: nn.max_pool(x, (2, 2), (2, 2)), nn.GroupNorm(2)])
    x = jax.random.normal(KEY, (2, 8, 8, 3))
    return model.init_with_output(KEY, x)


def attention_and_embeddings():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(10, 8)(tokens)
            x = x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x), mask=nn.make_causal_mask(tokens))
            return nn.DenseGeneral((2, 4))(nn.RMSNorm()(x))

    return Block().init_with_output(KEY, jnp.array([[1, 2, 3, 4]]))


def a_recurrent_network():
    return nn.RNN(nn.LSTMCell(5)).init_with_output(KEY, X[None])


def lifted_transformations():
    class Step(nn.Module):
        @nn.compact
        def __call__(self, carry, x):
            return nn.tanh(nn.Dense(6)(carry) + x), carry

    scanned = nn.scan(Step, variable_broadcast="params", split_rngs={"params": False})
    mapped = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)
    saved = nn.remat(nn.Dense)(3)
    return (
        scanned().init_with_output(KEY, jnp.zeros(6), X), mapped(3).init_with_output(KEY, X),
        saved.init_with_output(KEY, X), nn.jit(nn.Dense)(2).init_with_output(KEY, X),
    )


def stored_values():
    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            self.sow("intermediates", "norm", jnp.linalg.norm(x))
            return nn.Dense(2)(x)

    model = Layer()
    return model.apply(model.init(KEY, X), X, mutable=["intermediates"])


def a_dataclass_and_its_state():
    @struct.dataclass
    class State:
        step: int
        x: jax.Array

    state = jax.jit(lambda s: s.replace(step=s.step + 1, x=s.x * 2))(State(0, X))
    stored = serialization.to_state_dict(state)
    flat = traverse_util.flatten_dict({"a": {"b": X[0]}}, sep="/")
    return state.step, serialization.from_state_dict(state, stored).x, flat["a/b"], serialization.to_bytes(X[0])[:4]
