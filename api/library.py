"""Ready-made effects and handlers. What programs perform stands at the top of ``handlax`` too."""

from __future__ import annotations

from .interpreters.library.counters import Cost as Cost
from .interpreters.library.counters import cost_of as cost_of
from .interpreters.library.counters import costs as costs
from .interpreters.library.counters import count as count
from .interpreters.library.counters import measure as measure
from .interpreters.library.failures import check as check
from .interpreters.library.failures import check_bounds as check_bounds
from .interpreters.library.failures import check_finite as check_finite
from .interpreters.library.failures import checkify as checkify
from .interpreters.library.failures import raise_ as raise_
from .interpreters.library.harvest import call_and_reap as call_and_reap
from .interpreters.library.harvest import harvest as harvest
from .interpreters.library.harvest import nest as nest
from .interpreters.library.harvest import plant as plant
from .interpreters.library.harvest import reap as reap
from .interpreters.library.harvest import sow as sow
from .interpreters.library.memory import memo as memo
from .interpreters.library.nans import nan_origin as nan_origin
from .interpreters.library.precision import autocast as autocast
from .interpreters.library.progress import progress as progress
from .interpreters.library.readers import ask as ask
from .interpreters.library.readers import local as local
from .interpreters.library.readers import reader as reader
from .interpreters.library.rehearsal import Rehearsal as Rehearsal
from .interpreters.library.rehearsal import Step as Step
from .interpreters.library.rehearsal import dry_run as dry_run
from .interpreters.library.states import get as get
from .interpreters.library.states import modify as modify
from .interpreters.library.states import put as put
from .interpreters.library.states import state as state
from .interpreters.library.streams import fresh_key as fresh_key
from .interpreters.library.streams import seed as seed
from .interpreters.library.writers import tell as tell
from .interpreters.library.writers import writer as writer
