"""What processes say to each other, each in its turn or in a thread beside."""

import threading

import pytest
from helpers.runtime_in_memory import Two

from handlax.effects.base.errors import BadArgument, HandlaxError, NotSaved
from handlax.lowering.clients import agreement


@pytest.fixture
def two():
    pair = Two()
    yield pair
    pair.close()


@pytest.fixture
def acting(two, monkeypatch):
    """The results of a call in each process, which finds its own connection."""
    local = threading.local()
    monkeypatch.setattr(agreement, "connection", lambda: local.each)

    def act(each, call):
        local.each = each
        return call()

    return lambda call: two(lambda each: act(each, lambda: call(each.index)))


def test_texts_are_exchanged_beside_what_is_done_together(two, acting):
    assert acting(lambda index: agreement.exchanged(f"of {index}", "once")) == [{0: "of 0", 1: "of 1"}] * 2
    assert not two.each[0].client.key_value_dir_get("") and two.each[0].actions.shared_with(1).count == 0


def test_what_fails_in_one_process_has_failed_in_each(acting):
    def save(index):
        if index == 1:
            raise BadArgument("save: the disk must have space, got none.")

    def told(index):
        with pytest.raises(HandlaxError) as raised:
            agreement.together(lambda: save(index), "the step")
        return type(raised.value), raised.value.what

    assert acting(lambda index: agreement.together(lambda: None, "a step")) == [None, None]
    message = "save: the disk must have space, got none"
    assert acting(told) == [(NotSaved, f"{message}, in process 1."), (BadArgument, f"{message}.")]
