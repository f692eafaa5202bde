"""Files of libraries that are not the user's, in messages and tracebacks."""

import pytest

from handlax import errors
from handlax import numpy as hnp
from handlax.effects.base.source_locations import include_frame, is_internal
from handlax.extend.source_info_util import register_exclusion

LIBRARY = "def product(x):\n    return x @ x\n"


def test_the_line_of_the_caller_stands_for_that_of_an_excluded_file():
    space = {}
    exec(compile(LIBRARY, "/libraries/products/product.py", "exec"), space)
    with pytest.raises(errors.ShapeMismatch, match=r"at product\.py:2"):
        space["product"](hnp.ones((2, 3)))
    register_exclusion("/libraries/products/")
    with pytest.raises(errors.ShapeMismatch, match=r"at test_source_info_util\.py") as raised:
        space["product"](hnp.ones((2, 3)))
    frames = [entry.tb_frame for entry in _entries(raised.value.__traceback__)]
    assert include_frame(frames[0]) and not is_internal("/libraries/product.py")


def _entries(traceback):
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
