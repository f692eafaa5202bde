"""An append clause has one meaning in every body; where it would have another, it is refused."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.control.branches import Cond


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


@hx.effect(vmap="per_lane", diff="stop")
class Keep:
    def result_type(op, x):
        return None


keeping = hx.handler({Keep: lambda log, op, x: ((*log, x), None)}, moves=hx.append)
KINDS = [lambda x: x, lambda x: hnp.stack([x, -x]), lambda x: hnp.int32(x), lambda x: hx.random.key(hnp.uint32(x))]


def kept_by(i):
    """What branch ``i`` keeps, as functions of the operand: more or fewer entries, of types in another order."""
    return [KINDS[(i * k + k) % len(KINDS)] for k in range(1 + i % 3)]


def branching(count):
    def branch(i, x):
        for kind in kept_by(i):
            hx.perform(Keep(), kind(x + i))
        return x * i

    return lambda n, x: lax.switch(n, [lambda x, i=i: branch(i, x) for i in range(count)], x)


def shown(entry):
    key = isinstance(getattr(entry, "dtype", None), hx.dtypes.ExtendedDType)
    return np.asarray(hx.random.key_data(entry) if key else entry).tolist()


@pytest.mark.parametrize("chosen", range(5))
def test_branches_leave_their_entries_masked_in_their_order(chosen):
    log, y = hx.jit(lambda n, x: hx.handle(keeping, ())(branching(5))(n, x))(chosen, 7.0)
    owners = [(i, kind) for i in range(5) for kind in kept_by(i)]
    assert len(log) == len(owners) and float(y) == 7.0 * chosen
    for when, (i, kind) in zip(log, owners):
        assert bool(when.taken) == (i == chosen)
        expected = shown(kind(hnp.float32(7.0 + i)))
        assert shown(when.value) == (expected if i == chosen else (np.zeros_like(expected)).tolist())


def test_the_entries_of_branches_in_branches_are_masked_by_both():
    inner = lambda i: lambda n, x: branching(2)(n, x + 10 * i)
    f = lambda m, n, x: lax.switch(m, [inner(0), inner(1)], n, x)
    for m in range(2):
        for n in range(2):
            log, _ = hx.jit(lambda m, n: hx.handle(keeping, ())(f)(m, n, 1.0))(m, n)
            entry = [(bool(e.taken), bool(e.value.taken), shown(e.value.value)) for e in log]
            assert [a and b for a, b, _ in entry] == [
                (i, j) == (m, n) for i in range(2) for j in range(2) for _ in kept_by(j)
            ]
            values = [shown(kind(hnp.float32(1.0 + 10 * m + n))) for kind in kept_by(n)]
            assert [value for a, b, value in entry if a and b] == values


@pytest.mark.parametrize("count", [2, 5, 20])
def test_branches_share_the_results_that_their_entries_leave_by(count):
    """One for the result, the entry, whether it was taken, and the number of the branch."""
    branches = [lambda x, i=i: (hx.perform(Keep(), x * i), x)[1] for i in range(count)]
    program = hx.make_program(lambda n, x: hx.handle(keeping, ())(lax.switch)(n, branches, x))(0, 1.0)
    (cond,) = [op for op in program.ops if type(op) is Cond]
    assert [len(body.outs) for body in cond.bodies] == [4] * count
    assert len(program.ops) < 8 * count + 8


def test_an_entry_has_the_gradient_of_its_branch():
    def f(x, n):
        branches = [lambda x: (hx.perform(Keep(), x * x), x)[1], lambda x: (hx.perform(Keep(), hnp.sqrt(x)), x)[1]]
        (one, other), _ = hx.handle(keeping, ())(lax.switch)(n, branches, x)
        return one.value * 2 + other.value * 3

    assert float(hx.jit(hx.grad(f))(4.0, 0)) == 2 * 2 * 4.0
    assert float(hx.jit(hx.grad(f))(4.0, 1)) == 3 * 0.5 / 2.0
    assert float(hx.jit(hx.grad(f))(0.0, 0)) == 0.0


@hx.effect(vmap="per_lane", diff="stop")
class Note:
    def result_type(op, x):
        return None


def test_an_entry_of_a_branch_is_masked_along_its_leading_axes():
    write = lambda log, op, x: ((*log, {"rows": x, "sum": x.sum()}), None)
    log = hx.handler({Note: write}, moves=hx.append)

    def noted(x):  # two branches, one in the other; rows as long as there are of them
        rows = x * (hnp.arange(3.0) + 1)
        inner = lambda: lax.cond(x < 3, lambda: hx.perform(Note(), rows), lambda: None)
        lax.cond(x > 1, inner, lambda: None)

    (entry,), _ = hx.handle(log, ())(lambda: lax.map(noted, hnp.arange(1.0, 4.0)))()
    np.testing.assert_array_equal(entry.masked(-1.0)["rows"], [[-1, -1, -1], [2, 4, 6], [-1, -1, -1]])
    np.testing.assert_array_equal(entry.masked(-1.0)["sum"], [-1, 12, -1])
    (entry,), _ = hx.handle(log, ())(noted)(5.0)
    np.testing.assert_array_equal(entry.masked()["rows"], np.zeros(3))


@pytest.mark.parametrize("answer", [lambda log: log, lambda log: (log, 1)], ids=["alone", "in a tuple"])
def test_a_final_clause_does_not_give_the_log_of_a_branch(answer):
    clause = hx.final(lambda log, op: answer(log))
    ending = hx.handler({Write: clause}, moves=hx.append, returns=lambda log, y: answer(log))
    f = hx.handle(ending, ())(lambda x: lax.cond(x > 0, lambda: hx.perform(Write()), lambda: 0))
    with pytest.raises(errors.CannotCross, match="may only append to its log") as error:
        f(1.0)
    assert "hx.carry" in error.value.hint


def test_a_clause_that_drops_the_last_entries_of_a_body_is_refused():
    def clause(log, op):
        head, *known = log
        return ((head,) if known else (head, 3)), 1

    with pytest.raises(errors.CannotCross, match="may only append"):
        written(clause, BODIES["scan"])
