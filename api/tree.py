"""Functions on pytrees, under the names of ``jax.tree``; ``freeze`` and ``thaw`` are handlax's own."""

from .effects.trees import Frozen as Frozen
from .effects.trees import all as all
from .effects.trees import broadcast as broadcast
from .effects.trees import flatten as flatten
from .effects.trees import flatten_with_path as flatten_with_path
from .effects.trees import freeze as freeze
from .effects.trees import leaves as leaves
from .effects.trees import leaves_with_path as leaves_with_path
from .effects.trees import map as map
from .effects.trees import map_with_path as map_with_path
from .effects.trees import reduce as reduce
from .effects.trees import reduce_associative as reduce_associative
from .effects.trees import static as static
from .effects.trees import structure as structure
from .effects.trees import thaw as thaw
from .effects.trees import transpose as transpose
from .effects.trees import unflatten as unflatten
