"""Lists that contain themselves, and arguments that are missing or of another kind, are refused, not followed."""

from contextlib import suppress

import pytest

from handlax import numpy as hnp
from handlax.errors import HandlaxError

ENDLESS: list = []
ENDLESS.append(ENDLESS)
X = hnp.ones(3)
ARGUMENTS = [(ENDLESS,), (ENDLESS, 1.0), (1.0, ENDLESS), (X, ENDLESS), ("ij", ENDLESS), (ENDLESS, ENDLESS),
             ([ENDLESS],), ((ENDLESS,),), (X, X, ENDLESS), ((X, X), ENDLESS), ("x",), (0, 3), ([], []), ([],), ((), X)]
FUNCTIONS = [name for name in hnp.__all__ if callable(getattr(hnp, name)) and not isinstance(getattr(hnp, name), type)
             and name not in ("save", "savez", "set_printoptions")]  # they write files, and change a setting


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_follows_a_list_without_end(name):
    for args in ARGUMENTS:
        with suppress(HandlaxError, ValueError, TypeError, AttributeError, OSError, DeprecationWarning):
            getattr(hnp, name)(*args)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: hnp.choose(0, 3), "choose: choices must be a sequence, got 3"),
    (lambda: hnp.einsum("x"), "einsum: there must be an operand, got 'x' alone"),
    (lambda: hnp.einsum([0]), "einsum: there must be an operand"),
    (lambda: hnp.block(ENDLESS), "block: the list is nested too deeply, or contains itself"),
    (lambda: hnp.block([[X, ENDLESS]]), "block: the list is nested too deeply, or contains itself"),
    (lambda: hnp.array_equiv(1.0, ENDLESS), "array: the list is nested too deeply, or contains itself"),
], ids=["choose", "einsum", "einsum of a list", "block", "block of a list", "array_equiv"])
def test_the_error_names_the_argument(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
