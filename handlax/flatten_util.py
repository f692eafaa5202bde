"""``handlax.flatten_util``: a tree of arrays as one vector, and back."""

from .effects.operations.manipulation.raveled_trees import ravel_pytree as ravel_pytree
