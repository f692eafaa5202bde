"""Frozen values: as frozen dataclasses, at a tenth of the cost of making the class."""

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from handlax.effects.base.errors import BadCall
from handlax.effects.base.frozen_values import Value


class Pair(Value):
    """Two things."""

    kind: ClassVar[str] = "pair"
    first: Any
    second: Any = 0


class Other(Value):
    """Two things of another kind."""

    first: Any
    second: Any = 0


class Triple(Pair):
    """One more."""

    third: Any = ()


def test_fields_come_in_order_and_by_name_and_have_defaults():
    assert Pair(1, 2) == Pair(second=2, first=1) == Pair(1, second=2)
    assert Pair(1).second == 0 and Triple(1, 2).third == () and Triple(1, third=3).second == 0
    assert repr(Triple(1, third="a")) == "Triple(first=1, second=0, third='a')"


def test_values_are_equal_by_type_and_fields():
    assert Pair(1, 2) != Pair(1, 3) and Pair(1, 2) != Other(1, 2) and Pair(1, 2) != Triple(1, 2)
    assert {Pair(1, 2): "x"}[Pair(1, second=2)] == "x" and hash(Pair(second=2, first=1)) == hash(Pair(1, 2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Pair([]))


@pytest.mark.parametrize("make", [
    lambda: Pair(), lambda: Pair(1, 2, 3), lambda: Pair(1, first=1), lambda: Pair(1, third=1), lambda: Pair(second=1),
    lambda: Pair(1, 2, third=3),
])
def test_arguments_that_do_not_fit_are_an_error_that_says_which_fields_there_are(make):
    with pytest.raises(BadCall, match="Pair takes first, second, got"):
        make()


def test_a_value_is_frozen():
    value = Pair(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.first
    assert value == Pair(1)


def test_a_value_is_copied_pickled_matched_and_replaced_as_a_dataclass_is():
    value = Triple([1], 2, 3)
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == copy.copy(value) == value
    assert copy.deepcopy(value).first is not value.first
    assert dataclasses.replace(value, third=4) == Triple([1], 2, 4)
    assert [field.name for field in dataclasses.fields(value)] == ["first", "second", "third"]
    match value:
        case Triple(_, second, third):
            assert (second, third) == (2, 3)
