"""Coverage counts each line of the package once."""

import sys

from handlax.effects.base.errors import shortened
from handlax.testing.fuzzing.line_coverage import LineCoverage


def test_a_line_is_counted_once():
    with LineCoverage() as coverage:
        counts = [coverage.take() for text in ("short", "little", 30 * "long") if shortened(text, 14)]
    assert counts[0] > 1 and counts[1] == 0 and counts[2] == 2


def test_lines_outside_of_the_package_and_of_the_block_are_not_counted():
    with LineCoverage() as coverage:
        sorted([2, 1], key=lambda x: -x)
    shortened("short", 14)
    assert coverage.take() == 0


def test_the_tracer_in_force_is_put_back():
    before = sys.gettrace()
    with LineCoverage():
        shortened("short", 14)
    assert sys.gettrace() is before
