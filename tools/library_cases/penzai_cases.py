"""Models and named axes of penzai."""

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp
from penzai.models.transformer.variants import llamalike_common

KEY = jax.random.key(0)
X = pz.nx.wrap(jax.random.normal(jax.random.key(1), (5, 3))).tag("batch", "features")


def _mlp():
    return simple_mlp.MLP.from_config(name="mlp", init_base_rng=KEY, feature_sizes=[3, 4, 2])


def named_axes():
    y = pz.nx.nmap(jnp.sin)(X) + pz.nx.wrap(jnp.arange(3.0)).tag("features")
    total = y.untag("batch").sum().unwrap("features")
    best = X.untag("features").argmax().unwrap("batch")
    return total, best, X.order_as("features", "batch").unwrap("features", "batch")


def a_network_and_its_gradient():
    model, parameters = pz.unbind_params(_mlp())
    frozen = [p.freeze() for p in parameters]

    @jax.jit
    def loss(values):
        y = pz.bind_variables(model, values)(X)
        return jnp.mean(y.unwrap("batch", "features") ** 2)

    return jax.value_and_grad(loss)(frozen)


def a_selection_is_changed():
    model = _mlp()
    doubled = pz.select(model).at_instances_of(pz.nn.AddBias).remove_from_parent()
    return doubled(X).unwrap("batch", "features"), pz.select(model).at_instances_of(pz.nn.Linear).count()


def a_transformer():
    config = llamalike_common.LlamalikeTransformerConfig(
        num_kv_heads=1, query_head_multiplier=2, embedding_dim=8, projection_dim=4, mlp_hidden_dim=16,
        num_decoder_blocks=2, vocab_size=11, mlp_variant="swiglu", tie_embedder_and_logits=True,
        parameter_dtype=jnp.float32, rope_wavelength=100.0, rms_norm_eps=1e-6, activation_dtype=jnp.float32)
    model = llamalike_common.build_llamalike_transformer(config, init_base_rng=KEY)
    tokens = pz.nx.wrap(jnp.array([[1, 2, 3, 4]])).tag("batch", "seq")
    positions = pz.nx.wrap(jnp.arange(4)).tag("seq")
    return model(tokens, token_positions=positions).unwrap("batch", "seq", "vocabulary")


def a_state_of_a_model():
    counter = pz.StateVariable(value=jnp.int32(0), label="counter")
    counter.value += 2
    return counter.value
