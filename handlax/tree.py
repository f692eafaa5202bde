"""``handlax.tree``: functions on pytrees under the names of ``jax.tree``; ``freeze`` and ``thaw`` are additions."""

from .effects.trees.pytrees import Frozen as Frozen
from .effects.trees.pytrees import all as all
from .effects.trees.pytrees import broadcast as broadcast
from .effects.trees.pytrees import flatten as flatten
from .effects.trees.pytrees import flatten_with_path as flatten_with_path
from .effects.trees.pytrees import freeze as freeze
from .effects.trees.pytrees import leaves as leaves
from .effects.trees.pytrees import leaves_with_path as leaves_with_path
from .effects.trees.pytrees import map as map
from .effects.trees.pytrees import map_with_path as map_with_path
from .effects.trees.pytrees import reduce as reduce
from .effects.trees.pytrees import reduce_associative as reduce_associative
from .effects.trees.pytrees import static as static
from .effects.trees.pytrees import structure as structure
from .effects.trees.pytrees import thaw as thaw
from .effects.trees.pytrees import transpose as transpose
from .effects.trees.pytrees import unflatten as unflatten
