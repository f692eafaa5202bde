"""Samplers of blackjax."""

import blackjax
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)
START = jnp.array([1.0, -1.0])


def _density(x):
    return -0.5 * jnp.sum((x / jnp.array([1.0, 2.0])) ** 2)


def _chain(kernel, steps=10):
    step = lambda state, key: (lambda s: (s, s.position))(kernel.step(key, state)[0])
    return jax.lax.scan(step, kernel.init(START), jax.random.split(KEY, steps))[1]


def hamiltonian_sampler():
    return _chain(blackjax.hmc(_density, 0.2, jnp.ones(2), 5))


def the_sampler_without_turns():
    return _chain(blackjax.nuts(_density, 0.3, jnp.ones(2)), 5)


def metropolis_samplers():
    return _chain(blackjax.mala(_density, 0.1)), _chain(blackjax.rmh(
        _density, blackjax.mcmc.random_walk.normal(jnp.ones(2) * 0.3)))


def adaptation():
    warmup = blackjax.window_adaptation(blackjax.nuts, _density)
    (state, parameters), _ = warmup.run(KEY, START, 20)
    return state.position.shape, parameters["inverse_mass_matrix"].shape


def elliptical_slices():
    sampler = blackjax.elliptical_slice(lambda x: -jnp.sum(x**4), mean=jnp.zeros(2), cov=jnp.eye(2))
    return _chain(sampler)
