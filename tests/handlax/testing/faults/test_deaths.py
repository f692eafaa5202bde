"""One process of a group is killed before each joint action, and within it; the others end and name it."""

import pytest

from handlax.testing.faults import deaths

JOIN = "import handlax as hx\nhx.distributed.initialize(initialization_timeout=60)\n"
PROGRAM = JOIN + """
import numpy as np
from handlax import NamedSharding, P, lax
mesh = hx.make_mesh((hx.process_count(),), ("i",))
x = hx.make_array_from_process_local_data(NamedSharding(mesh, P("i")), np.ones(1, np.float32))
total = hx.jit(hx.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
for _ in range(2):
    assert float(total(x)[0]) == hx.process_count()
"""
MEETING = JOIN + """
from handlax.experimental import multihost_utils
multihost_utils.sync_global_devices("here")
"""


@pytest.mark.parametrize(("program", "victim", "within", "processes"), [
    pytest.param(MEETING, 1, False, 2, marks=pytest.mark.sweep),
    pytest.param(MEETING, 0, True, 2, marks=pytest.mark.sweep),
    pytest.param(PROGRAM, 0, False, 2, marks=pytest.mark.sweep),
    pytest.param(PROGRAM, 1, True, 3, marks=pytest.mark.sweep),
])
def test_the_others_end_and_name_who_was_killed(program, victim, within, processes):
    faults = [*deaths(program, processes, victim=victim, within=within)]
    assert len(faults) > 1 and all(f"process {victim} has left" in str(fault.left) for fault in faults[:-1])


def test_who_is_killed_before_the_first_meeting_is_named():
    assert "process 1 has left" in str(next(deaths(MEETING)).left)


def test_another_failure_of_the_others_is_found():
    with pytest.raises(AssertionError, match="must name process 1, got the status 1"):
        next(deaths(JOIN + "1 / hx.distributed.global_state.process_id\nhx.distributed.shutdown()"))
