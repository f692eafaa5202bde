"""``handlax.experimental.array_serialization``: arrays in the stores of TensorStore, under JAX's names."""

from . import serialization as serialization
