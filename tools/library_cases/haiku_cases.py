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
