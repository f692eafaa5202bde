"""Choices are functions of the bytes; the first of all where they have run out."""

from hypothesis import given
from hypothesis import strategies as st

from handlax.testing.fuzzing import ByteChoices


@given(st.binary(max_size=8), st.integers(-300, 300), st.integers(0, 1000))
def test_an_integer_lies_between_its_bounds(data, low, more):
    assert low <= ByteChoices(data).integer(low, low + more) <= low + more


def test_every_choice_is_reached():
    assert {ByteChoices(bytes([i])).one_of("a", "b", "c") for i in range(3)} == {"a", "b", "c"}
    assert {ByteChoices(i.to_bytes(2, "little")).integer(0, 999) for i in range(1000)} == {*range(1000)}
    assert {ByteChoices(bytes([i])).boolean() for i in range(2)} == {False, True}


def test_no_bytes_are_the_first_choices():
    choices = ByteChoices(b"")
    assert (choices.integer(-3, 8), choices.one_of(4, 5), choices.boolean()) == (-3, 4, False)
    assert choices.text("ab", 3) == ""
    assert choices.several(lambda: choices.made_by(lambda: 1, lambda: 2), 3, least=2) == [1, 1]
