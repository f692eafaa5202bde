"""Values inside a program, by name: taken out, and replaced, from outside."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import call_and_reap, harvest, nest, plant, reap, sow, tell, writer


def f(x):
    return sow(hnp.sin(x), "h") * 2


def walk(x, mode="strict"):
    return lax.scan(lambda c, y: (sow(c + y, "c", mode=mode), None), x, hnp.arange(4.0))[0]


def either(x):
    """Both branches sow the same name."""
    return lax.cond(x > 0, lambda x: sow(x, "p"), lambda x: sow(-10 * x, "p"), x)


def one(x):
    return lax.cond(x > 0, lambda x: sow(x, "p"), lambda x: -x, x)


def lists(found):
    return hx.tree.map(lambda x: np.asarray(x).tolist(), found)


def test_nobody_harvests_and_it_is_the_identity():
    tree = {"a": 1.0, "b": hnp.arange(3)}
    assert lists(sow(tree, "t")) == {"a": 1.0, "b": [0, 1, 2]}
    assert sow((), "nothing") == ()
    expected = 2 * np.sin(np.arange(3.0))
    for g in (hx.vmap(f), hx.jit(hx.vmap(f)), hx.vmap(hx.jit(f)), hx.vmap(hx.checkpoint(f))):
        np.testing.assert_allclose(g(hnp.arange(3.0)), expected, rtol=1e-6)
    for g in (hx.grad(f), hx.jit(hx.grad(f)), hx.grad(hx.jit(f))):
        assert float(g(1.0)) == pytest.approx(2 * np.cos(1.0))
    assert float(hx.jit(walk)(1.0)) == 7.0
    assert float(hx.jit(lambda x: lax.while_loop(lambda c: c < 5, lambda c: sow(c + 1, "c"), x))(0.5)) == 5.5


@pytest.mark.parametrize(
    "wrap", [lambda f: f, hx.jit, hx.checkpoint, hx.grad, lambda f: hx.jit(hx.grad(hx.checkpoint(f)))]
)
def test_reap_gives_what_is_sown(wrap):
    assert lists(reap(wrap(f))(1.0)) == {"h": pytest.approx(np.sin(1.0))}
    y, found = hx.jit(call_and_reap(wrap(f)))(1.0)
    assert float(y) == pytest.approx(float(wrap(f)(1.0)), rel=1e-6) and set(found) == {"h"}


def test_what_is_reaped_is_differentiable():
    assert float(hx.grad(lambda x: reap(walk)(x)["c"].sum())(0.0)) == 4.0


def test_loops_stack_what_they_sow():
    assert lists(reap(walk)(1.0)) == {"c": [1.0, 2.0, 4.0, 7.0]}
    backwards = lambda x: lax.scan(lambda c, y: (sow(c + y, "c"), None), x, hnp.arange(3.0), reverse=True)[0]
    assert lists(reap(backwards)(0.0)) == {"c": [3.0, 3.0, 2.0]}
    assert lists(reap(lambda x: lax.fori_loop(0, 3, lambda i, c: sow(c * 2, "c"), x))(1.0)) == {"c": [2.0, 4.0, 8.0]}


def test_lanes_stack_what_they_sow():
    for mode in ("strict", "append", "clobber"):
        inside = lambda x: walk(x, mode)
        around, of_each = reap(hx.vmap(inside))(hnp.arange(3.0)), hx.vmap(reap(inside))(hnp.arange(3.0))
        assert around["c"].shape == ((3,) if mode == "clobber" else (3, 4)) and lists(around) == lists(of_each)
    assert lists(reap(hx.vmap(f, in_axes=0))(hnp.zeros(2))) == {"h": [0.0, 0.0]}
    shared = hx.vmap(lambda x, y: sow(y, "y") + x, in_axes=(0, None))
    assert lists(reap(shared)(hnp.arange(3.0), 5.0)) == {"y": [5.0] * 3}  # as a result that all lanes share


def test_a_second_value_means_what_its_mode_says():
    twice = lambda mode: lambda x: (sow(x, "a", mode=mode), sow(x + 1, "a", mode=mode))
    assert lists(reap(twice("append"))(0.0)) == {"a": [0.0, 1.0]}
    assert lists(reap(twice("clobber"))(0.0)) == {"a": 1.0}
    with pytest.raises(errors.BadArgument, match="'a' is sown 2 times"):
        reap(twice("strict"))(0.0)


def test_modes_in_a_loop():
    assert lists(reap(lambda x: walk(x, "clobber"))(1.0)) == {"c": 7.0}
    assert lists(reap(hx.vmap(lambda x: walk(x, "clobber")))(hnp.arange(2.0))) == {"c": [6.0, 7.0]}
    both = lambda x: (sow(x, "c", mode="append"), walk(x, "append"))
    assert lists(reap(both)(1.0)) == {"c": [1.0, 1.0, 2.0, 4.0, 7.0]}


@pytest.mark.parametrize("x", [1.0, -2.0])
def test_a_name_of_every_branch_is_a_plain_value(x):
    expected = x if x > 0 else -10 * x
    assert lists(reap(either)(x)) == {"p": expected}
    assert lists(hx.jit(reap(hx.jit(either)))(x)) == {"p": expected}
    nested = lambda x: lax.cond(x > -1, either, lambda x: sow(x * 0, "p"), x)
    assert lists(reap(nested)(x)) == {"p": expected if x > -1 else 0.0}


@pytest.mark.parametrize("x", [1.0, -2.0])
def test_a_name_of_one_branch_says_whether_it_was_taken(x):
    found = reap(one)(x)["p"]
    assert isinstance(found, hx.When)
    assert bool(found.taken) == (x > 0) and float(found.value) == max(x, 0.0)


def test_branches_in_loops_and_lanes():
    xs = hnp.array([1.0, -2.0, 3.0])
    scanned = lambda f: lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0]
    for g in (scanned(either), hx.vmap(either), hx.jit(hx.vmap(either))):
        assert lists(reap(g)(xs)) == {"p": [1.0, 20.0, 3.0]}
    for g in (scanned(one), hx.vmap(one)):
        found = reap(g)(xs)["p"]
        assert found.taken.tolist() == [True, False, True] and found.value.tolist() == [1.0, 0.0, 3.0]


def test_of_branches_in_a_loop_the_last_that_was_taken_clobbers():
    def some(limit):
        put = lambda y: lax.cond(y < limit, lambda: sow(y, "y", mode="clobber"), lambda: y)
        return reap(lambda xs: lax.scan(lambda c, y: (c + put(y), None), 0.0, xs)[0])(hnp.arange(4.0))["y"]

    assert (bool(some(2).taken), float(some(2).value)) == (True, 1.0)
    assert not bool(some(-1).taken)


def test_a_loop_of_unknown_length_is_refused_with_the_remedy():
    with pytest.raises(errors.CannotCross, match="scan or fori_loop"):
        reap(lambda x: lax.while_loop(lambda c: c < 3, lambda c: sow(c + 1, "c"), x))(0.0)


def test_nest_puts_names_under_a_scope_also_in_loops():
    g = lambda x: (nest(walk, scope="u")(x), nest(nest(f, scope="a"), scope="b")(x), f(x))
    found = lists(reap(g)(0.0))
    assert found == {"u": {"c": [0.0, 1.0, 3.0, 6.0]}, "b": {"a": {"h": 0.0}}, "h": 0.0}
    inner = lambda x: lax.scan(lambda c, _: (nest(f, scope="s")(c), None), x, None, 3)[0]
    for g in (inner, hx.jit(inner), hx.checkpoint(inner), hx.grad(inner)):
        assert reap(g)(1.0)["s"]["h"].shape == (3,)
    around = nest(hx.jit(inner), scope="t")
    assert reap(lambda x: lax.cond(x > 0, around, lambda x: x, x))(1.0)["t"]["s"]["h"].value.shape == (3,)
    with pytest.raises(errors.BadArgument, match="a value and a scope"):
        reap(lambda x: (nest(f, scope="h")(x), f(x)))(0.0)


def test_tags_tell_harvesters_apart():
    g = lambda x: (sow(x, "a", tag="t"), sow(x + 1, "b"))
    assert lists(reap(g, tag="t")(1.0)) == {"a": 1.0}
    assert lists(reap(g)(1.0)) == {"b": 2.0}
    both = reap(lambda x: reap(g, tag="t")(x))
    assert lists(both(1.0)) == {"b": 2.0}


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_plant_puts_values_in_their_place(wrap):
    for g in (plant(wrap(f)), wrap(plant(f))):
        assert float(g({"h": 5.0}, 1.0)) == 10.0
    assert float(plant(wrap(walk))({"c": 5.0}, 1.0)) == 5.0
    assert float(plant(wrap(either))({"p": 5.0}, 1.0)) == 5.0
    assert float(plant(wrap(nest(f, scope="a")))({"a": {"h": 5.0}}, 1.0)) == 10.0
    loop = lambda x: lax.while_loop(lambda c: c < 3, lambda c: sow(c + 1, "c"), x)
    assert float(plant(wrap(loop))({"c": 7.0}, 1.0)) == 7.0


def test_plant_in_lanes():
    hs, xs = hnp.array([1.0, 2.0]), hnp.arange(2.0)
    assert plant(hx.vmap(f))({"h": hs}, xs).tolist() == [2.0, 4.0]
    assert hx.vmap(lambda h, x: plant(f)({"h": h}, x))(hs, xs).tolist() == [2.0, 4.0]


def test_what_is_planted_is_differentiated_and_sowing_is_the_identity():
    square = lambda x: sow(x, "h") ** 2
    assert float(hx.grad(lambda x: plant(square)({"h": x**2}, x))(3.0)) == pytest.approx(4 * 27.0)
    assert float(plant(hx.grad(square))({"h": 5.0}, 3.0)) == 10.0


def test_a_planted_tree_has_the_structure_of_what_is_sown():
    g = lambda x: sow({"u": x, "v": (x, x)}, "t")["u"]
    assert float(plant(g)({"t": {"u": 3.0, "v": (1.0, 1.0)}}, 1.0)) == 3.0
    with pytest.raises(errors.TreeMismatch, match="'t'"):
        plant(g)({"t": {"u": 3.0}}, 1.0)
    with pytest.raises(errors.ShapeMismatch):
        plant(f)({"h": hnp.ones(3)}, 1.0)


def test_a_value_that_nobody_sows_is_refused():
    with pytest.raises(errors.BadArgument, match="'g'"):
        plant(f)({"g": 5.0}, 1.0)
    with pytest.raises(errors.BadArgument, match="'a/g'"):
        plant(nest(f, scope="a"))({"a": {"h": 1.0, "g": 5.0}}, 1.0)


def test_harvest_plants_some_and_reaps_the_others():
    y, found = harvest(lambda x: sow(x, "a") + sow(x * 2, "b"))({"a": 10.0}, 1.0)
    assert float(y) == 12.0 and lists(found) == {"b": 2.0}


def test_a_reaped_program_has_no_effect_left():
    assert hx.make_program(reap(f))(1.0).effects == frozenset()
    assert len(hx.make_program(f)(1.0).effects) == 1


@pytest.mark.parametrize("call", [lambda: sow(1.0, "a", mode="twice"), lambda: sow(1.0, 3)])
def test_bad_arguments_are_refused(call):
    with pytest.raises(errors.BadArgument, match="sow"):
        call()


def rows(x):
    return lax.scan(lambda c, y: (c, sow(c + y, "c")), x, hnp.arange(3.0))[1]


def grid(x):
    return lax.scan(lambda c, y: (c, rows(c + y)), x, hnp.arange(2.0))[1]


def backwards(x):
    return lax.scan(lambda c, y: (c + sow(y * c, "y"), c), x, hnp.arange(1.0, 4.0), reverse=True)


def branches(x):
    return lax.scan(lambda c, y: (c, one(y)), x, hnp.array([1.0, -2.0, 3.0]))[1]


@pytest.mark.each_choice
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint, lambda f: nest(f, scope="s")])
@pytest.mark.parametrize("f", [f, walk, rows, grid, backwards, branches, either, hx.vmap(one, None, axis_size=2)])
def test_what_is_reaped_can_be_planted_again(f, wrap):
    g = wrap(f)
    found = reap(g)(2.0)
    assert lists(plant(g)(found, 2.0)) == lists(g(2.0))
    assert lists(hx.jit(plant(g))(found, 2.0)) == lists(g(2.0))


def test_lanes_are_planted_as_they_are_reaped():
    xs = hnp.array([1.0, -2.0, 3.0])
    for g in (rows, one, either):
        around, inside = reap(hx.vmap(g))(xs), hx.vmap(reap(g))(xs)
        assert lists(plant(hx.vmap(g))(around, xs)) == lists(hx.vmap(g)(xs))
        assert lists(hx.vmap(plant(g))(inside, xs)) == lists(hx.vmap(g)(xs))


def test_a_value_without_rows_is_planted_in_every_run():
    assert plant(rows)({"c": 5.0}, 0.0).tolist() == [5.0] * 3
    assert plant(rows)({"c": hnp.array([5.0, 6.0, 7.0])}, 0.0).tolist() == [5.0, 6.0, 7.0]
    assert plant(grid)({"c": hnp.array([5.0, 6.0, 7.0])}, 0.0).tolist() == [[5.0, 6.0, 7.0]] * 2
    with pytest.raises(errors.ShapeMismatch, match="3 iterations"):
        plant(rows)({"c": hnp.array([5.0, 6.0])}, 0.0)


def test_the_derivative_by_what_is_planted_in_a_loop():
    total = lambda v: (plant(hx.checkpoint(rows))({"c": v}, 0.0) * hnp.arange(3.0)).sum()
    assert hx.grad(total)(hnp.ones(3)).tolist() == [0.0, 1.0, 2.0]


def until(x):
    return lax.while_loop(lambda c: c < 3, lambda c: sow(c + 1, "c", mode="clobber"), x)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_loop_of_unknown_length_keeps_the_last_value(wrap):
    found = reap(wrap(until))(0.5)["c"]
    assert (bool(found.taken), float(found.value)) == (True, 3.5)
    assert not bool(reap(wrap(until))(5.0)["c"].taken)
    inside = hx.vmap(reap(wrap(until)))(hnp.array([0.0, 1.5, 7.0]))["c"]
    assert inside.taken.tolist() == [True, True, False] and inside.value.tolist() == [3.0, 3.5, 0.0]
    tested = lambda x: lax.while_loop(lambda c: sow(c, "t", mode="clobber") < 3, lambda c: c + 1, x)
    assert float(reap(wrap(tested))(0.0)["t"].value) == 3.0
    some = lambda c: lax.cond(c < 2, lambda c: sow(c, "s", mode="clobber") + 1, lambda c: c + 1, c)
    assert float(reap(wrap(lambda x: lax.while_loop(lambda c: c < 5, some, x)))(0.0)["s"].value) == 1.0
    scanned = lambda x: lax.scan(lambda c, y: (until(c + y), None), x, hnp.array([0.0, 9.0, -99.0]))[0]
    assert float(reap(wrap(scanned))(0.0)["c"].value) == 3.0


def test_a_later_value_clobbers_that_of_a_loop():
    assert float(reap(lambda x: sow(until(x), "c", mode="clobber"))(0.5)["c"]) == 3.5
    assert float(reap(lambda x: until(sow(x, "c", mode="clobber")))(9.0)["c"]) == 9.0


def sometimes(x, mode):
    return lax.cond(x > 0, lambda: sow(x, "c", mode=mode), lambda: x)


@pytest.mark.parametrize(
    "g",
    [
        until,
        lambda x: sometimes(x, "strict"),
        lambda x: sometimes(sometimes(x, "append") - 2.0, "append"),
        lambda x: sometimes(sometimes(x, "clobber") - 2.0, "clobber"),
    ],
)
def test_lanes_that_go_different_ways_sow_each_its_own(g):
    xs = hnp.array([1.0, -2.0, 5.0])
    assert lists(reap(hx.vmap(g))(xs)) == lists(hx.vmap(reap(g))(xs))


def test_in_loops_the_order_of_execution_counts():
    def twice(c, x):
        sow(x, "a", mode="append"), sow(x, "c", mode="clobber")
        lax.cond(x < 2, lambda: (sow(-x, "a", mode="append"), sow(-x, "c", mode="clobber")), lambda: (x, x))
        return c, None

    found = reap(lambda: lax.scan(twice, 0.0, hnp.arange(1.0, 4.0)))()
    assert lists(found["a"].masked(9.0)) == [1.0, -1.0, 2.0, 9.0, 3.0, 9.0] and float(found["c"]) == 3.0
    found = reap(lambda: lax.scan(twice, 0.0, hnp.arange(1.0, 4.0), reverse=True))()
    assert lists(found["a"].masked(9.0)) == [1.0, -1.0, 2.0, 9.0, 3.0, 9.0] and float(found["c"]) == -1.0


def test_a_loop_that_never_runs_sows_nothing():
    empty = lambda mode: lambda x: lax.scan(lambda c, _: (sow(c, "c", mode=mode), None), x, None, 0)[0]
    assert reap(empty("strict"))(1.0)["c"].shape == (0,)
    assert reap(empty("append"))(1.0)["c"].shape == (0,)
    assert not bool(reap(empty("clobber"))(1.0)["c"].taken)


NESTS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, i: (c, f(x + i)), x, hnp.arange(3.0))[1],
    "map": lambda f: lambda x: lax.map(lambda i: f(x * i), hnp.arange(4.0)),
    "vmap": lambda f: lambda x: hx.vmap(lambda i: f(x - i))(hnp.arange(5.0)),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("inner", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("outer", NESTS.values(), ids=NESTS)
def test_what_is_sown_in_nests_stands_as_what_is_told_there_and_is_planted_as_it_is_reaped(outer, inner):
    g = hx.vmap(outer(inner(lambda x: (tell(x), sow(x, "x"))[1])))
    xs = hnp.array([0.25, 0.5])
    (told,), (y, sown) = hx.handle(writer, ())(call_and_reap(g))(xs)
    assert told.tolist() == sown["x"].tolist() and sorted(told.ravel()) == sorted(y.ravel())
    _, again = hx.handle(writer, ())(plant(g))(sown, xs)
    assert again.tolist() == y.tolist()


def test_what_is_sown_beside_a_backward_rule_is_reaped_and_planted_in_a_derivative():
    """The rule is crossed too, as an operation that neither stacks nor slices."""
    f = hx.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * 5 * x,))
    g = lambda x: sow(f(sow(x, "x")), "y")
    slope, sown = hx.grad(lambda x: call_and_reap(g)(x), has_aux=True)(2.0)
    assert float(slope) == 10.0 and (float(sown["x"]), float(sown["y"])) == (2.0, 4.0)
    assert float(hx.grad(plant(g))({"x": 3.0}, 2.0)["x"]) == 15.0


# Names by named scopes

def in_scope(name, g):
    return lambda *xs: hx.named_scope(name)(g)(*xs)


def branching(x):
    return lax.cond(x > 0, in_scope("up", f), in_scope("down", f), x)


def last(c):
    return sow(c + 4, "c", mode="clobber")


SCOPED = {  # the same, by scopes and by explicit nests
    "twice": (lambda x: (in_scope("a", f)(x), in_scope("b", f)(x)),
              lambda x: (nest(f, scope="a")(x), nest(f, scope="b")(x))),
    "within": (in_scope("a", in_scope("b", f)), nest(nest(f, scope="b"), scope="a")),
    "around a loop": (in_scope("a", walk), nest(walk, scope="a")),
    "in a loop": (lambda x: lax.scan(lambda c, _: (in_scope("a", f)(c), None), x, None, 3)[0],
                  lambda x: lax.scan(lambda c, _: (nest(f, scope="a")(c), None), x, None, 3)[0]),
    "compiled": (in_scope("a", hx.jit(in_scope("b", f))), nest(nest(f, scope="b"), scope="a")),
    "branches": (branching, lambda x: lax.cond(x > 0, nest(f, scope="up"), nest(f, scope="down"), x)),
    "last": (lambda x: lax.while_loop(lambda c: c < 9.0, in_scope("a", last), x),
             lambda x: lax.while_loop(lambda c: c < 9.0, nest(last, scope="a"), x)),
    "gradient": (hx.grad(in_scope("a", f)), hx.grad(nest(f, scope="a"))),
    "lanes": (lambda x: hx.vmap(in_scope("a", walk))(x + hnp.arange(2.0)),
              lambda x: hx.vmap(nest(walk, scope="a"))(x + hnp.arange(2.0))),
    "checkpoint": (in_scope("a", hx.checkpoint(f)), nest(hx.checkpoint(f), scope="a")),
}


@pytest.mark.parametrize("name", SCOPED)
@pytest.mark.parametrize("wrap", [lambda g: g, hx.jit], ids=["eager", "jit"])
def test_nest_without_a_scope_nests_names_in_the_named_scopes_where_they_are_sown(name, wrap):
    by_scope, explicit = SCOPED[name]
    found, expected = lists(reap(nest(wrap(by_scope)))(0.5)), lists(reap(wrap(explicit))(0.5))
    assert found == expected and found
    with hx.named_scope("around"):
        assert lists(reap(nest(wrap(by_scope)))(0.5)) == expected
    outside = lambda x: in_scope("out", nest(wrap(by_scope)))(x)
    assert lists(reap(nest(outside))(0.5)) == {"out": expected}         # each scope once


@pytest.mark.parametrize("name", [name for name in SCOPED if name not in ("last", "branches")])
def test_what_is_reaped_by_scope_is_planted_by_scope(name):
    g = nest(SCOPED[name][0])
    values = reap(g)(0.5)
    assert lists(plant(g)(values, 0.5)) == lists(g(0.5))
    y, rest = harvest(g)(values, 0.5)
    assert lists(y) == lists(g(0.5)) and not rest


def test_a_compiled_function_is_nested_in_each_scope_in_which_it_is_called():
    layer = hx.jit(in_scope("layer", f))
    g = lambda x: (in_scope("a", layer)(x), in_scope("b", layer)(x), layer(x))
    assert lists(reap(nest(hx.jit(g)))(0.0)) == {
        "a": {"layer": {"h": 0.0}}, "b": {"layer": {"h": 0.0}}, "layer": {"h": 0.0}}
    assert lists(reap(hx.jit(nest(g)))(0.0)) == lists(reap(nest(g))(0.0))
    assert lists(reap(nest(in_scope("s", nest(f, scope="given"))))(0.0)) == {"s": {"given": {"h": 0.0}}}


def test_a_scope_is_a_string():
    with pytest.raises(errors.BadArgument, match="nest: the scope must be a string, got 3"):
        nest(f, scope=3)
