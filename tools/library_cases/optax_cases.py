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
