"""Types registered as nodes of pytrees: with static data and without keys, as a dataclass, as a named tuple."""

import dataclasses
from collections import namedtuple

from handlax.effects.trees import pytrees

Point = namedtuple("Point", "x y")


@pytrees.register_pytree_node_class
class Bag:
    """A registered node with static data and without keys."""

    def __init__(self, items, label):
        self.items, self.label = list(items), label

    def tree_flatten(self):
        return self.items, self.label

    @classmethod
    def tree_unflatten(cls, label, items):
        return cls(items, label)

    def __eq__(self, other):
        return isinstance(other, Bag) and (self.items, self.label) == (other.items, other.label)

    __hash__ = None


@pytrees.register_dataclass
@dataclasses.dataclass
class Couple:
    """A dataclass without static data."""

    left: object
    right: object


@pytrees.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object = None
    name: str = pytrees.static(default="layer")
