"""What is needed to extend handlax from outside: handlers that are no clauses, operations with bodies, columns.

A transformation of one's own is a ``Run`` (one installation of a handler) with ``Box`` values, as ``grad`` and
``vmap`` are; a ``BodyTransformer`` crosses every operation with bodies by the one law, and interprets operations
without a rule by their decomposition. docs/tutorial/interpreter.md builds one step by step.
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names
from ..effects.base.stack import STACK as STACK
from ..effects.base.stack import Run as Run
from ..effects.base.stack import inside as inside
from ..effects.base.stack import installed as installed
from ..effects.core.arrays import Box as Box
from ..effects.core.arrays import as_array as as_array
from ..effects.core.columns import Column as Column
from ..effects.core.result_trees import AnswerTyped as AnswerTyped
from ..effects.operations.foundations.elementwise_factory import Elementwise as Elementwise
from ..effects.operations.foundations.elementwise_factory import elementwise as elementwise
from ..effects.operations.foundations.elementwise_factory import surface as surface
from ..effects.programs.higher_order import HigherOrder as HigherOrder
from ..effects.programs.program import Builder as Builder
from ..effects.programs.program import interpret as interpret
from ..interpreters.core.body_transform import BodyTransformer as BodyTransformer
from ..interpreters.core.body_transform import cross as cross
from ..interpreters.core.record import Record as Record
from ..interpreters.core.record import record as record
from ..interpreters.core.state_flow import StateFlow as StateFlow
from ..interpreters.handlers.answer_types import perform_typed as perform_typed

if _typing.TYPE_CHECKING:
    from . import ad as ad
    from . import batching as batching
    from . import core as core
    from . import hijax as hijax
    from . import linear_util as linear_util
    from . import mlir as mlir
    from . import partial_eval as partial_eval
    from . import xla as xla
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
