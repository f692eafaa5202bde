"""The logs of what processes do together: equal exactly when they did the same in the same order."""

import json

import hypothesis.strategies as st
from helpers.runtime_in_memory import MemoryClient, Table
from hypothesis import given

from handlax.lowering.clients.joint_actions import (
    ActionComparison,
    ActionLog,
    Joint,
    JointActions,
    count_with,
    first_difference,
)

SITE = ((lambda: 0).__code__, 0)
GROUPS = st.frozensets(st.integers(0, 3), min_size=2)
ACTIONS = st.lists(st.tuples(GROUPS, st.integers(0, 5)), max_size=20)


def noted(own, actions):
    """The logs of a process that took part in those of the actions that are its own."""
    logs = JointActions(own)
    for group, number in actions:
        if own in group:
            logs.note(group, Joint(f"program {number}", number, SITE))
    return logs


def told(logs):
    return json.loads(json.dumps(logs.counts()))


@given(ACTIONS, ACTIONS, st.integers(0, 3), st.integers(0, 3))
def test_two_processes_agree_exactly_if_what_they_did_together_is_the_same(mine, theirs, own, other):
    if own == other:
        return
    together = [[each for each in actions if {own, other} <= each[0]] for actions in (mine, theirs)]
    numbers = [[number for _, number in actions] for actions in together]
    here, there = noted(own, mine), noted(other, theirs)
    log, (count, digest) = here.shared_with(other), count_with(own, told(there))
    assert (log.count, count) == (len(numbers[0]), len(numbers[1]))
    assert ((log.count, log.digest) == (count, digest)) == (numbers[0] == numbers[1])
    if 0 < count <= log.count:
        assert log.differs_at(count, digest) == (numbers[0][:count] != numbers[1])
    found = first_difference(log.recent(), there.shared_with(own).recent())
    common = [k for k, (a, b) in enumerate(zip(*numbers), 1) if a != b]
    assert (found[0][0] if found else None) == (common[0] if common else None)


@given(ACTIONS, st.integers(0, 3))
def test_processes_share_a_log_while_they_took_part_in_the_same(actions, own):
    logs = noted(own, actions)
    with_each = {other: [k for k, (group, _) in enumerate(actions) if {own, other} <= group] for other in range(4)}
    known = {other: with_each[other] for other in range(4) if other != own and with_each[other]}
    assert sorted(index for indices, *_ in logs.counts() for index in indices) == sorted(known)
    for indices, count, _ in logs.counts():
        assert {tuple(known[index]) for index in indices} == {tuple(known[indices[0]])}
        assert count == len(known[indices[0]])


def test_each_is_compared_with_those_before_and_after_it_in_its_groups():
    assert noted(2, [(frozenset(range(6)), 1), (frozenset([0, 2]), 1)]).neighbours() == {0, 1, 3}


def test_what_is_long_ago_is_not_known_to_differ():
    log = ActionLog()
    for number in range(5000):
        log.note(Joint("p", number, SITE))
    assert not log.differs_at(1, 17) and log.differs_at(4999, 17)
    assert [number for number, *_ in log.recent()] == [*range(905, 5001)]


def test_who_is_asked_for_a_difference_tells_it_and_no_other():
    table, actions = Table(), [(frozenset(range(3)), 1)]
    first, second, third = [ActionComparison(MemoryClient(table, own), noted(own, actions)) for own in range(3)]
    assert first._difference(1)().what.endswith("got something else there before that.")
    assert second.asked() is not None and third.asked() is None
