"""Rematerialisation: what reverse mode keeps, what it computes again, and what that costs."""

from . import checkpoint_policies as checkpoint_policies
from .effects.policies import Offloadable as Offloadable
from .effects.policies import Recompute as Recompute
from .effects.policies import Saveable as Saveable
from .effects.rematerialise import checkpoint_name as checkpoint_name
from .lowering.rematerialise import checkpoint as checkpoint

remat = checkpoint
