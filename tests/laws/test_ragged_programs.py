"""Random functions of a lane under vmap over lanes of different lengths equal the loop over the lanes.

Values and derivatives, with lengths that are known and lengths that are values, compiled and not, with another vmap
around. A program may be refused only for what docs/how-to/ragged.md lists.
"""

from __future__ import annotations

import re

import pytest
from helpers.ragged_modes import LENGTHS, MODES, Undefined, check, defined, eager_known, vmap_values
from helpers.ragged_programs import random_lane_program

import handlax as hx

LISTED = [
    "Python needs an integer here, got .*n",  # the length decides what is computed
    "differs from lane to lane, and so does how it compares",
    "along a ragged axis of a value that has another one",
    "no rule for a value with several ragged axes",
    "the elements of a lane are no rows",
    "its slices have a ragged axis too",
    "it depends on the length as a whole",
    "padding_config has",
    "a Python condition needs a known value",
]


def outcome(seed: int, mode: object) -> str:
    """``equal``, ``refused``, or ``undefined``: the function has no value, or no derivative, on these lanes."""
    program, lengths = random_lane_program(seed), LENGTHS[seed % len(LENGTHS)]
    if not defined(program, lengths):
        lengths = [n + 1 for n in lengths]
        if not defined(program, lengths):
            return "undefined"
    try:
        check(program, lengths, mode)
    except Undefined:
        return "undefined"
    except hx.errors.HandlaxError as error:
        text = str(error)
        assert re.search("|".join(LISTED), text.split("\n")[0]), f"{text}\n{program.source}"
        assert len(text.split("\n")) <= 3, text
        return "refused"
    return "equal"


@pytest.mark.parametrize("mode", [eager_known, vmap_values], ids=lambda mode: mode.__name__)
def test_most_programs_equal_the_loop(mode):
    found = [outcome(seed, mode) for seed in range(40 if mode is eager_known else 12)]
    assert found.count("equal") > 0.6 * len(found)


@pytest.mark.parametrize("mode", MODES[1:], ids=lambda mode: mode.__name__)
def test_every_way_to_run_a_program_equals_the_loop(mode):
    for seed in range(40, 42):
        outcome(seed, mode)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(1000, 5000, 25))
def test_programs_equal_the_loop(first):
    for seed in range(first, first + 25):
        outcome(seed, MODES[seed % len(MODES)])
