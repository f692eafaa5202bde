"""The table of docs/how-to/faults.md: what happens to one process of a job ends the job as it is said there."""

import pytest
from helpers.chosen_cases import rest_in_sweep
from helpers.faulty_jobs import (
    CASES,
    Case,
    is_done_whatever_is_said_at_the_port,
    seconds_until_the_others_end,
    the_second_of_two_launches_is_refused,
)

FEW = (Case("killed", "in", "saving", 0), Case("disk", "in", "saving", 1))


@pytest.mark.parametrize("case", rest_in_sweep(CASES, FEW), ids=str)
def test_the_others_are_told_what_is_saved_is_whole_and_the_job_goes_on(case, tmp_path):
    seconds_until_the_others_end(case, tmp_path)


def test_strangers_at_the_port_change_nothing(tmp_path):
    assert is_done_whatever_is_said_at_the_port(tmp_path) > 0


@pytest.mark.sweep
def test_of_two_jobs_at_one_address_one_is_done(tmp_path):
    the_second_of_two_launches_is_refused(tmp_path)
