"""User classes as pytrees: a dataclass with a static field, and a class with its own flattening."""

import functools
from dataclasses import dataclass
from typing import Any

import handlax.numpy as jnp
from handlax import grad, jit, random, tree, tree_util, vmap


@functools.partial(tree_util.register_dataclass, data_fields=["weight", "bias"], meta_fields=["power"])
@dataclass
class Layer:
    weight: Any
    bias: Any
    power: int

    def __call__(self, x):
        return (x @ self.weight + self.bias) ** self.power


@tree_util.register_pytree_node_class
class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def tree_flatten(self):
        return (self.low, self.high), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)

    def __mul__(self, other):
        ends = jnp.stack([a * b for a in (self.low, self.high) for b in (other.low, other.high)])
        return Interval(ends.min(axis=0), ends.max(axis=0))


def main():
    layer = Layer(random.normal(random.key(0), (3, 2)), jnp.ones(2), power=2)
    x = jnp.arange(12.0).reshape(4, 3) / 10
    slope = jit(grad(lambda layer: jnp.sum(layer(x))))(layer)
    product = jit(vmap(lambda a, b: a * b))(
        Interval(jnp.array([-1.0, 2.0]), jnp.array([1.0, 3.0])), Interval(jnp.array([0.5, -4.0]), jnp.array([2.0, 5.0]))
    )
    leaves, treedef = tree.flatten({"b": [1.0, (2.0, None)], "a": layer})
    rebuilt = tree.unflatten(treedef, [2 * leaf for leaf in leaves])
    return {
        "out": layer(x),
        "weight": slope.weight,
        "bias": slope.bias,
        "power": slope.power,
        "low": product.low,
        "high": product.high,
        "leaves": len(leaves),
        "rebuilt": rebuilt["a"].bias + rebuilt["b"][1][0],
        "sum": tree.reduce(lambda a, b: a + jnp.sum(b), layer, 0.0),
    }
