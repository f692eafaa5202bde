"""``handlax.experimental.checkify``: errors as values, under JAX's names; ``handlax.checkify`` is our own form."""

from ..effects.base.errors import CheckFailed as _CheckFailed
from ..interpreters.library.effectful.automatic_checks import ErrorCategory as ErrorCategory
from ..interpreters.library.effectful.error_values import Error as Error
from ..interpreters.library.effectful.error_values import all_checks as all_checks
from ..interpreters.library.effectful.error_values import automatic_checks as automatic_checks
from ..interpreters.library.effectful.error_values import check as check
from ..interpreters.library.effectful.error_values import check_error as check_error
from ..interpreters.library.effectful.error_values import checkify as checkify
from ..interpreters.library.effectful.error_values import debug_check as debug_check
from ..interpreters.library.effectful.error_values import div_checks as div_checks
from ..interpreters.library.effectful.error_values import float_checks as float_checks
from ..interpreters.library.effectful.error_values import index_checks as index_checks
from ..interpreters.library.effectful.error_values import init_error as init_error
from ..interpreters.library.effectful.error_values import nan_checks as nan_checks
from ..interpreters.library.effectful.error_values import user_checks as user_checks

JaxRuntimeError = _CheckFailed
