"""``handlax.example_libraries``: small libraries that JAX has in ``jax.example_libraries``."""

from . import optimizers as optimizers
from . import stax as stax
