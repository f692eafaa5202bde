"""Optimisers and losses of optax."""

import jax
import jax.numpy as jnp
import optax

INPUTS = jax.random.normal(jax.random.key(1), (32, 2))
TARGETS = jnp.sin(INPUTS[:, :1]) * INPUTS[:, 1:]


def layers(key):
    sizes = [(2, 16), (16, 1)]
    return [
        {"w": jax.random.normal(k, shape) / shape[0] ** 0.5, "b": jnp.zeros(shape[1])}
        for k, shape in zip(jax.random.split(key), sizes)
    ]


def _loss(params, x, y):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean(optax.l2_loss(x @ params[-1]["w"] + params[-1]["b"], y))


def _train(optimiser, steps=30):
    """The losses of training, and the parameters at the end."""
    params = layers(jax.random.key(0))

    @jax.jit
    def step(params, state):
        value, slopes = jax.value_and_grad(_loss)(params, INPUTS, TARGETS)
        updates, state = optimiser.update(slopes, state, params)
        return optax.apply_updates(params, updates), state, value

    state, values = optimiser.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        values.append(value)
    return values, params


def sgd_with_momentum():
    return _train(optax.sgd(optax.exponential_decay(0.1, 10, 0.5), momentum=0.9, nesterov=True))


def adamw_with_clipping_and_a_schedule():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 30)
    return _train(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-2)))


def lion():
    return _train(optax.lion(1e-3))


def adafactor():
    return _train(optax.adafactor(1e-2))


def lamb_in_several_steps():
    return _train(optax.MultiSteps(optax.lamb(1e-2), every_k_schedule=3))


def groups_with_different_rules():
    labels = [{"w": "matrix", "b": "vector"}] * 2
    return _train(optax.multi_transform({"matrix": optax.adam(1e-2), "vector": optax.sgd(1e-1)}, labels))


def lbfgs_with_line_search():
    rosenbrock = lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    optimiser = optax.lbfgs()
    value_and_slope = optax.value_and_grad_from_state(rosenbrock)

    def step(carry, _):
        x, state = carry
        value, slope = value_and_slope(x, state=state)
        updates, state = optimiser.update(slope, state, x, value=value, grad=slope, value_fn=rosenbrock)
        return (optax.apply_updates(x, updates), state), value

    start = jnp.array([-1.2, 1.0])
    (x, _), values = jax.lax.scan(step, (start, optimiser.init(start)), length=25)
    return x, values[:10]


def losses():
    logits, labels = jax.random.normal(jax.random.key(2), (8, 5)), jnp.arange(8) % 5
    return (
        optax.softmax_cross_entropy_with_integer_labels(logits, labels),
        optax.sigmoid_binary_cross_entropy(logits, jax.nn.one_hot(labels, 5)),
        optax.huber_loss(logits[:, 0], logits[:, 1]),
        optax.cosine_similarity(logits, logits[::-1]),
        optax.ctc_loss(logits[None], jnp.zeros((1, 8)), jnp.array([[1, 2, 3]]), jnp.zeros((1, 3))),
    )


def schedules():
    steps = jnp.arange(0, 60, 7)
    kinds = (
        optax.cosine_decay_schedule(1.0, 50), optax.linear_onecycle_schedule(50, 1.0), optax.polynomial_schedule(
            1.0, 0.1, 2, 40), optax.piecewise_constant_schedule(1.0, {10: 0.5, 30: 0.1}), optax.sgdr_schedule(
            [{"init_value": 0.0, "peak_value": 1.0, "decay_steps": 20, "warmup_steps": 5, "end_value": 0.1}] * 2),
        optax.join_schedules([optax.linear_schedule(0.0, 1.0, 10), optax.exponential_decay(1.0, 10, 0.5)], [10]))
    return [[kind(step) for step in steps] for kind in kinds], jax.jit(jax.vmap(kinds[0]))(steps)


def chains_of_transformations():
    chain = optax.chain(
        optax.zero_nans(), optax.add_noise(0.01, 0.5, 0), optax.scale_by_adam(), optax.add_decayed_weights(1e-3),
        optax.masked(optax.scale(0.5), lambda params: jax.tree.map(lambda p: p.ndim > 1, params)),
        optax.scale_by_schedule(lambda count: -0.01 / (1 + count)))
    return _train(optax.apply_if_finite(chain, 3)), _train(optax.inject_hyperparams(optax.rmsprop)(learning_rate=0.01))


def averages_and_lookahead():
    average = optax.ema(0.9)
    state = average.init(jnp.zeros(2))
    values = []
    for i in range(4):
        value, state = average.update(jnp.array([i, 1.0]), state)
        values.append(value)
    params = optax.LookaheadParams.init_synced({"w": jnp.ones(2)})
    slow = optax.lookahead(optax.sgd(0.1), 2, 0.5)
    updates, _ = slow.update({"w": jnp.ones(2)}, slow.init(params), params)
    return values, optax.apply_updates(params, updates), optax.tree.norm(params)


def further_optimisers():
    kinds = (optax.adagrad(0.1), optax.adadelta(0.5), optax.nadam(0.01), optax.radam(0.01), optax.yogi(0.01),
             optax.lars(0.1), optax.amsgrad(0.01), optax.contrib.prodigy(0.1), optax.contrib.muon(0.01))
    return [_train(kind, 8)[0] for kind in kinds]
