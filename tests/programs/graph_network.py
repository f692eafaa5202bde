"""Message passing on a directed graph: gather along edges, sum into nodes, attention over incoming edges; page rank."""

import handlax.numpy as jnp
from handlax import grad, jit, nn, random

SENDERS = (0, 0, 1, 2, 2, 3, 4, 4, 5)
RECEIVERS = (1, 2, 2, 0, 3, 4, 0, 5, 2)


def layer(params, nodes, senders, receivers):
    messages = nn.elu(jnp.concatenate([nodes[senders], nodes[receivers]], axis=1) @ params["edge"])
    scores = messages @ params["score"]
    highest = jnp.full(len(nodes), -jnp.inf).at[receivers].max(scores)
    weights = jnp.exp(scores - highest[receivers])
    total = jnp.zeros(len(nodes)).at[receivers].add(weights)
    shares = weights / total[receivers]
    return nodes + jnp.zeros_like(nodes).at[receivers].add(shares[:, None] * messages), shares


@jit
def page_rank(senders, receivers):
    links = jnp.zeros((6, 6)).at[receivers, senders].add(1.0)
    links = links / links.sum(axis=0)
    rank = jnp.full(6, 1 / 6)
    for _ in range(20):
        rank = 0.15 / 6 + 0.85 * links @ rank
    return rank


def main():
    a, b, c = random.split(random.key(131), 3)
    nodes = random.normal(a, (6, 4))
    params = {"edge": 0.5 * random.normal(b, (8, 4)), "score": random.normal(c, (4,))}
    senders, receivers = jnp.array(SENDERS), jnp.array(RECEIVERS)
    out, shares = jit(layer)(params, nodes, senders, receivers)
    slope = grad(lambda p: jnp.sum(layer(p, nodes, senders, receivers)[0] ** 2))(params)
    return {"out": out, "shares": shares, **slope, "rank": page_rank(senders, receivers)}


RTOL = 1e-4
