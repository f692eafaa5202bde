"""Programs one equation at a time, forwards, backwards, into loops, and differently."""

import numpy as np
import pytest
from helpers.random_programs import programs
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.base.source_locations import NOWHERE
from handlax.effects.operations.elementwise.arithmetic import Add, Mul, Neg
from handlax.effects.types.dtypes import float64, int32
from handlax.interpreters.inspection.stepper import Stepper
from handlax.testing.generator.equations import arguments

exact = {"dtypes": (float64, int32), "kinds": (Add, Mul, Neg)}


def bits(xs):
    return [(x.type, x.value.tobytes()) for x in xs]


def line_of(function, offset):
    return f"test_stepper.py:{function.__code__.co_firstlineno + offset}"


def stepper_of(program, args):
    return hx.step(program)(*args)


def summed(xs):
    """A scan of four runs: the carry is the sum so far, what it gives the squares."""

    def body(total, x):
        square = x * x
        return total + square, square

    return lax.scan(body, hnp.float32(0.0), xs)


def doubled(x):
    return lax.while_loop(lambda y: y < 10.0, lambda y: y * 2.0, x)


def at_loop(f, *args):
    s = hx.step(f)(*args)
    while not s.equation.op.bodied:
        s = s.forward()
    return s


@given(programs(**exact), st.data())
def test_the_end_is_what_the_function_gives_and_going_back_is_what_was_there(program, data):
    args = arguments(program)
    s = stepper_of(program, args)
    assert bits(s.end().results) == bits(program(*args))
    n = data.draw(st.integers(0, len(program)))
    assert s.forward(n).back(n) is s
    assert bits(v for _, v in s.end().to(n)) == bits(v for _, v in s.forward(n))


@given(programs(**exact))
def test_into_a_call_and_out_again_is_a_step_forward(program):
    s = stepper_of(program, arguments(program))
    while not s.done:
        ahead = s.forward()
        if s.equation.op.bodied:
            behind = s.into().forward(1).out()
            assert (behind.at, bits(behind.values)) == (ahead.at, bits(ahead.values))
            assert behind.back().outer is s
        s = ahead


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("reverse", [False, True])
def test_into_any_run_of_a_loop_and_out_again_is_a_step_forward(k, reverse):
    def f(xs):
        return lax.scan(lambda c, x: (c * 2 + x, c), 1, xs, reverse=reverse)

    s = hx.step(f)(hnp.array([3, 1, 4, 1]))
    assert bits(s.into(k).out().end().results) == bits(s.end().results)


def test_into_run_k_of_a_loop_has_the_carry_and_the_slice_of_that_run():
    s = at_loop(summed, hnp.array([1.0, 2.0, 3.0, 4.0], "float32")).into(2)
    assert [float(x) for _, x in s] == [5.0, 3.0]
    assert float(s.next_iteration()[0]) == 14.0
    assert s.next_iteration().next_iteration().outer is None


def test_a_value_changed_in_one_run_of_a_loop_is_what_the_later_runs_go_on_with():
    s = at_loop(summed, hnp.array([1.0, 2.0, 3.0, 4.0], "float32"))
    changed = s.into(1).forward().set("c", 100.0).out().end()
    total, squares = changed.result
    assert (float(total), squares.tolist()) == (1 + 100 + 9 + 16, [1.0, 100.0, 9.0, 16.0])
    assert [each.name for each in changed.compare(s.end())] == ["b", "c"]


def test_the_body_and_the_test_of_a_while_loop_are_entered_run_by_run():
    s = at_loop(doubled, 3.0)
    assert float(s.into(1)["a"]) == 6.0
    assert float(s.into(2, test=True)["a"]) == 12.0
    assert not s.into(2, test=True).end().results[0]
    assert s.into(2, test=True).next_iteration().outer is None
    with pytest.raises(errors.BadArgument, match="while has 2 iterations here, there is no iteration 2"):
        s.into(2)


def test_a_test_whose_answer_is_changed_decides_about_the_loop():
    s = at_loop(doubled, 3.0)
    test = s.into(1, test=True).end()
    stopped = test.set(test.program.outs[0], False).out()
    assert float(stopped.last_results[0]) == 6.0
    test = s.into(2, test=True).end()
    assert float(test.set(test.program.outs[0], True).out().last_results[0]) == 24.0


@pytest.mark.parametrize(("index", "answer"), [(-3, 1.0), (0, 1.0), (1, 0.0), (7, 2.0)])
def test_the_branch_that_is_taken_is_the_one_entered(index, answer):
    def f(i, x):
        return lax.switch(i, [hnp.exp, hnp.sin, lambda x: x + 2.0], x)

    s = at_loop(f, index, 0.0)
    assert float(s.into().end().results[0]) == answer
    assert float(s.into().out().end().result) == answer
    assert len(list(s.into().program.ops)) == 1


def test_the_first_nan_is_found_in_the_run_that_makes_it():
    def f(xs):
        def body(c, x):
            y = hnp.log(x - 2.0)
            return c + y, y

        return lax.scan(body, 0.0, xs)[0] * 2.0

    s = hx.step(f)(hnp.array([5.0, 4.0, 1.0, 3.0])).to_nan()
    assert (s.last.op.name, s.iteration.at, s.outer.equation.op.name) == ("log", 2, "scan")
    assert str(s.last.site) == line_of(f, 2)
    assert np.isnan(s.last_results[0].value)
    assert not any(np.isnan(x.value).any() for _, x in s.back())
    assert hx.step(f)(hnp.array([5.0])).to_nan().done


def test_a_condition_may_be_asked_in_every_sub_program():
    def f(xs):
        return lax.scan(lambda c, x: (c + hnp.where(x > 2.0, 0.0, hnp.log(x)), None), 0.0, xs)[0]

    def infinite(s):
        return any(np.isinf(y.value).any() for y in s.last_results if y.value.dtype.kind == "f")

    s = hx.step(lambda xs: hnp.minimum(f(xs), 1.0))(hnp.array([1.0, 3.0]))
    assert s.to(infinite).done
    inner = hx.step(f)(hnp.array([1.0, 3.0])).to(lambda s: s.iteration is not None and s.iteration.at == 1, inside=True)
    assert (inner.iteration.at, inner.at) == (1, 1)


def test_a_condition_is_looked_for_in_later_runs_and_behind_the_loop():
    s = at_loop(summed, hnp.array([1.0, 2.0, 3.0, 4.0], "float32")).into(1)
    found = s.to(lambda s: any(float(y) == 16.0 for y in s.last_results if not y.shape))
    assert (found.iteration.at, found.last.op.name) == (3, "mul")
    assert found.to(lambda s: s.outer is None).outer is None


def test_a_line_is_found_in_sub_programs_and_again_in_the_next_iteration():
    s = hx.step(summed)(hnp.array([1.0, 2.0], "float32"))
    line = line_of(summed, 4)
    first = s.to(line)
    assert (str(first.site), first.iteration.at, first.at) == (line, 0, 0)
    second = first.to(line)
    assert (str(second.site), second.iteration.at) == (line, 1)
    with pytest.raises(errors.BadArgument, match=f"no equation ahead is {line}"):
        second.to(line)
    assert str(s.to(line.partition(":")[2]).site) == line


def test_an_operation_is_found_in_sub_programs_too():
    s = hx.step(summed)(hnp.array([1.0, 2.0], "float32"))
    assert (s.to("add").iteration.at, s.to("add").to("add").iteration.at) == (0, 1)
    with pytest.raises(errors.BadArgument, match=r"no equation ahead is log.*\n.*\n.*those ahead: scan"):
        s.to("log")


def test_a_stepper_forks_and_neither_run_sees_the_other():
    def f(x):
        y = hnp.sin(x)
        return y * 2.0 + x

    s = hx.step(f)(1.0).forward()
    other = s.set("b", 10.0)
    assert [float(t.end().result) for t in (other, s)] == [21.0, float(hnp.float32(f(1.0)))]
    found = s.end().compare(other.end())
    assert [(each.name, each.elements) for each in found] == [("b", 1), ("c", 1), ("d", 1)]
    assert found.first.most == pytest.approx(10.0 - np.sin(1.0))
    assert str(found.first.site) == line_of(f, 1)
    assert str(found.first) == f"b: f32[]~  1 of 1 elements, by {found.first.most:.6g}  # {line_of(f, 1)}"
    assert "#" not in str(found.first._replace(site=NOWHERE))
    assert not s.compare(hx.step(f)(1.0).end())
    assert str(s.compare(s)) == "no difference"


def test_nan_does_not_differ_from_nan_and_differs_from_a_number():
    s = hx.step(lambda x: hnp.log(x))(-1.0).end()
    assert not s.compare(s.set("b", float("nan")))
    assert np.isnan(s.compare(s.set("b", 1.0)).first.most)


def test_runs_of_different_programs_are_not_compared():
    with pytest.raises(errors.BadArgument, match="compare: both must be at the same program"):
        hx.step(hnp.sin)(1.0).compare(hx.step(hnp.cos)(1.0))


def test_a_change_has_the_type_of_the_value():
    s = hx.step(lambda x: x + 1.0)(hnp.ones(3, "float32"))
    assert s.set("a", np.zeros(3, "float32")).end().result.tolist() == [1.0] * 3
    with pytest.raises(errors.ShapeMismatch, match=r"a is f32\[3\], got f32\[2\]"):
        s.set("a", np.zeros(2, "float32"))
    with pytest.raises(errors.DTypeMismatch, match=r"a is f32\[3\], got i32\[3\]"):
        s.set("a", np.zeros(3, "int32"))
    with pytest.raises(errors.BadArgument, match="'b' is no value computed so far; the last is 'a'"):
        s.set("b", 1.0)
    with pytest.raises(errors.ConcretizationError, match=r"set: values must be known, got f32\[3\] of jit"):
        hx.jit(lambda y: s.set("a", y))(np.zeros(3, "float32"))


def test_effects_are_performed_when_their_equation_is():
    @hx.effect
    class Tick:
        def result_type(op):
            return None

    def f(x):
        hx.perform(Tick())
        return x + 1.0

    ticks = hx.handler({Tick: lambda n, op: (n + 1, None)})
    s = hx.step(f)(1.0)
    with pytest.raises(errors.UnhandledEffect):
        s.forward()
    assert hx.handle(ticks, 0)(lambda: s.forward().at)() == (1, 1)
    count, y = hx.step(hx.handle(ticks, 0)(f))(1.0).end().result
    assert (int(count), float(y)) == (1, 2.0)


def test_effects_in_a_loop_are_performed_once_each_wherever_one_goes_in():
    seen = []

    @hx.effect(vmap="per_lane")
    class Note:
        def result_type(op, x):
            return None

    def f(xs):
        def body(c, x):
            hx.perform(Note(), x)
            return c + x, None

        return lax.scan(body, 0.0, xs)[0]

    def note(op, x):
        seen.append(float(x))

    def walk():
        s = hx.step(f)(hnp.array([1.0, 2.0, 3.0]))
        s.into(1).out()
        s.to(lambda s: float(s.last_results[-1] if s.last_results else 0.0) == 6.0)

    hx.handle(hx.handler({Note: note}))(walk)()
    assert seen == [1.0, 2.0, 3.0] * 2


def test_what_a_transformation_performs_is_stepped_through():
    s = hx.step(hx.grad(lambda x: hnp.sin(x) * x))(2.0)
    assert float(s.end().result) == pytest.approx(np.cos(2.0) * 2.0 + np.sin(2.0), rel=1e-6)


def test_boxes_are_not_stepped_through():
    with pytest.raises(errors.ConcretizationError, match=r"step: values must be known, got f32\[\]~ of jit"):
        hx.jit(lambda x: hx.step(hnp.sin)(x).end().result)(1.0)


def test_a_stepper_is_a_value():
    s = hx.step(hnp.sin)(1.0)
    assert isinstance(s, Stepper)
    with pytest.raises(AttributeError, match="steppers are immutable"):
        s.at = 1
    with pytest.raises(errors.BadArgument, match="there are no 1 moves to take back"):
        s.back()
    with pytest.raises(errors.BadArgument, match="1 equations are left"):
        s.result
    with pytest.raises(errors.BadArgument, match="the next equation must have a sub-program, sin has none"):
        s.into()
    with pytest.raises(errors.BadArgument, match="out: this is the outermost program"):
        s.out()


def test_a_moment_costs_little_however_many_values_there_are():
    def f(x):
        for _ in range(2000):
            x = x + 1.0
        return x

    s = hx.step(f)(0.0)
    moments = [s]
    while not moments[-1].done:
        moments.append(moments[-1].forward())
    assert float(moments[-1].result) == 2000.0
    assert [len(m.values) for m in moments] == list(range(1, 2002))
    assert moments[-1].to(7) is moments[7]
    assert moments[-1].start() is s


def test_a_stepper_shows_where_it_is():
    def f(x):
        y = hnp.sin(x)
        return y * y

    shown = repr(hx.step(f)(0.0).forward())
    assert shown.splitlines()[0] == "f: before equation 1 of 2"
    assert "      0 b: f32[]~ = sin a   = 0.0" in shown
    assert " ->   1 c: f32[]~ = mul b b" in shown
    assert f"# {line_of(f, 2)}: return y * y" in shown
    assert " -> return (0.0)" in repr(hx.step(f)(0.0).end())
    assert "<mark> -&gt;   1 c: f32[]~ = mul b b</mark>" in hx.step(f)(0.0).forward()._repr_html_()


def test_where_a_stepper_is_names_the_runs_around_it():
    s = at_loop(summed, hnp.array([1.0, 2.0], "float32")).into(1)
    assert repr(s).startswith("summed > scan, iteration 1 of 2 > body: before equation 0 of 2")
    s = at_loop(doubled, 3.0)
    assert repr(s.into(1, test=True)).startswith("doubled > while, test of iteration 1 > <lambda>: before")


def test_at_the_start_nothing_was_performed_and_at_the_end_nothing_is_next():
    s = hx.step(lambda x: hnp.sin(x))(0.5)
    assert (s.last, s.last_results) == (None, ()) and s.equation.op.name == "sin" and s.site.file == __file__
    e = s.end()
    assert (e.equation, e.site, e.last.op.name) == (None, None, "sin") and e.last_results == (e.result,)
    loop = at_loop(doubled, 1.0)
    assert type(loop.into().end().result) is tuple and loop.into().end().result == (2.0,)
    with pytest.raises(errors.BadArgument, match="'a' is no value computed so far; there are none"):
        hx.step(lambda: hnp.zeros(3))().number("a")


@pytest.mark.parametrize(("go", "words"), [
    (lambda s: s.to(-1), "to: equations are 0 to"), (lambda s: s.to(99), "to: equations are 0 to"),
    (lambda s: s.to("cos"), "to: no equation ahead is cos"), (lambda s: s.back(1), "back: this is the start"),
    (lambda s: s.into(-1), "there is no iteration -1"), (lambda s: s.into(9), "there is no iteration 9"),
    (lambda s: s.into(test=True), "into: scan has no test"), (lambda s: s.out(), "out: this is the outermost program"),
    (lambda s: s.next_iteration(), "next_iteration: this is the outermost program"),
    (lambda s: s.end().into(), "the program is at its end"), (lambda s: s.into().into(), "mul has none"),
    (lambda s: s.into(1).set("a", hx.numpy.int32(1)), "set: a is f32"),
])
def test_where_nothing_is_one_does_not_go(go, words):
    with pytest.raises(errors.HandlaxError, match=words):
        go(hx.step(summed)(hnp.arange(4.0)))


def test_a_scoped_effect_is_entered_by_its_clause_alone():
    @hx.effect(scopes=1)
    class Region:
        pass

    f = hx.handle(hx.handler({Region: lambda op, body, *xs: body(*xs)}))
    program = hx.make_program(lambda x: hx.perform(Region(), lambda x: hnp.sin(x), x))(1.0)
    with pytest.raises(errors.BadArgument, match="region has none: its clause decides when its function is executed"):
        f(lambda x: hx.step(program)(x).into())(1.0)


def test_an_operation_within_several_sub_programs_is_found():
    inner = hx.jit(lambda x: hnp.log(x) + 1.0)
    s = hx.step(lambda xs: lax.scan(lambda c, x: (c + inner(x), None), 0.0, xs)[0])(hnp.arange(1.0, 4.0))
    found = s.to("log")
    assert found.equation.op.name == "log" and found.outer.outer is not None


def test_the_first_value_that_differs_is_none_where_none_does():
    s = hx.step(lambda z: z * z)(np.complex64(1 + 2j)).end()
    other = s.set("b", np.complex64(1 - 2j))
    assert s.compare(s).first is None and str(s.compare(s)) == "no difference"
    assert s.compare(other).first.most == pytest.approx(abs((1 + 2j) ** 2 - (1 - 2j)))
