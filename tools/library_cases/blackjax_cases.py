"""Samplers of blackjax."""

import blackjax
import jax
import jax.numpy as jnp
import optax

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


def a_chain_after_adaptation():
    warmup = blackjax.window_adaptation(blackjax.nuts, _density, target_acceptance_rate=0.8)
    (state, parameters), _ = warmup.run(KEY, START, 100)
    kernel = jax.jit(blackjax.nuts(_density, **parameters).step)
    positions = []
    for key in jax.random.split(KEY, 50):
        state, _ = kernel(key, state)
        positions.append(state.position)
    spread = jnp.stack(positions).std(0)
    return parameters["step_size"] > 0.1, (spread > 0.3) & (spread < 4.0)


def variational_inference():
    vi = blackjax.meanfield_vi(_density, optax.sgd(1e-2), 4)
    state = vi.init(START)
    for key in jax.random.split(KEY, 5):
        state, _ = vi.step(key, state)
    return state.mu, state.rho
