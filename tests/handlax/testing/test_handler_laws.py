"""The conformance kit: handlers that keep the law pass, one that does not is found."""

from __future__ import annotations

import types

import numpy as np
import pytest
from helpers.failing_laws import failing, under

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import operations as o
from handlax.effects.trees import pytrees
from handlax.interpreters.batching.batch import Batch
from handlax.interpreters.core.record import Record
from handlax.interpreters.handlers.installation import NO_STATE
from handlax.library import fresh_key, reader, seed, state, writer
from handlax.operations import Sin
from handlax.testing import CONTROL, HANDLER_LAWS, UNROLLED, Law, LawFails, Nest, check_handler, law
from handlax.testing.drawn_programs import DrawnPrograms
from handlax.testing.handler_laws import HandlerCase, lacks, log_values


@hx.effect(vmap="per_lane")
class Count:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Mean:
    def result_type(op, x):
        return x


def held(report):
    return {law.name for law, *_ in report.held}


def gather(log):
    """The values of a log that were written, in one array whose order says nothing."""
    parts = [np.zeros(0)]
    for entry in log:
        taken, value = (entry.taken, entry.value) if isinstance(entry, hx.When) else (True, entry)
        value = np.asarray(pytrees.leaves(value)[0])
        parts.append(value[np.broadcast_to(np.asarray(taken), value.shape)])
    return np.sort(np.concatenate([part.reshape(-1) for part in parts]))


def test_the_writer_of_the_library_passes_where_lengths_are_known():
    report = check_handler(writer, (), performs=lambda x: hx.tell(x), examples=1)
    assert "unknown length" in report.refused["while_loop"]
    assert "prefix" in held(report)


def test_checks_of_the_library_pass():
    def noted(f):
        error, y = hx.checkify(f)(np.float64(0.5))
        return error.get(), float(y)

    def f(x):
        def body(c, _):
            hx.check(c < 3.0, "small")
            return c * 2.0, None

        return lax.scan(body, x, None, 5)[0]

    plain = noted(f)
    assert plain == noted(hx.jit(f)) and "small" in plain[0] and plain[1] == 16.0


def test_what_counts_costs_passes():
    nest = lambda x: lax.scan(lambda c, _: (hnp.sin(c) * c, None), x, None, 5)[0]
    flat = lambda x: (lambda y: [y := hnp.sin(y) * y for _ in range(5)][-1])(x)
    one, two = (hx.costs(f)(np.float64(0.5)) for f in (nest, flat))
    assert one.flops == two.flops == 10


def count(x):
    return hx.perform(Count())


def perform_mean(x):
    return hx.perform(Mean(), x)


def maximum(s, op, x):
    return hnp.maximum(s, hnp.sin(x)), hnp.cos(x)


def counting(returns=None, **more):
    return hx.handler({Count: lambda n, op: (n + 1, None)}, returns=returns, **more)


@hx.effect(vmap="per_lane", diff="stop")
class NewKey:
    def result_type(op):
        return hx.random.key(0).type


# Handlers that keep the laws, from a state, on programs that perform this: one of each kind, and others like them.
PASSING = {
    "a state that answers": (
        hx.handler({Mean: lambda s, op, x: ({"n": s["n"] + 1, "sum": s["sum"] + hnp.sin(x)}, hnp.cos(s["sum"]))}),
        {"n": 0, "sum": np.zeros(())}, perform_mean),
    "no state": (hx.handler({Mean: lambda op, x: hnp.tanh(x)}), NO_STATE, perform_mean),
    "a maximum": (hx.handler({Mean: maximum}, moves=hx.merge(hnp.maximum, -np.inf)), np.zeros(()), perform_mean),
    "an exception as a value": (
        hx.handler({Mean: hx.final(lambda op, x: (False, hnp.cos(x)))}, returns=lambda y: (True, y)), NO_STATE,
        perform_mean),
}
LIKE_THEM = {
    "a counter": (counting(), 0, count),
    "a sum": (counting(moves=hx.merge(lambda a, b: a + b, 0)), 0, count),
    "the state of the library": (
        state, {"sum": np.zeros(())}, lambda x: hx.modify("sum", lambda s: hnp.tanh(s + x))),
    "the reader of the library": (reader(scale=np.array(0.5)), NO_STATE, lambda x: hx.ask("scale") * x),
    "the keys of the README": (
        hx.handler({NewKey: lambda key, op: tuple(hx.random.split(key))}), hx.random.key(0),
        lambda x: hx.random.normal(hx.perform(NewKey()))),
}


@pytest.mark.parametrize(("handler", "start", "performs"), [
    *PASSING.values(), *[pytest.param(*each, marks=pytest.mark.sweep) for each in LIKE_THEM.values()],
], ids=[*PASSING, *LIKE_THEM])
def test_a_handler_that_keeps_the_laws_passes(handler, start, performs):
    report = check_handler(handler, start, performs=performs, examples=1)
    assert {"unrolled", "jit"} <= held(report)


# For each law a handler for which it fails alone, from a state, on programs that perform this.


def counting_too(kind):
    """Also an operation with bodies, which it hands on with the effects in them; those of Python have none."""
    return hx.handler({Count: lambda n, op: (n + 1, None), kind: lambda n, op, *xs: (n + 1, hx.perform(op, *xs))})


def last_three(log, op, x):
    return ((*log[-2:], x) if isinstance(log, tuple) else (*log, x)), x


def not_of_equals(a, b):
    """The sum, but of equal numbers."""
    return a + b + (a == b)


def summed(s, op, x):
    return s + hnp.sin(x), x


@hx.custom_jvp
def sine(x):
    return hnp.sin(x)


sine.defjvp(lambda xs, dxs: (2 * hnp.sin(xs[0]), hnp.cos(xs[0]) * dxs[0]))
twice_sine = lambda n, op, x: (n, 2 * hx.perform(op, x))

SEEN: list[int] = []


def rising(n, op):
    """Counts by two from when it was called for a count above 2, which a program gets to from another start alone."""
    if not under(object):
        SEEN.append(int(n))
    return n + 1 + (max(SEEN, default=0) > 2), None


WRONG = {
    "again": (hx.handler({Count: rising}), 0, count),
    "typing": (hx.handler({Count: lambda n, op: (n + 1.0, None)}), 0, count),
    "prefix": (hx.handler({Mean: last_three}, moves=hx.append), (), perform_mean),
    "merge": (hx.handler({Mean: summed}, moves=hx.merge(not_of_equals, 0.0)), 0.5, perform_mean),
    "unrolled": (counting_too(o.Cond), 0, count),
    "jit": (counting(lambda n, y: (n + under(Record), y)), 0, count),
    "inner jit": (counting_too(o.Call), 0, count),
    "checkpoint": (counting_too(o.Checkpoint), 0, count),
    "in a loop": (counting_too(o.Scan), 0, count),
    "in lanes": (counting_too(o.Lanes), 0, count),
    "lanes": (counting(lambda n, y: (n + under(Batch), y)), 0, count),
    "derivative": (hx.handler({Sin: lambda op, x: sine(x)}), NO_STATE, hnp.sin),
    "idle": (counting(otherwise=twice_sine, over=lambda op: op.name == "sin"), 0, count),
}
NEST = Nest("""def program(x, v, w, k, p):
    y = hx.tell(hx.cond(p, hnp.sin, hnp.cos, x))
    return (y, hnp.sin(hx.tell(y)), v)
""")


def test_each_law_has_a_handler_for_which_it_fails():
    assert [*WRONG] == [law.name for law in HANDLER_LAWS]


def case_of(name):
    handler, start, performs = WRONG[name]
    SEEN.clear()
    return HandlerCase(handler, start, performs, log_values if handler.moves == hx.append else lambda state: state)


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_its_law_alone(name):
    case = case_of(name)
    assert failing(HANDLER_LAWS, (case, NEST, 0), lacks=lacks(case)) == [name]


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_programs_that_are_drawn(name):
    case, law = case_of(name), next(law for law in HANDLER_LAWS if law.name == name)
    with hx.configure(default_float="float64"):
        drawn = DrawnPrograms(case)
        examples = ((case, drawn.example(law, k, k == 0), k) for k in range(5))
        assert any(failing([law], example, lacks={}) for example in examples)


def test_a_clause_that_answers_by_the_state_of_its_first_call_is_found():
    kept = {}
    first = hx.handler({Mean: lambda s, op, x: (s + 1.0, kept.setdefault("start", s))})
    with pytest.raises(LawFails, match="its answers depend on no earlier call") as found:
        check_handler(first, np.zeros(()), performs=perform_mean, examples=1, seconds=2.0)
    assert isinstance(found.value.__cause__, hx.errors.EscapedBox)


def plus_one(s, op, x):
    return s + 1.0, x


@pytest.mark.parametrize(("clause", "op", "unit", "start", "part"), [
    (plus_one, lambda a, b: a + b, 1.0, 3.5, "unit of merge, left"),
    (plus_one, lambda a, b: 2.0 * a + b, 0.0, 3.5, "unit of merge, right"),
    (plus_one, lambda a, b: a - b, 0.0, 3.5, "unit of merge, left"),
    (maximum, hnp.maximum, 0.0, -5.0, "unit of merge, left"),  # the states that programs reach from it are above
    (plus_one, lambda a, b: hnp.where(b == 0, a, hnp.where(a == 0, b, a - b)), 0.0, 3.5, "merge is commutative"),
    (plus_one, lambda a, b: hnp.where(a * b == 0, a + b, (a + b) / 2), 0.0, 3.5, "merge is associative"),
    (lambda s, op, x: (2.0 * s + 1.0, x), lambda a, b: a + b, 0.0, 3.5, "a merged state"),
    (lambda s, op, x: (s + 1.0, hnp.cos(x + s)), lambda a, b: a + b, 0.0, 3.5, "an answer reads the state"),
    (lambda s, op, x: (s + 1.0, hnp.cos(x + s)), lambda a, b: a + b, 0.0, 0.0, "an answer reads the state"),
])
def test_a_merge_that_breaks_a_law_is_found(clause, op, unit, start, part):
    """Also where the start is the unit, from which everything would be the same."""
    merged = HandlerCase(hx.handler({Mean: clause}, moves=hx.merge(op, unit)), start, perform_mean, lambda state: state)
    (law,) = [each for each in HANDLER_LAWS if each.name == "merge"]
    with pytest.raises(AssertionError, match=part):
        law.check(merged, NEST, 0)


def test_answers_that_are_told_apart_by_their_size_alone_are_found():
    """Those of loops and lanes are larger; what programs make of a number keeps apart large ones, too."""
    large = hx.handler({Mean: lambda op, x: x + 100.0 + under(Record)})
    laws = [law for law in HANDLER_LAWS if law.name == "unrolled"]
    with pytest.raises(LawFails, match="loops, branches and calls"):
        check_handler(large, performs=perform_mean, laws=laws, examples=1, seconds=1.0)


def test_answers_without_arrays_are_not_compared_and_the_report_says_so():
    silent = hx.handler({Mean: lambda op, x: x}, returns=lambda y: None)
    laws = [law for law in HANDLER_LAWS if law.name in ("unrolled", "jit")]
    report = check_handler(silent, performs=perform_mean, laws=laws, examples=1)
    assert report.left_out == dict.fromkeys(["unrolled", "jit"], "there are no arrays to compare, in None")


@pytest.fixture
def clock(monkeypatch):
    """The time of a check, in seconds, of which each probe takes ten."""
    seconds, probe = [0.0], DrawnPrograms.probe

    def slow_probe(*args):
        seconds[0] += 10.0
        probe(*args)

    monkeypatch.setattr(law, "time", types.SimpleNamespace(monotonic=lambda: seconds[0]))
    monkeypatch.setattr(DrawnPrograms, "probe", slow_probe)
    return seconds


@pytest.mark.parametrize(("seconds", "examples"), [(100.0, 1), (10_000.0, 3)])
def test_what_a_handler_refuses_is_found_out_within_the_seconds(clock, seconds, examples):
    laws = [law for law in HANDLER_LAWS if law.name == "idle"]
    (held,) = check_handler(counting(), 0, performs=count, laws=laws, examples=3, seconds=seconds).held
    assert held.examples == examples


def test_a_program_that_fails_is_made_smaller_within_the_seconds(clock):
    def fails_slowly(case, nest, seed):
        clock[0] += 100.0
        raise AssertionError("it fails")

    with pytest.raises(LawFails):
        check_handler(counting(), 0, performs=count, laws=[Law("none", "nothing holds", fails_slowly)], seconds=800.0)
    assert clock[0] <= 1000.0  # the last one, and once more


def test_a_handler_that_draws_gives_every_compilation_the_same_numbers():
    def draw(x):
        return hx.random.uniform(fresh_key("draw"), dtype="float64")

    def f(xs):
        return lax.scan(lambda c, x: (c + draw(x), draw(x)), 0.0, xs)

    xs = np.zeros(4)
    run = seed(f, hx.random.key(0))
    for one, two in zip(pytrees.leaves(run(xs)), pytrees.leaves(hx.jit(run)(xs))):
        assert one == pytest.approx(two)


def test_a_handler_that_breaks_the_law_is_found_and_the_nest_is_shown():
    times = []

    def forgetful(n, op):
        times.append(1)
        return n + (len(times) % 2), None  # no pure function of the state

    with pytest.raises(AssertionError, match=r"(?s)def program"):
        check_handler(hx.handler({Count: forgetful}), 0, performs=count, examples=3, seconds=1.0)


def test_what_fails_before_it_performs_anything_shows_its_own_error():
    with pytest.raises(ZeroDivisionError):
        check_handler(counting(), 0, performs=lambda x: 1 / 0)


def test_logs_pass_where_lengths_are_known():
    log = hx.handler({Mean: lambda log, op, x: ((*log, x), x)}, moves=hx.append)

    def f(x):
        def body(c, y):
            return hx.perform(Mean(), c) * y, lax.cond(y > 1, lambda: hx.perform(Mean(), y), lambda: y)

        return lax.scan(body, x, np.arange(1.0, 4.0))[0]

    def unrolled(x):
        for y in np.arange(1.0, 4.0):
            x, _ = hx.perform(Mean(), x) * y, hx.perform(Mean(), lift(y)) if y > 1 else y
        return x

    lift = hnp.asarray
    one, two = (gather(hx.handle(log, ())(g)(np.ones(()))[0]) for g in (f, unrolled))
    assert one.tolist() == two.tolist()


def test_a_clause_that_takes_the_rest_is_checked_where_it_can_cross():
    both = hx.ctl(lambda resume, op, x: 0.5 * (resume(x) + resume(hnp.sin(x))))
    half = hx.handler({Mean: both}, returns=lambda y: 2.0 * y)
    report = check_handler(half, performs=perform_mean, examples=1)
    assert {"scan", "while_loop"} <= {*report.refused} and "jit" in held(report)


def test_a_loop_of_no_iterations_performs_nothing():
    """Also where Python's loops are the reference, which need the types of its results."""
    text = "def program(x, v, w, k, p):\n    return hx.scan(lambda c, x: (hx.tell(c), hx.tell(c)), x, v[:0])\n"
    counter = hx.handler({Count: lambda n, op: (n + 1, None), Mean: lambda n, op, x: (n + 1, x)})
    tell = lambda x: [x, hx.perform(Count()), hx.perform(Mean(), x)][0]
    for control in (CONTROL, UNROLLED):
        nest = Nest(text)
        count, (c, ys) = hx.handle(counter, 0)(nest.by(control, tell=tell))(*nest.inputs(0))
        assert (int(count), c.shape, ys.shape) == (0, (), (0,))


def only_shallow(log, op, x):
    """Appends twice in a body that is traced, where the log is no tuple."""
    return (*log, x) if isinstance(log, tuple) else (*log, x, x), x


def raising(log, op, x):
    if not isinstance(log, tuple):
        raise ValueError("no tuple")
    return (*log, x), x


@pytest.mark.parametrize(("clause", "message"), [
    (lambda log, op, x: ((x,), x), "may only append to its log"),
    (lambda log, op, x: ((*log[:3], x), x), "may only append to its log"),
    (lambda log, op, x: (log[:-1], x), "may only append to its log"),
    (lambda log, op, x: (log, hnp.cos(x) * len(log)), "may only append to its log"),
    (only_shallow, "got .*expected|shapes"),
    (raising, "ValueError: no tuple"),
])
def test_a_log_that_is_broken_fails_and_is_not_left_out(clause, message):
    log = hx.handler({Mean: clause}, moves=hx.append)
    with pytest.raises(LawFails, match=rf"(?s){message}.*def program"):
        check_handler(log, (), performs=perform_mean, examples=1, seconds=1.0)


def test_what_a_handler_refuses_is_reported_with_the_text_of_the_refusal():
    log = hx.handler({Mean: lambda log, op, x: ((*log, x), x)}, moves=hx.append)
    laws = [law for law in HANDLER_LAWS if law.name == "idle"]
    report = check_handler(log, (), performs=perform_mean, laws=laws, examples=1)
    assert "cannot cross a loop of unknown length" in report.refused["while_loop"]
    assert "scan" not in report.refused and report.refused["while_loop"] in str(report)


@pytest.mark.parametrize(("performs", "found"), [
    (lambda x: x, "it performs nothing"),
    (lambda x: hnp.sin(x), "it performs sin"),
    (lambda x: hx.perform(Count()), "it performs count"),
])
def test_a_function_that_performs_nothing_for_the_handler_is_refused(performs, found):
    answering = hx.handler({Mean: lambda op, x: hnp.tanh(x)})
    with pytest.raises(hx.errors.BadArgument, match=f"an operation that .*Mean.* answers, {found}"):
        check_handler(answering, performs=performs)


def test_states_of_a_handler_of_pure_operations_are_not_compared():
    """Python's loops perform other operations than those of the library: ``i + 1`` and ``xs[i]``."""
    counting = hx.handler(otherwise=lambda n, op, *xs: (n + 1, hx.perform(op, *xs)), over=hx.is_pure)
    report = check_handler(counting, 0, performs=hnp.sin, examples=1)
    assert {"unrolled", "jit", "lanes"} <= held(report) and "pure operations" in report.left_out["idle"]


def test_what_a_handler_of_pure_operations_changes_is_compared():
    seen = []

    def other_in_bodies(op, x):
        seen.append(op)
        return hx.perform(op, x) * (1 + len(seen) % 2)

    with pytest.raises(LawFails, match="def program"):
        check_handler(hx.handler({Sin: other_in_bodies}), performs=hnp.sin, examples=3, seconds=1.0)


def test_the_law_and_the_statement_of_one_name_are_two():
    tossed = hx.handler({Mean: hx.ctl(lambda resume, op, x: 0.5 * (resume(x) + resume(hnp.sin(x))))})
    laws = [law for law in HANDLER_LAWS if law.name in ("jit", "checkpoint")]
    report = check_handler(tossed, performs=perform_mean, laws=laws, examples=1)
    assert "jit" in held(report) and not {*report.refused} & {*report.left_out}
