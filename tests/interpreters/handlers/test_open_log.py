"""An append clause has one meaning in every body; where it would have another, it is refused."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax


@hx.effect(vmap="per_lane", diff="stop")
class Write:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "int32")


def written(clause, f):
    return hx.handle(hx.handler({Write: clause}, moves=hx.append), ())(f)()


def twice():
    return hx.perform(Write()) + hx.perform(Write())


BODIES = {
    "jit": lambda: hx.jit(twice)(),
    "scan": lambda: lax.scan(lambda c, _: (c, twice()), 0, None, 3)[1],
    "cond": lambda: hx.jit(lambda p: lax.cond(p, twice, lambda: np.int32(0)))(True),
    "vmap": lambda: hx.vmap(lambda x: x + twice())(np.arange(3)),
    "nest": lambda: lax.scan(lambda c, _: (c, hx.jit(twice)()), 0, None, 3)[1],
}
EXTENDING = {
    "unpacked": lambda log, op: ((*log, 3), 1),
    "added": lambda log, op: (log + (3,), 1),
    "two": lambda log, op: ((*log, 3, 4), 1),
    "unchanged": lambda log, op: (log, 1),
}
READING = {
    "length": lambda log, op: ((*log, len(log)), len(log)),
    "count": lambda log, op: (log, sum(1 for _ in log)),
    "copied": lambda log, op: ((*log, 3), len([*log])),
    "last": lambda log, op: ((*log, 3), log[-1] if log else 0),
    "sum": lambda log, op: ((*log, 3), sum(log)),
    "filtered": lambda log, op: ((*[x for x in log if x > 3], 3), 1),
    "dropped": lambda log, op: ((3,), 1),
    "shortened": lambda log, op: ((*log[1:], 3), 1),
    "compared": lambda log, op: ((*log, 3), int(log == ())),
    "contained": lambda log, op: ((*log, 3), int(3 in log)),
}


@pytest.mark.parametrize("clause", EXTENDING)
@pytest.mark.parametrize("body", BODIES)
def test_a_clause_that_only_appends_crosses_every_body(body, clause):
    log, y = written(EXTENDING[clause], BODIES[body])
    entries, _ = written(EXTENDING[clause], twice)
    assert len(log) == len(entries)
    assert set(np.ravel(np.asarray(y)).tolist()) <= {2, 3, 4}


@pytest.mark.parametrize("clause", READING)
@pytest.mark.parametrize("body", BODIES)
def test_a_clause_that_reads_or_drops_entries_is_refused_in_a_body(body, clause):
    with pytest.raises(errors.CannotCross, match="only append") as caught:
        written(READING[clause], BODIES[body])
    assert caught.value.hint


def test_outside_of_bodies_a_clause_reads_the_whole_log():
    log, y = written(READING["length"], lambda: [hx.perform(Write()) for _ in range(4)])
    assert [*map(int, y)] == [*map(int, log)] == [0, 1, 2, 3]
