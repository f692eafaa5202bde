"""``handlax.experimental.layout``: the order of an array's dimensions in memory, under JAX's names."""

from ..effects.sharding.layout import Format as Format
from ..effects.sharding.layout import Layout as Layout
from ..lowering.arrays.sharding_constraints import with_layout_constraint as with_layout_constraint
