"""Modules and filtered transformations of equinox."""

import tempfile

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

KEY = jax.random.key(0)
X = jax.random.normal(jax.random.key(1), (8, 3))


def a_network_and_its_gradient():
    model = eqx.nn.MLP(3, 1, 16, 2, activation=jax.nn.softplus, key=KEY)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model, x):
        return jnp.mean((jax.vmap(model)(x) - x.sum(1, keepdims=True)) ** 2)

    value, slopes = loss(model, X)
    return value, eqx.filter(slopes, eqx.is_array), eqx.apply_updates(model, slopes)(X[0])


def a_convolutional_network_with_a_state():
    class Network(eqx.Module):
        convolution: eqx.nn.Conv2d
        norm: eqx.nn.BatchNorm
        pool: eqx.nn.MaxPool2d

        def __init__(self, key):
            self.convolution = eqx.nn.Conv2d(1, 4, 3, key=key)
            self.norm = eqx.nn.BatchNorm(4, axis_name="batch", mode="batch")
            self.pool = eqx.nn.MaxPool2d(2, 2)

        def __call__(self, x, state):
            x, state = self.norm(self.convolution(x), state)
            return self.pool(jax.nn.relu(x)), state

    network, state = eqx.nn.make_with_state(Network)(KEY)
    x = jax.random.normal(KEY, (4, 1, 8, 8))
    y, state = jax.vmap(network, in_axes=(0, None), out_axes=(0, None), axis_name="batch")(x, state)
    return y


def attention_and_normalisation():
    attention = eqx.nn.MultiheadAttention(2, 4, key=KEY)
    x = jax.random.normal(KEY, (5, 4))
    y = attention(x, x, x, mask=jnp.tril(jnp.ones((5, 5), bool)))
    return jax.vmap(eqx.nn.LayerNorm(4))(y), jax.vmap(eqx.nn.RMSNorm(4))(y), eqx.nn.RotaryPositionalEmbedding(4)(x)


def a_recurrent_network():
    cell = eqx.nn.GRUCell(3, 5, key=KEY)
    last = lambda cell, x: jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(5), x)[0].sum()
    return eqx.filter_value_and_grad(last)(cell, X)


def dropout_and_inference_mode():
    layer = eqx.nn.Dropout(0.5)
    return layer(X, key=KEY), eqx.nn.inference_mode(layer)(X)


def filtered_transformations():
    f = lambda x, flag: x**2 if flag else x
    return (
        eqx.filter_jit(f)(2.0, True), eqx.filter_vmap(f, in_axes=(0, None))(X, True), eqx.filter_grad(f)(3.0, True),
        eqx.filter_jacrev(lambda x: x**3)(X[0]), eqx.filter_hessian(lambda x: (x**3).sum())(X[0]),
        eqx.filter_eval_shape(f, X, True).shape, eqx.filter_checkpoint(f)(X, True),
    )


def a_custom_gradient():
    @eqx.filter_custom_vjp
    def clipped(x):
        return x

    @clipped.def_fwd
    def forward(perturbed, x):
        return x, None

    @clipped.def_bwd
    def backward(residuals, ct, perturbed, x):
        return jnp.clip(ct, -1, 1)

    return jax.grad(lambda x: (5 * clipped(x) ** 1).sum())(X[0])


def a_loop_with_checkpoints():
    def run(x):
        step = lambda carry: (carry[0] + 1, jnp.sin(carry[1]) * 1.5)
        _, y = eqx.internal.while_loop(
            lambda carry: carry[0] < 7, step, (0, x), kind="checkpointed", max_steps=16, checkpoints=4)
        return y.sum()

    return jax.value_and_grad(run)(X[0])


def an_error_that_is_raised_by_a_value():
    @eqx.filter_jit
    def root(x):
        return jnp.sqrt(eqx.error_if(x, x < 0, "negative"))

    found = [root(jnp.array(4.0))]
    try:
        root(jnp.array(-4.0)).block_until_ready()
    except Exception as error:
        found.append(-1.0 if "negative" in str(error) else 0.0)
    return found


def changed_and_saved():
    model = eqx.nn.Linear(3, 2, key=KEY)
    model = eqx.tree_at(lambda m: m.weight, model, model.weight * 2)
    arrays, static = eqx.partition(model, eqx.is_array)
    return eqx.combine(arrays, static)(X[0]), eqx.tree_equal(model, model)


def a_directional_derivative():
    model = eqx.nn.MLP(3, 2, 4, 1, key=KEY)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    f = lambda arrays, x: (eqx.combine(arrays, static)(x), "kept", x.shape)
    out, slopes = eqx.filter_jvp(f, (arrays, X[0]), (jax.tree.map(jnp.ones_like, arrays), X[1]))
    return out[0], slopes[0], out[2]


def a_training_loop():
    model = eqx.nn.MLP(3, 1, 8, 1, key=KEY)
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit
    def step(model, state, x):
        loss = lambda model: ((jax.vmap(model)(x)[:, 0] - x.sum(1)) ** 2).mean()
        value, slopes = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(slopes, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    state, losses = optimizer.init(eqx.filter(model, eqx.is_array)), []
    for _ in range(10):
        model, state, value = step(model, state, X)
        losses.append(value)
    return losses, eqx.filter(model, eqx.is_array)


def leaves_in_a_file():
    model = eqx.nn.GRUCell(3, 4, key=KEY)
    with tempfile.TemporaryFile() as file:
        eqx.tree_serialise_leaves(file, model)
        file.seek(0)
        stored = eqx.tree_deserialise_leaves(file, eqx.filter_eval_shape(eqx.nn.GRUCell, 3, 4, key=KEY))
    return stored(X[0], jnp.zeros(4)), eqx.tree_equal(stored, model)


def a_state_that_counts():
    class Counter(eqx.Module):
        index: eqx.nn.StateIndex = eqx.field(default_factory=lambda: eqx.nn.StateIndex(jnp.array(0)))

        def __call__(self, x, state):
            return x * state.get(self.index), state.set(self.index, state.get(self.index) + 1)

    counter, state = eqx.nn.make_with_state(Counter)()
    counted = eqx.filter_jit(counter)
    first, state = counted(X[0], state)
    second, state = counted(X[0], state)
    return first, second, state.get(counter.index)


def models_in_an_ensemble():
    models = eqx.filter_vmap(lambda key: eqx.nn.MLP(3, 2, 4, 1, key=key))(jax.random.split(KEY, 3))
    return eqx.filter_vmap(lambda model, x: model(x), in_axes=(eqx.if_array(0), None))(models, X[0])
