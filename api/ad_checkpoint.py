"""Rematerialisation: what reverse mode keeps, what it computes again, and what that costs."""

from . import checkpoint_policies as checkpoint_policies
from .effects.policies import Offloadable as Offloadable
from .effects.policies import Recompute as Recompute
from .effects.policies import Saveable as Saveable
from .effects.rematerialise import checkpoint_name as checkpoint_name
from .interpreters.budget import MemoryBudget as MemoryBudget
from .interpreters.budget import memory_budget as memory_budget
from .interpreters.passes import draw as draw
from .interpreters.residuals import Residual as Residual
from .interpreters.residuals import Residuals as Residuals
from .interpreters.residuals import Use as Use
from .interpreters.residuals import print_saved_residuals as print_saved_residuals
from .interpreters.residuals import saved_residuals as saved_residuals
from .lowering.memory import MemoryPlan as MemoryPlan
from .lowering.memory import memory_plan as memory_plan
from .lowering.rematerialise import checkpoint as checkpoint

remat = checkpoint
