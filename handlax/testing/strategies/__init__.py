"""``handlax.testing.strategies``: Hypothesis strategies of what programs are made of, for tests of one line each.

    @given(arrays("float32", (3, 4)), index_expressions((3, 4)))
    def test_indexing(x, index):
        assert np.array_equal(hx.numpy.asarray(x)[index], x[index], equal_nan=True)

Each shrinks to small shapes, plain dtypes and small values; functions and handlers to short ones, printed as Python.
They need the extra ``test``.
"""

from __future__ import annotations

from .array_values import arrays as arrays
from .collective_calls import CollectiveCall as CollectiveCall
from .collective_calls import collectives as collectives
from .collective_calls import lane_groups as lane_groups
from .device_shardings import meshes as meshes
from .device_shardings import partition_specs as partition_specs
from .device_shardings import shardings as shardings
from .domains import Domain as Domain
from .domains import Operands as Operands
from .field_values import field_values as field_values
from .index_expressions import index_expressions as index_expressions
from .nests_and_handlers import DrawnHandler as DrawnHandler
from .nests_and_handlers import DrawnStack as DrawnStack
from .nests_and_handlers import handlers as handlers
from .nests_and_handlers import nests as nests
from .nests_and_handlers import stacks as stacks
from .ragged_rows import ragged_arrays as ragged_arrays
from .ragged_rows import ragged_lengths as ragged_lengths
from .special_values import elements as elements
from .special_values import special_values as special_values
from .tree_axes import in_axes as in_axes
from .tree_axes import out_axes as out_axes
from .tree_axes import trees as trees
from .types_and_shapes import array_types as array_types
from .types_and_shapes import broadcastable_shapes as broadcastable_shapes
from .types_and_shapes import dtypes as dtypes
from .types_and_shapes import shapes as shapes
