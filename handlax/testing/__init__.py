"""``handlax.testing``: property-based laws of operations, control flow and handlers. Needs the extra ``test``."""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names

# Each is imported when it is first asked for, so that ``hx.testing`` costs nothing where no test uses it.
if _typing.TYPE_CHECKING:
    from . import faults as faults
    from . import fuzzing as fuzzing
    from . import strategies as strategies
    from .closeness import assert_close as assert_close
    from .comparisons import WAYS as WAYS
    from .comparisons import Way as Way
    from .comparisons import compare as compare
    from .generator.control import CONTROL as CONTROL
    from .generator.nests import Nest as Nest
    from .generator.random_program import RandomProgram as RandomProgram
    from .generator.reducing import reduced as reduced
    from .generator.unrolled import UNROLLED as UNROLLED
    from .handler_laws import HANDLER_LAWS as HANDLER_LAWS
    from .handler_laws import check_handler as check_handler
    from .law import Inapplicable as Inapplicable
    from .law import Law as Law
    from .law import LawFails as LawFails
    from .law import Report as Report
    from .law import check_laws as check_laws
    from .nest_laws import NEST_LAWS as NEST_LAWS
    from .nest_laws import check_nest_law as check_nest_law
    from .operation_checks import check_operation as check_operation
    from .operation_laws import OPERATION_LAWS as OPERATION_LAWS
    from .pytest_plugin.trace_counts import counted as counted
    from .random_programs import equations as equations
    from .random_programs import programs as programs
    from .random_programs import random_program as random_program
    from .recordings import Recording as Recording
    from .recordings import load as load
    from .recordings import record_run as record_run
    from .run_differences import Difference as Difference
    from .run_differences import first_difference as first_difference
    from .transformation_laws import INTERPRETER_LAWS as INTERPRETER_LAWS
    from .transformation_laws import TRANSFORMATION_LAWS as TRANSFORMATION_LAWS
    from .transformation_laws import check_interpreter as check_interpreter
    from .transformation_laws import check_transformation as check_transformation
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
