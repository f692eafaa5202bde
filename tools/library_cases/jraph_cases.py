"""Graph networks of jraph."""

import jax
import jax.numpy as jnp
import jraph

GRAPH = jraph.GraphsTuple(
    nodes=jnp.arange(8.0).reshape(4, 2), edges=jnp.ones((5, 1)), senders=jnp.array([0, 1, 2, 3, 0]),
    receivers=jnp.array([1, 2, 3, 0, 2]), n_node=jnp.array([4]), n_edge=jnp.array([5]), globals=jnp.zeros((1, 1)),
)


def a_graph_network():
    network = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: e + s.sum(1, keepdims=True) - r.sum(1, keepdims=True),
        update_node_fn=lambda n, s, r, g: n + r, update_global_fn=lambda n, e, g: g + n.sum() + e.sum())
    return jax.jit(network)(GRAPH)


def a_convolution():
    return jraph.GraphConvolution(lambda n: n @ jnp.ones((2, 3)), add_self_edges=True)(GRAPH).nodes


def attention():
    network = jraph.GAT(lambda n: n * 0.1, lambda s, r, e: (s * r).sum(1, keepdims=True))
    return network(GRAPH._replace(edges=None)).nodes


def padded_batches():
    batch = jraph.pad_with_graphs(jraph.batch([GRAPH, GRAPH]), 10, 12, 4)
    return batch, jraph.get_node_padding_mask(batch), jraph.unbatch(jraph.unpad_with_graphs(batch))[1].nodes


def segments():
    x, ids = jnp.arange(6.0), jnp.array([0, 0, 1, 1, 1, 2])
    return [f(x, ids, 3) for f in (jraph.segment_sum, jraph.segment_mean, jraph.segment_softmax, jraph.segment_max)]
