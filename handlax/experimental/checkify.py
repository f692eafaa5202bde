"""``handlax.experimental.checkify``: errors as values, under JAX's names; ``handlax.checkify`` is our own form."""

from ..effects.base.errors import CheckFailed as JaxRuntimeError
from ..interpreters.library.effectful.automatic_checks import ErrorCategory
from ..interpreters.library.effectful.error_values import (
    Error,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]
