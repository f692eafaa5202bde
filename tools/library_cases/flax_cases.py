"""Modules of flax.linen."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx, serialization, struct, traverse_util
from flax.training import train_state

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


class Classifier(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(6, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)
        self.norm, self.dropout = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


def training_with_nnx():
    model = Classifier(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        loss, slopes = nnx.value_and_grad(lambda model: ((model(x) - 1) ** 2).mean())(model)
        optimizer.update(model, slopes)
        return loss

    losses = [step(model, optimizer, X) for _ in range(5)]
    model.eval()
    return losses, model(X), model.norm.mean[...]


def parts_of_an_nnx_model():
    model = Classifier(nnx.Rngs(1))
    graph, parameters, others = nnx.split(model, nnx.Param, ...)
    doubled = nnx.merge(graph, jax.tree.map(lambda x: 2 * x, parameters), others)
    doubled.eval()
    return nnx.to_pure_dict(nnx.state(doubled, nnx.Param)), jax.jit(lambda p: nnx.merge(graph, p, others).first(X))(
        parameters)


def lifted_transformations_of_nnx():
    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=0, out_axes=0)
    def layers(rngs):
        return nnx.Linear(6, 6, rngs=rngs)

    stack = layers(nnx.Rngs(2))

    @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
    def run(layer, x):
        return nnx.tanh(layer(x))

    return run(stack, X), nnx.remat(lambda m, x: m(x))(nnx.Linear(6, 2, rngs=nnx.Rngs(3)), X)


def an_nnx_recurrent_network():
    return nnx.RNN(nnx.LSTMCell(6, 5, rngs=nnx.Rngs(0)))(X[None])


def a_training_state():
    model = nn.Dense(2)
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(KEY, X)["params"], tx=optax.adam(0.1))

    @jax.jit
    def step(state):
        slopes = jax.grad(lambda p: (state.apply_fn({"params": p}, X) ** 2).mean())(state.params)
        return state.apply_gradients(grads=slopes)

    return step(step(state))


def recurrent_layers():
    lengths = jnp.array([2, 4, 3])
    x = jax.random.normal(KEY, (3, 4, 6))
    both = nn.Bidirectional(nn.RNN(nn.GRUCell(3)), nn.RNN(nn.GRUCell(3)))
    return both.init_with_output(KEY, x), nn.RNN(nn.OptimizedLSTMCell(3), return_carry=True).init_with_output(
        KEY, x, seq_lengths=lengths)
