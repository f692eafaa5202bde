"""Networks of dm-haiku."""

import haiku as hk
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)
X = jax.random.normal(jax.random.PRNGKey(1), (4, 6))


def a_network_and_its_gradient():
    network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 1])(x)))
    params = network.init(KEY, X)
    return jax.jit(jax.value_and_grad(lambda p: (network.apply(p, X) ** 2).mean()))(params)


def a_network_with_a_state():
    def f(x, training):
        x = hk.BatchNorm(True, True, 0.9)(hk.Linear(5)(x), training)
        return hk.dropout(hk.next_rng_key(), 0.5, x) if training else x

    network = hk.transform_with_state(f)
    params, state = network.init(KEY, X, True)
    return network.apply(params, state, KEY, X, True)


def a_convolutional_network():
    f = lambda x: hk.Sequential([hk.Conv2D(4, 3), jax.nn.relu, hk.MaxPool(2, 2, "SAME"), hk.Flatten(), hk.Linear(2)])(x)
    network = hk.transform(f)
    x = jax.random.normal(KEY, (2, 8, 8, 1))
    return network.apply(network.init(KEY, x), None, x)


def a_recurrent_network():
    def f(x):
        core = hk.LSTM(5)
        return hk.dynamic_unroll(core, x[:, None], core.initial_state(1))

    network = hk.transform(f)
    return network.apply(network.init(KEY, X), None, X)


def transformations_within():
    def f(x):
        layer = hk.Linear(6)
        y, _ = hk.scan(lambda c, x: (jnp.tanh(layer(c) + x), None), jnp.zeros(6), x)
        return y, hk.vmap(layer, split_rng=False)(x), hk.grad(lambda x: layer(x).sum())(x[0]), hk.remat(layer)(x)

    network = hk.transform(f)
    return network.apply(network.init(KEY, X), KEY, X)


def training_with_a_state():
    def f(x):
        return hk.Linear(1)(jax.nn.relu(hk.BatchNorm(True, True, 0.9)(hk.Linear(5)(x), True)))

    network = hk.transform_with_state(f)
    params, state = network.init(KEY, X)

    @jax.jit
    def step(params, state):
        loss = lambda p: (lambda y, s: ((y**2).mean(), s))(*network.apply(p, state, None, X))
        (value, state_after), slopes = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, d: p - 0.1 * d, params, slopes), state_after, value

    values = []
    for _ in range(3):
        params, state, value = step(params, state)
        values.append(value)
    return values, state, params


def stacked_recurrent_cores():
    def f(x):
        core = hk.DeepRNN([hk.GRU(4), jnp.tanh, hk.LSTM(3)])
        return hk.dynamic_unroll(core, x, core.initial_state(4))

    network = hk.transform(f)
    x = jax.random.normal(KEY, (5, 4, 6))
    return network.apply(network.init(KEY, x), None, x)


def attention_and_embeddings():
    def f(tokens):
        x = hk.Embed(10, 8)(tokens)
        x = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling(1.0))(x, x, x)
        return hk.LayerNorm(-1, True, True)(x)

    network = hk.transform(f)
    tokens = jnp.array([[1, 2, 3]])
    return network.apply(network.init(KEY, tokens), None, tokens)


def the_graph_of_a_network():
    network = hk.transform(lambda x: hk.Linear(3, name="first")(x) * 2.0)
    params = network.init(KEY, X)
    text = hk.to_dot(lambda p, x: network.apply(p, None, x))(params, X)
    abstract = hk.experimental.abstract_to_dot(lambda p, x: network.apply(p, None, x))(params, X)
    return [(word in text, word in abstract) for word in ("digraph", "first", "dot_general", "args[0]")]


def the_modules_of_a_network():
    f = lambda x: hk.nets.MLP([8, 1])(x)
    rows = hk.experimental.eval_summary(hk.transform(f))(X)
    return [row.module_details.module.module_name for row in rows]
