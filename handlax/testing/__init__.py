"""``handlax.testing``: property-based laws of operations, control flow and handlers. Needs the extra ``test``."""

from __future__ import annotations

from .generator.nests import Nest as Nest
from .generator.random_program import RandomProgram as RandomProgram
from .generator.reducing import reduced as reduced
from .handlers import check_handler as check_handler
from .laws import LAWS as LAWS
from .laws import Law as Law
from .laws import assert_close as assert_close
from .nest_laws import NEST_LAWS as NEST_LAWS
from .nest_laws import NestLaw as NestLaw
from .nest_laws import check_nest_law as check_nest_law
from .random_programs import equations as equations
from .random_programs import programs as programs
from .random_programs import random_program as random_program
