"""The debugger at a place of a program, by scripts in place of a terminal."""

import io

import numpy as np
import pytest

import handlax as hx
from handlax import debug, errors, lax
from handlax import numpy as hnp


def session(commands, function, *args, wrap=hx.jit, **options):
    """What the debugger answers to these commands, for the function with a stop in it."""
    answers = io.StringIO()

    def stop():
        debug.breakpoint(stdin=io.StringIO("\n".join(commands)), stdout=answers, **options)

    wrap(lambda *xs: function(stop, *xs))(*args)
    hx.effects_barrier()
    return answers.getvalue().replace("(hxdb) ", "").splitlines()


def inner(stop, x):
    y = {"twice": 2 * x, "name": "n"}
    stop()
    return y["twice"] + 1


def outer(stop, x):
    z = x - 1
    return inner(stop, z)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_values_are_looked_at_in_every_function(wrap):
    answers = session(
        ["u", "y", "p y['twice'] + x", "u", "z", "missing", "d", "pp y", "w", "u", "u", "u", "u", "c", "never"],
        outer, hnp.arange(2.0), wrap=wrap,
    )
    text = "\n".join(answers)
    assert "stop" in answers[0] and "inner" in answers[1]
    assert answers[2] == "{'name': 'n', 'twice': Array([-2.,  0.], dtype=float32)}"
    assert answers[3] == "Array([-3.,  0.], dtype=float32)"
    assert "outer" in answers[4] and answers[5] == "Array([-1.,  0.], dtype=float32)"
    assert answers[6] == "*** NameError: name 'missing' is not defined"
    assert "there is no such function" in text or "> " in answers[-1]
    assert "never" not in text and any(line.startswith("->") and "inner" in line for line in answers)


def test_the_source_is_shown_around_the_place():
    answers = session(["u", "l", "a"], inner, 1.0)
    assert "->     stop()" in answers and "y['twice'] + 1".replace("'", '"') in "\n".join(answers)
    assert "x = Array(1., dtype=float32)" in answers


def test_a_stop_is_reached_where_it_is_executed():
    def branches(stop, x):
        return lax.cond(x > 0, lambda: (stop(), x)[1], lambda: x)

    assert session(["x"], branches, -1.0) == []
    assert session(["u", "x"], branches, 1.0)[-1] != ""
    answers = session(["u", "x"], lambda stop, xs: hx.vmap(lambda x: inner(stop, x))(xs), np.float32([1, 2]))
    assert next(line for line in answers if line.startswith("Array")) == "Array(1., dtype=float32)"


def test_the_number_of_functions_is_limited_and_no_commands_continue():
    assert len(session(["w"], outer, 1.0, num_frames=2)) == 3
    assert len(session([], outer, 1.0)) == 1


def test_a_program_is_stopped_by_q():
    with pytest.raises(errors.CallbackError, match="must be continued, got q"):
        session(["q"], inner, 1.0)


def test_other_backends_are_refused():
    with pytest.raises(errors.BadArgument, match="'web'"):
        debug.breakpoint(backend="web")
    with pytest.raises(errors.BadArgument, match="token"):
        debug.breakpoint(token=1)
