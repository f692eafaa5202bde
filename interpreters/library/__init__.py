"""Ready-made effects and handlers, each a few lines in its own file, made of the public words alone."""

from __future__ import annotations

from .counters import Cost as Cost
from .counters import cost_of as cost_of
from .counters import costs as costs
from .counters import count as count
from .counters import measure as measure
from .failures import check as check
from .failures import check_bounds as check_bounds
from .failures import check_finite as check_finite
from .failures import checkify as checkify
from .failures import raise_ as raise_
from .harvest import call_and_reap as call_and_reap
from .harvest import harvest as harvest
from .harvest import nest as nest
from .harvest import plant as plant
from .harvest import reap as reap
from .harvest import sow as sow
from .memory import memo as memo
from .nans import nan_origin as nan_origin
from .precision import autocast as autocast
from .readers import ask as ask
from .readers import local as local
from .readers import reader as reader
from .rehearsal import Rehearsal as Rehearsal
from .rehearsal import Step as Step
from .rehearsal import dry_run as dry_run
from .states import get as get
from .states import modify as modify
from .states import put as put
from .states import state as state
from .writers import tell as tell
from .writers import writer as writer
