"""Static arguments: chosen by position or name, distinguished by type and bits."""

from __future__ import annotations

import pytest

import handlax as hx


def test_static_arguments_by_position_by_name_and_from_the_end():
    def f(x, n, *, mode="up"):
        return x * n if mode == "up" else x / n

    for g in (
        hx.jit(f, static_argnums=1, static_argnames="mode"),
        hx.jit(f, static_argnames=("n", "mode")),
        hx.jit(f, static_argnums=(-1,), static_argnames=["mode"]),
    ):
        for _ in range(2):
            assert float(g(6.0, 3)) == 18.0
            assert float(g(6.0, 3, mode="down")) == 2.0
        assert g._cache_size() == 2
    named = hx.jit(f, static_argnums=1)
    assert float(named(6.0, n=3)) == 18.0


def test_static_values_are_told_apart_by_type_and_bits():
    f = hx.jit(lambda x, n: x + (1 if str(n).startswith("-") else 2), static_argnums=1)
    assert [float(f(0.0, n)) for n in (0.0, -0.0, 0, False, "-")] == [2.0, 1.0, 2.0, 2.0, 1.0]
    assert f._cache_size() == 5


@pytest.mark.parametrize("what", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args"])
def test_names_that_no_call_can_give_are_refused(what, name):
    def f(a, /, b, *args, **more):
        return b

    assert hx.jit(f, **{what: ("b", "unknown")})(1, 2) == 2
    with pytest.raises(ValueError, match=f"given as '{name}'"):
        hx.jit(f, **{what: (name, "b")})


def test_a_static_method_is_jitted_inside():
    with pytest.raises(TypeError, match="staticmethod"):
        hx.jit(staticmethod(lambda x: x))


@pytest.mark.parametrize(("call", "called"), [
    (lambda g: g(1.0, []), "'n'"),
    (lambda g: g(1.0, n=[]), "'n'"),
    (lambda g: g(1.0, 2, [], 3), r"'rest\[0\]'"),
    (lambda g: g(1.0, 2, mode=[]), "'mode'"),
], ids=["by position", "by name", "of a spread", "by name alone"])
def test_an_unhashable_static_argument_is_named_however_it_is_given(call, called):
    def f(x, n, *rest, mode="up"):
        return x

    with pytest.raises(hx.errors.BadStaticArgument, match=f"static argument {called} of f must be hashable, got list"):
        call(hx.jit(f, static_argnums=(1, 2), static_argnames=("n", "mode")))
