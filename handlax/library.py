"""``handlax.library``: ready-made effects and handlers. The functions that perform effects are in ``handlax`` too."""

from __future__ import annotations

from .interpreters.analysis.peak_memory import MemoryCost as MemoryCost
from .interpreters.library.effectful.failures import check as check
from .interpreters.library.effectful.failures import check_bounds as check_bounds
from .interpreters.library.effectful.failures import check_finite as check_finite
from .interpreters.library.effectful.failures import checkify as checkify
from .interpreters.library.effectful.failures import raise_ as raise_
from .interpreters.library.effectful.harvest import call_and_reap as call_and_reap
from .interpreters.library.effectful.harvest import harvest as harvest
from .interpreters.library.effectful.harvest import nest as nest
from .interpreters.library.effectful.harvest import plant as plant
from .interpreters.library.effectful.harvest import reap as reap
from .interpreters.library.effectful.harvest import sow as sow
from .interpreters.library.effectful.progress import progress as progress
from .interpreters.library.effectful.random_streams import fresh_key as fresh_key
from .interpreters.library.effectful.random_streams import seed as seed
from .interpreters.library.effectful.readers import ask as ask
from .interpreters.library.effectful.readers import local as local
from .interpreters.library.effectful.readers import reader as reader
from .interpreters.library.effectful.states import get as get
from .interpreters.library.effectful.states import modify as modify
from .interpreters.library.effectful.states import put as put
from .interpreters.library.effectful.states import state as state
from .interpreters.library.effectful.writers import tell as tell
from .interpreters.library.effectful.writers import writer as writer
from .interpreters.library.pure.cost_table import Costs as Costs
from .interpreters.library.pure.cost_table import LinkCost as LinkCost
from .interpreters.library.pure.cost_table import OperationCost as OperationCost
from .interpreters.library.pure.cost_table import Seconds as Seconds
from .interpreters.library.pure.counters import cost_counter as cost_counter
from .interpreters.library.pure.counters import cost_of as cost_of
from .interpreters.library.pure.counters import measure as measure
from .interpreters.library.pure.dry_run import DryRun as DryRun
from .interpreters.library.pure.dry_run import DryRunStep as DryRunStep
from .interpreters.library.pure.dry_run import dry_run as dry_run
from .interpreters.library.pure.memoise import memo as memo
from .interpreters.library.pure.nan_origin import nan_origin as nan_origin
from .interpreters.library.pure.precision import autocast as autocast
from .lowering.inspection.costs import costs as costs
