"""Captured boxes: each is listed once, and replaced in a copy that is otherwise equal."""

import functools

import handlax as hx
from handlax.effects.functions.captured import boxes_in, placeholders_for, replaced


def capturing(x):
    """Functions that capture ``x`` in each possible form; each returns twice ``x``."""

    def closure():
        return x + x

    def default(y=x):
        return y + y

    def keyword(*, y=x):
        return y + y

    class Holder:
        captures = ("held",)

        def __init__(self):
            self.held = x

        def __call__(self):
            return self.held + self.held

    class Method:
        def doubled(self):
            return x + x

    nested = lambda: closure()
    trees = {"a": [x]}
    jitted = hx.jit(closure)
    by_tree = lambda: trees["a"][0] + trees["a"][0]
    partial = functools.partial(lambda a, b: a + b, x, b=x)
    return [closure, default, keyword, partial, Holder(), nested, by_tree, jitted, Method().doubled]


def test_a_box_is_found_once_however_it_is_held():
    def f(x):
        assert all([each is x for each in boxes_in(held)] == [True] for held in capturing(x))
        assert boxes_in(*capturing(x)) == boxes_in(x) and boxes_in(len, 1.0, lambda: 2) == []
        return x

    hx.make_program(f)(1.0)


def test_a_copy_holds_another_value_and_the_function_stays_as_it_is():
    def f(x):
        for held in capturing(x):
            copy = replaced(held, {id(boxes_in(held)[0]): 4.0})
            assert copy() == 8.0 and not boxes_in(copy) and boxes_in(held)
        return x

    hx.make_program(f)(1.0)


def test_a_hole_has_the_type_of_its_box_and_no_run():
    def f(x):
        (hole,), which = placeholders_for([x])
        assert hole.type is x.type and hole.run is None
        assert boxes_in(replaced(lambda: x, which)) == [hole]
        return x

    hx.make_program(f)(1.0)


def test_functions_that_call_each_other_are_copied_together():
    def f(x):
        def even(n):
            return x if n == 0 else odd(n - 1)

        def odd(n):
            return -x if n == 0 else even(n - 1)

        copy = replaced(even, {id(x): 3.0})
        assert (copy(4), copy(3)) == (3.0, -3.0)
        return even(0)

    hx.make_program(f)(1.0)
