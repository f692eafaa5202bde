"""The name of an operation in a text denotes one operation."""

import importlib
from typing import Any

import pytest
from helpers.written_programs import Noted, again, program
from returns.result import Success

import handlax
from handlax.effects.core.operation import OPERATIONS, Operation, effect, operation, text_name


@operation
class NotedAgain:
    note: Any = None
    name = "noted"

    def result_type(op, x):
        return x


@pytest.mark.parametrize("value", [lambda x: x, object(), type("Local", (), {})], ids=["lambda", "object", "class"])
def test_what_has_no_name_is_refused_when_it_is_read(value):
    p = program((Noted(value), (0,)))
    error = again(p).failure()
    assert "under its own name" in error.hint and error.line == 2


def test_the_later_of_two_operations_of_one_name_is_called_by_its_place():
    assert text_name(Noted) == "noted" and text_name(NotedAgain) == f"{__name__}:NotedAgain"
    p = program((Noted(1), (0,)), (NotedAgain(2), (1,)))
    assert again(p) == Success(p)
    assert OPERATIONS["noted"] is Noted


def test_a_block_that_is_run_again_takes_the_place_of_its_former_self():
    def block():
        @effect
        class RunAgain:
            def result_type(op):
                return None

        return RunAgain

    former, latter = block(), block()
    assert former is not latter and OPERATIONS["run_again"] is latter
    assert again(program((latter(), ()))).unwrap().ops == (latter(),)


def test_every_operation_of_the_library_is_found_where_it_says_it_is():
    for name in handlax.__all__:  # some are loaded when first asked for
        getattr(handlax, name)
    for kind in {kind for kind in OPERATIONS.values() if kind.__module__.startswith("handlax.")}:
        assert issubclass(kind, Operation)
        assert getattr(importlib.import_module(kind.__module__), kind.__qualname__) is kind, kind
