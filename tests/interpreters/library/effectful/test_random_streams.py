"""Keyless random: every draw is distinct, reproducible, and named: by its name or the functions that lead to it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax.effects.control.loops import While
from handlax.interpreters.library.effectful.random_streams import DivergedStream, Stream, fresh_key, seed

KEY = random.key(7)


def normal(shape=()):
    return random.normal(fresh_key(), shape)


def helper():
    return lax.scan(lambda c, _: (c, normal()), 0.0, None, 2)[1]


def twice():
    return hnp.stack([normal() for _ in range(2)])


def nested():
    return lax.scan(lambda c, _: (c, lax.scan(lambda d, _: (d, normal()), 0.0, None, 3)[1]), 0.0, None, 2)[1]


def until():
    def body(s):
        i, xs = s
        return i + 1, xs.at[i].set(normal())

    return lax.while_loop(lambda s: s[0] < 4, body, (0, hnp.zeros(4)))[1]


def lanes():
    return hx.vmap(lambda x: x + normal())(hnp.zeros(3))


def lanes_of_loops():
    return hx.vmap(lambda x: x + helper())(hnp.zeros(3))


def loops_of_lanes():
    return lax.scan(lambda c, _: (c, lanes()), 0.0, None, 2)[1]


def branch():
    return hnp.stack([lax.cond(hnp.array(flag), lambda: normal(), lambda: 2 * normal()) for flag in (True, False)])


def calls():
    drawn = hx.jit(lambda: normal())
    return hnp.stack([drawn(), drawn(), hx.jit(drawn)()])


PROGRAMS = [twice, helper, nested, until, lanes, lanes_of_loops, loops_of_lanes, branch, calls]


def everything():
    return hnp.concatenate([hnp.ravel(f()) for f in PROGRAMS])


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_draws_are_distinct(f):
    drawn = np.ravel(seed(f, KEY)())
    assert len(set(drawn.tolist())) == drawn.size


STAGES = {
    "jit_of_seed": lambda f: hx.jit(seed(f, KEY)),
    "seed_of_jit_of_jit": lambda f: seed(hx.jit(hx.jit(f)), KEY),
    "seed_of_checkpoint": lambda f: seed(hx.checkpoint(f), KEY),
}


@pytest.mark.parametrize("stage", STAGES)
def test_what_runs_once_changes_no_draw(stage):
    drawn = np.asarray(seed(everything, KEY)())
    np.testing.assert_allclose(np.asarray(STAGES[stage](everything)()), drawn, rtol=1e-5, atol=1e-6)


def test_other_keys_give_other_draws():
    one, other = (np.asarray(seed(everything, random.key(i))()) for i in (0, 1))
    assert not np.isin(one, other).any()


def test_a_stream_for_each_key_of_a_batch():
    keys = random.split(KEY, 3)
    drawn = np.asarray(hx.vmap(lambda key: seed(everything, key)())(keys))
    alone = np.stack([np.asarray(seed(everything, key)()) for key in keys])
    np.testing.assert_allclose(drawn, alone, rtol=1e-5, atol=1e-6)
    assert len(set(drawn.ravel().tolist())) == drawn.size


def test_words_of_a_key_are_a_key():
    assert np.array_equal(seed(twice, random.PRNGKey(7))(), seed(twice, KEY)())


PROGRAM = """
def layer():
    return normal()

def net():
    a = layer()
    b = normal()
    c = lax.scan(lambda c, _: (c, normal()), 0.0, None, 2)[1]
    d = random.normal(fresh_key("d"))
    return a, b, c, d
"""
ORIGIN = ("a", "b", "c", "d")
EDITS = {  # an edit of the program, and the draws that it changes
    "nothing": (("layer", "layer"), ""),
    "a comment": (("b = normal()", "b = normal()  # the bias"), ""),
    "white space": (("b = normal()", "\n\n    b  =  normal( )"), ""),
    "another expression": (("b = normal()", "b = 0 + normal(())"), ""),
    "a comment on the line of a caller": (("a = layer()", "a = layer()  # the first"), ""),
    "a draw before": (("    a =", "    b = normal()\n    a ="), "b"),
    "an equal line before": (("    b = normal()", "    b = normal()\n    b = normal()"), "b"),
    "a draw after": (("    c =", "    e = normal()\n    c ="), ""),
    "a draw of another function before": (("    a = layer()", "    e = layer()\n    a = layer()"), "a"),
    "a draw in the function called": (("    return normal()", "    normal()\n    return normal()"), "a"),
    "a loop before": (("    c =", "    lax.scan(lambda c, _: (c, normal()), 0.0, None, 2)\n    c ="), "c"),
    "a loop that draws nothing": (("    c =", "    lax.scan(lambda c, _: (c, c), 0.0, None, 2)\n    c ="), ""),
    "a draw of another name": (("    d =", '    fresh_key("e")\n    d ='), ""),
    "a draw of the same name": (("    d =", '    fresh_key("d")\n    d ='), "d"),
    "another name of a function called": (("layer", "dense"), "a"),
    "another name of the caller": (("def net", "def model"), "abc"),
    "a named draw moved to a function": (
        ("    d = random", '    moved = lambda: fresh_key("d")\n    d = random.normal(moved())  #'), ""),
}


def drawn_by(edit, stage):
    names = {"normal": normal, "fresh_key": fresh_key, "random": random, "lax": lax}
    exec(compile(PROGRAM.replace(*edit), "<program>", "exec"), names)
    return dict(zip(ORIGIN, seed(stage(names.get("net") or names["model"]), KEY)()))


@pytest.mark.parametrize("stage", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_later_draws_of_the_same_name_alone(edit, stage):
    change, changed = EDITS[edit]
    before, after = drawn_by(("", ""), lambda f: f), drawn_by(change, stage)
    assert PROGRAM.replace(*change) != PROGRAM or edit == "nothing"
    assert "".join([x for x in ORIGIN if not np.allclose(before[x], after[x], rtol=1e-5, atol=1e-6)]) == changed


@pytest.mark.parametrize("stage", [lambda f: f, hx.jit, lambda f: lambda: hx.jit(f)()], ids=["eager", "jit", "inner"])
def test_a_name_is_the_same_wherever_it_is_drawn(stage):
    def named():
        return random.normal(fresh_key("weights"))

    def caller():
        return normal(), stage(named)(), stage(named)()

    first, (_, again, second) = seed(named, KEY)(), seed(caller, KEY)()
    assert np.isclose(first, again) and not np.isclose(again, second)


def test_a_name_in_a_loop_is_of_the_loop():
    def loop():
        return lax.scan(lambda c, _: (c, random.normal(fresh_key("x"))), 0.0, None, 2)[1]

    def other():
        return loop()

    found = [seed(f, KEY)() for f in (loop, other, lambda: random.normal(fresh_key("x")))]
    assert len(set(hnp.hstack(found).tolist())) == 5


def test_a_test_that_draws_draws_anew_each_time():
    def f():
        def going(s):
            return (s[0] < 3) & (normal() > -9.0)

        return lax.while_loop(going, lambda s: (s[0] + 1, s[1].at[s[0]].set(normal())), (0, hnp.zeros(3)))[1]

    drawn = np.asarray(seed(f, KEY)()).tolist()
    assert len(set(drawn)) == 3 and 0.0 not in drawn


def test_lanes_that_go_different_ways_draw_for_themselves():
    def f(x):
        return lax.cond(x > 0, lambda: normal(), lambda: 10 + normal())

    drawn = np.asarray(seed(hx.vmap(f), KEY)(hnp.array([1.0, -1.0, 1.0, -1.0])))
    assert len(set((drawn % 10).tolist())) == 4 and (drawn > 5).tolist() == [False, True, False, True]


def test_a_draw_is_a_constant_to_derivatives():
    def loss(x):
        return (x * normal((3,))).sum() + (x * helper().sum()).sum()

    x = hnp.ones(3)
    inside = hx.grad(lambda x: seed(loss, KEY)(x))(x)
    outside = seed(hx.grad(loss), KEY)(x)
    rematerialised = seed(hx.grad(hx.checkpoint(loss)), KEY)(x)
    assert np.allclose(inside, outside) and np.allclose(inside, rematerialised)


def test_a_loop_is_its_python_unrolling_in_nothing_but_distinctness():
    drawn = np.asarray(seed(lambda: hnp.stack([helper() for _ in range(3)]), KEY)())
    assert len(set(drawn.ravel().tolist())) == 6


def test_the_inner_seed_answers():
    inner = seed(twice, KEY)
    assert np.array_equal(seed(lambda: inner(), random.key(99))(), inner())


def test_a_handler_between_passes_draws_on():
    def f():
        hx.modify("n", lambda n: n + 1)
        return twice()

    counted = seed(lambda: hx.handle(hx.library.state, {"n": 0})(f)(), KEY)()
    assert int(counted[0]["n"]) == 1 and len(set(np.asarray(counted[1]).tolist())) == 2


def test_draws_are_normal():
    drawn = np.asarray(seed(lambda: lax.scan(lambda c, _: (c, normal()), 0.0, None, 4000)[1], KEY)())
    assert abs(drawn.mean()) < 4 / 4000**0.5 and abs(drawn.var() - 1) < 4 * (2 / 4000) ** 0.5


PROCESS = """
    import handlax as hx, numpy as np
    from handlax import lax, random
    from handlax.interpreters.library.effectful.random_streams import fresh_key, seed
    def f():
        loop = lax.scan(lambda c, _: (c, random.bits(fresh_key())), 0, None, 2)[1]
        return random.bits(fresh_key()), loop, hx.vmap(lambda x: random.bits(fresh_key()))(np.zeros(2))
    print(*[np.asarray(x).tolist() for x in seed(f, random.key(3))()])
"""


def test_two_processes_draw_the_same(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROCESS))
    runs = [
        subprocess.run(
            [sys.executable, str(file)], env={"PYTHONHASHSEED": str(i)}, capture_output=True, text=True, check=True,
            timeout=300,
        ).stdout
        for i in (1, 2)
    ]
    assert runs[0] == runs[1] and runs[0]


def test_threads_draw_the_same():
    found = together(4, lambda _: np.asarray(seed(twice, KEY)()).tolist())
    assert found == found[:1] * 4


def test_without_a_seed_the_error_shows_the_way():
    with pytest.raises(errors.UnhandledEffect, match="seed"):
        normal()


def test_many_keys_are_refused():
    with pytest.raises(errors.BadArgument, match="one key"):
        seed(twice, random.split(KEY, 2))


DERIVATIVES = {
    "jvp": lambda f: lambda x: hx.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: hx.linearize(f, x)[1](x),
    "jacfwd": hx.jacfwd,
    "vmap": lambda f: lambda x: hx.vmap(lambda x: hx.jvp(f, (x,), (x,)))(hnp.stack([x, x])),
}


@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_a_backward_rule_that_draws_has_no_forward_derivative(derivative, compiled):
    @hx.custom_vjp
    def noisy(x):
        return 2 * x

    noisy.defvjp(lambda x: (2 * x, None), lambda _, ct: (ct * random.normal(fresh_key("noise")),))
    with pytest.raises(errors.CannotCross, match="backward rule"):
        seed(compiled(DERIVATIVES[derivative](noisy)), KEY)(hnp.asarray(3.0))


def test_the_streams_of_two_iterations_are_apart_whichever_ends_first():
    flow = DivergedStream(SimpleNamespace(current=Stream(KEY), cell=SimpleNamespace(site=None)), While((), 0, 0))
    one, two = SimpleNamespace(current=None), SimpleNamespace(current=None)
    flow.begin(one, (KEY, hnp.uint32(1)))
    flow.begin(two, (KEY, hnp.uint32(5)))
    assert [int(flow.end(each)[0][1]) for each in (one, two)] == [2, 6]


IN_LANES = {
    "one draw": lambda x: x * normal(),
    "two": lambda x: x * normal() + random.uniform(fresh_key()),
    "a given name": lambda x: x * random.normal(fresh_key("w")),
    "lanes of lanes": lambda x: hx.vmap(lambda y: y * normal())(hnp.stack([x, x])),
    "a branch": lambda x: lax.cond(x > 0, lambda: normal(), lambda: 0.0),
    "a loop": lambda x: lax.scan(lambda c, _: (c + normal(), None), x, None, 2)[0],
}


@pytest.mark.parametrize("draw", IN_LANES.values(), ids=IN_LANES)
@pytest.mark.parametrize("within", [hx.jit, hx.checkpoint], ids=["jit", "checkpoint"])
def test_draws_in_lanes_do_not_depend_on_what_they_are_within(draw, within):
    def drawn(within):
        lanes = within(lambda: hx.vmap(draw)(hnp.ones(3)))
        return seed(lambda: hnp.stack([lanes(), lanes()]), random.key(0))()

    alone = drawn(lambda f: f)
    np.testing.assert_allclose(drawn(within), alone, rtol=1e-6)
    assert len({*np.ravel(alone).tolist()}) == alone.size


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(errors.BadArgument, match="name must be a text, got 3"):
        fresh_key(3)
