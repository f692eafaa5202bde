"""Random functions of a lane under vmap over lanes of different lengths equal the loop over the lanes.

Values and derivatives, with lengths that are known and lengths that are values, compiled and not, with another vmap
around. A program may be refused only for what docs/how-to/ragged.md lists.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.ragged_modes import LENGTHS, MODES, Undefined, check, defined, eager_known, vmap_values

import handlax as hx
from handlax.testing import random_program

# What a refusal says, and the row of the page's table, or the sentence before it, that lists it.
LISTED = {
    "Python needs an integer here, got .*n": "what Python decides by the length is refused",
    "differs from lane to lane, and so does how it compares": "a slice whose end counts from the front in some lanes",
    "the elements of a lane are no rows": "a reshape that divides the axis",
    "it depends on the length as a whole": "they depend on the length as a whole",
    "padding_config has": "`pad` that reflects or wraps",
    "a Python condition needs a known value": "what Python decides by the length is refused",
    # the first two of a lane's elements: as many as the probe has, but not as many in each lane
    "a result with a ragged axis has out_axes": "A result with the ragged axis has `out_axes=hx.ragged_axis`",
    "a result whose first axis is its only ragged one": "A result with the ragged axis has `out_axes=hx.ragged_axis`",
}
PAGE = (Path(__file__).parents[2] / "docs/how-to/ragged.md").read_text()


@pytest.mark.parametrize("message", LISTED)
def test_what_is_refused_is_on_the_page(message):
    assert LISTED[message] in PAGE


def outcome(seed: int, mode: object) -> str:
    """``equal``, ``refused``, or ``undefined``: the function has no value, or no derivative, on these lanes."""
    program, lengths = random_program(seed, "lanes"), LENGTHS[seed % len(LENGTHS)]
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


@pytest.mark.parametrize(("mode", "count"), [(eager_known, 8), (vmap_values, 4)], ids=["eager_known", "vmap_values"])
def test_programs_equal_the_loop_and_none_is_refused(mode, count):
    """The page lists refusals; these programs are outside of it."""
    assert [(seed, found) for seed in range(count) if (found := outcome(seed, mode)) != "equal"] == []


@pytest.mark.parametrize("mode", MODES[1:], ids=lambda mode: mode.__name__)
def test_every_way_to_run_a_program_equals_the_loop(mode):
    assert [outcome(seed, mode) for seed in range(40, 42)] == ["equal", "equal"]


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(1000, 5000, 25))
def test_programs_equal_the_loop(first):
    for seed in range(first, first + 25):
        outcome(seed, MODES[seed % len(MODES)])
