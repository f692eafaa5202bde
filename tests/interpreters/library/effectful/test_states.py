"""State by name: get, put and modify."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import state

XS = hnp.arange(4.0)


def handled(f, **values):
    return hx.handle(state, values or {"n": 0})(f)


def bump(by=1):
    hx.put("n", hx.get("n") + by)


def walk(xs):
    """Bumps once for each element and adds the element times the count."""

    def body(c, x):
        bump()
        return c + x * hx.get("n"), c

    return lax.scan(body, 0.0, xs)[0]


def walked(xs, n=0):
    """The same, as Python says it."""
    c = 0.0
    for x in xs:
        n += 1
        c += float(x) * n
    return n, c


def test_what_is_put_is_what_is_got():
    def f():
        before = hx.get("n")
        hx.put("n", 5)
        return before, hx.get("n")

    s, (before, after) = handled(f)()
    assert (int(s["n"]), int(before), int(after)) == (5, 0, 5)


def test_without_a_name_the_whole_state_is_meant():
    def f():
        a, b = hx.get()
        hx.put(None, (b, a))
        hx.modify(None, lambda s: (s[0] * 2, s[1]))
        return a

    (b, a), first = hx.handle(state, (1, 2.0))(f)()
    assert (float(b), int(a), int(first)) == (4.0, 1, 1)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint, lambda f: hx.jit(hx.jit(f))])
def test_state_crosses_scan_inside_and_around_what_is_compiled(wrap):
    n, c = walked(XS)
    for f in (handled(wrap(walk)), wrap(handled(walk))):
        s, y = f(XS)
        assert (int(s["n"]), float(y)) == (n, c)


def test_state_crosses_while_in_the_body_and_in_the_test():
    def body(c):
        bump()
        return c * 2.0

    s, y = handled(lambda x: lax.while_loop(lambda c: c < 10.0, body, x))(1.0)
    assert (int(s["n"]), float(y)) == (4, 16.0)
    s, y = handled(lambda x: lax.while_loop(lambda c: hx.get("n") < 3, body, x))(1.0)
    assert (int(s["n"]), float(y)) == (3, 8.0)

    def test(c):
        bump()
        return c < 10.0

    s, y = handled(lambda x: lax.while_loop(test, lambda c: c * 2.0, x))(1.0)
    assert (int(s["n"]), float(y)) == (5, 16.0)      # the last test fails


@pytest.mark.parametrize(("x", "n"), [(1.0, 10), (-1.0, 0)])
def test_only_the_branch_that_is_taken_changes_the_state(x, n):
    def f(x):
        return lax.cond(x > 0, lambda: (bump(10), 1)[1], lambda: 0)

    assert int(handled(f)(x)[0]["n"]) == n
    assert int(handled(hx.jit(f))(x)[0]["n"]) == n


def test_inside_vmap_every_lane_has_its_own_state():
    xs = np.arange(12.0, dtype="float32").reshape(3, 4)
    s, y = hx.vmap(handled(walk))(xs)
    assert s["n"].tolist() == [4, 4, 4]
    assert y.tolist() == [walked(row)[1] for row in xs]


def test_around_vmap_lanes_modify_one_after_the_other():
    def f(x):
        hx.modify("n", lambda n, x: n * 2 + x, x)

    s, _ = handled(hx.vmap(f))(hnp.array([1, 0, 1]))
    assert int(s["n"]) == 0b101


def test_around_vmap_what_lanes_put_is_refused():
    for f in (lambda x: hx.put("n", x), lambda x: bump()):
        with pytest.raises(errors.CannotCross, match="overwrite") as caught:
            handled(hx.vmap(f))(hnp.arange(3))
        assert "modify" in str(caught.value)


def test_around_vmap_lanes_read_the_same():
    s, y = handled(hx.vmap(lambda x: x + hx.get("n")), n=10)(hnp.arange(3))
    assert s == {"n": 10}
    assert y.tolist() == [10, 11, 12]


def test_lanes_that_go_different_ways_come_one_after_the_other():
    def f(x):
        return lax.cond(x > 0, lambda: (bump(), hx.get("n"))[1], lambda: -1)

    s, y = handled(hx.vmap(f))(hnp.array([1, -1, 1]))
    assert int(s["n"]) == 2
    assert y.tolist() == [1, -1, 2]


def test_the_gradient_of_a_handled_function_goes_through_the_state():
    def f(x):
        hx.put("v", x * x)
        return hx.get("v") * 3.0

    inner = hx.handle(state, {"v": 0.0})(f)
    assert float(hx.grad(lambda x: inner(x)[1])(2.0)) == 12.0
    assert float(hx.jit(hx.grad(lambda x: inner(x)[0]["v"]))(2.0)) == 4.0


def test_a_gradient_inside_performs_once_and_the_answer_is_a_constant():
    s, g = handled(hx.grad(walk))(XS)
    assert int(s["n"]) == 4
    assert g.tolist() == [1.0, 2.0, 3.0, 4.0]
    s, g = handled(hx.grad(hx.checkpoint(walk)))(XS)
    assert int(s["n"]) == 4
    assert g.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_value_with_a_tangent_is_not_put_outside_the_gradient():
    with pytest.raises(errors.NotDifferentiable, match="has_aux"):
        handled(hx.grad(lambda x: (hx.put("n", x), x)[1]))(1.0)


def test_nested_handlers_answer_for_their_own_names():
    def f():
        hx.put("n", hx.get("n") + hx.get("m"))
        hx.put("m", 9)
        hx.modify("n", lambda n: n * 2)

    outer, (inner, _) = hx.handle(state, {"n": 1})(hx.jit(hx.handle(state, {"m": 2})(f)))()
    assert (int(outer["n"]), int(inner["m"])) == (6, 9)


def test_a_state_may_be_a_tree_and_change_its_structure_where_no_loop_is():
    def f(x):
        hx.put("h", {"w": x, "more": (x, x)})

    s, _ = hx.handle(state, {"h": 0})(hx.jit(f))(2.0)
    assert hx.tree.map(float, s["h"]) == {"w": 2.0, "more": (2.0, 2.0)}


def test_a_state_that_would_change_its_type_in_a_loop_is_refused():
    def f():
        return lax.scan(lambda c, _: (bump(0.5), (c, None))[1], 0.0, None, 3)

    with pytest.raises(errors.HandlaxError, match="f32"):
        handled(f)()
    assert float(handled(f, n=0.0)()[0]["n"]) == 1.5


def test_a_jitted_function_that_met_another_type_before_does_not_cut_off():
    g = hx.jit(lambda: hx.get("n") + 0)

    def f():
        g()
        hx.put("n", 2.5)
        return g()

    with pytest.raises(errors.DTypeMismatch, match="get"):
        handled(f)()
    assert float(handled(g, n=2.5)()[1]) == 2.5
    assert int(handled(g, n=2)()[1]) == 2


def test_a_name_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(errors.UnhandledEffect, match="'q'"):
        handled(lambda: hx.get("q"))()
    with pytest.raises(errors.UnhandledEffect, match="no state 'q', only 'n'"):
        handled(lambda: hx.put("q", 1))()
    with pytest.raises(errors.UnhandledEffect, match="start value"):
        hx.get("n")


def test_modify_takes_what_it_closes_over_along():
    def f(x):
        y = hnp.sin(x)
        hx.modify("v", lambda v: v + y)
        return y

    for g in (f, hx.jit(f)):
        s, y = hx.handle(state, {"v": 1.0})(g)(0.5)
        assert float(s["v"]) == pytest.approx(1.0 + float(y))


def test_modify_refuses_a_function_with_effects():
    with pytest.raises(errors.CannotCross, match="pure"):
        handled(lambda: hx.modify("n", lambda n: (hx.tell(n), n)[1]))()


def test_state_can_be_stored_in_a_program_that_reads_back():
    program = handled(lambda: hx.make_program(lambda: (bump(), hx.modify("n", lambda n: n + 1)))())()[1]
    assert {type(e).__name__ for e in program.effects} == {"Get", "Put", "Modify"}
    assert hx.parse_program(str(program)).unwrap() == program


@pytest.mark.parametrize("perform", [lambda: hx.get("n"), lambda: hx.put("n", 1), bump], ids=["get", "put", "modify"])
def test_a_name_that_is_not_there_is_told_what_is(perform):
    with pytest.raises(errors.UnhandledEffect, match="there is no state 'n', only 'm'"):
        handled(perform, m=0)()
    assert handled(handled(lambda: hx.get("n"), m=0), n=3)()[1][1] == 3
