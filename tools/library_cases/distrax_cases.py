"""Distributions and bijectors of distrax."""

import distrax
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)


def normal_distributions():
    d = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.array([1.0, 2.0]))
    return d.sample(seed=KEY, sample_shape=3), d.log_prob(jnp.ones(2)), d.entropy(), distrax.Normal(0.0, 1.0).cdf(0.3)


def divergences():
    return distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 2.0)), distrax.Categorical(
        logits=jnp.arange(3.0)).kl_divergence(distrax.Categorical(probs=jnp.ones(3) / 3))


def mixtures():
    weights = distrax.Categorical(probs=jnp.array([0.3, 0.7]))
    d = distrax.MixtureSameFamily(weights, distrax.Normal(jnp.arange(2.0), 1.0))
    return d.sample(seed=KEY, sample_shape=4), d.log_prob(0.5), jax.grad(d.log_prob)(0.5)


def transformed_distributions():
    d = distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(1.0, 0.5)]))
    return d.sample_and_log_prob(seed=KEY, sample_shape=3), d.log_prob(0.3)


def inverse_of_a_function():
    bijector = distrax.Lambda(lambda x: jnp.exp(2 * x + 1))
    return bijector.inverse(3.0), bijector.forward_log_det_jacobian(0.5)


def a_flow():
    bijector = distrax.Inverse(distrax.RationalQuadraticSpline(jnp.arange(13.0) / 7, 0.0, 1.0))
    return bijector.forward_and_log_det(jnp.array([0.2, 0.5]))


def a_markov_chain():
    model = distrax.HMM(
        distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])), distrax.Normal(jnp.array([0.0, 3.0]), 1.0))
    return model.forward(jnp.array([0.1, 2.9, 3.1, -0.2])), model.viterbi(jnp.array([0.1, 2.9, 3.1, -0.2]))


def bijectors():
    x = jnp.array([0.3, -0.2])
    kinds = (
        distrax.Block(distrax.Sigmoid(), 1), distrax.Block(distrax.ScalarAffine(1.0, 0.5), 1),
        distrax.LowerUpperTriangularAffine(jnp.eye(2) * 2 + 0.3, jnp.ones(2)))
    return [(b.forward_and_log_det(x), b.inverse_and_log_det(b.forward(x))) for b in kinds]


def a_coupling_flow():
    def layer(mask):
        return distrax.MaskedCoupling(
            mask, lambda x: jnp.stack([jnp.tanh(x), 0.1 * x]), lambda p: distrax.ScalarAffine(p[0], log_scale=p[1]))

    flow = distrax.Inverse(distrax.Chain([layer(jnp.array([True, False])), layer(jnp.array([False, True]))]))
    d = distrax.Transformed(distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)), flow)
    value, slope = jax.jit(jax.value_and_grad(lambda x: d.log_prob(x)))(jnp.array([0.5, -0.3]))
    return value, slope, d.sample_and_log_prob(seed=KEY, sample_shape=2)


def functions_as_bijectors():
    constant = distrax.Lambda(lambda x: 3.0 * x + 1.0)
    return constant.is_constant_jacobian, distrax.Lambda(jnp.tanh).is_constant_jacobian, constant.inverse(
        2.0), jax.vmap(distrax.Lambda(lambda x: jnp.sinh(x) / 2).inverse)(jnp.arange(3.0))


def further_distributions():
    kinds = (distrax.Gamma(2.0, 1.0), distrax.Beta(2.0, 3.0), distrax.Logistic(0.0, 1.0), distrax.Laplace(0.0, 1.0),
             distrax.Bernoulli(logits=0.3), distrax.Uniform(0.0, 2.0), distrax.VonMises(0.0, 1.0),
             distrax.Dirichlet(jnp.array([1.0, 2.0, 3.0])), distrax.MultivariateNormalFullCovariance(
                 jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]])), distrax.Gumbel(0.0, 1.0))
    return [(d.sample(seed=KEY), d.log_prob(d.sample(seed=KEY)), d.mean()) for d in kinds]
