"""``handlax.ad_checkpoint``: rematerialisation, residuals and memory of reverse mode."""

from . import checkpoint_policies as checkpoint_policies
from .effects.base.lazy_module import primitives_of as _primitives_of
from .effects.control.checkpoint import checkpoint_name as checkpoint_name
from .effects.control.checkpoint_policies import Offloadable as Offloadable
from .effects.control.checkpoint_policies import Recompute as Recompute
from .effects.control.checkpoint_policies import Saveable as Saveable
from .interpreters.analysis.liveness import Liveness as Liveness
from .interpreters.analysis.liveness import liveness as liveness
from .interpreters.differentiation.memory_budget import MemoryBudget as MemoryBudget
from .interpreters.differentiation.memory_budget import memory_budget as memory_budget
from .interpreters.inspection.forward_backward import draw as draw
from .interpreters.transformations.checkpoint import checkpoint as checkpoint
from .interpreters.transformations.saved_residuals import Residual as Residual
from .interpreters.transformations.saved_residuals import Residuals as Residuals
from .interpreters.transformations.saved_residuals import Use as Use
from .interpreters.transformations.saved_residuals import print_saved_residuals as print_saved_residuals
from .interpreters.transformations.saved_residuals import saved_residuals as saved_residuals
from .lowering.inspection.memory_plan import MemoryPlan as MemoryPlan
from .lowering.inspection.memory_plan import memory_plan as memory_plan

remat = checkpoint
__getattr__ = _primitives_of(__name__)
