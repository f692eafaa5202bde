"""Branches: only the chosen one is performed, and the results of all have equal types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, lambda f: lambda i, x: hx.vmap(f, (0, None))(i[None], x)[0]])
def test_an_index_outside_chooses_the_nearest_branch(wrap: Any) -> None:
    choose = wrap(lambda i, x: lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x))
    assert [float(choose(hnp.int32(i), 1.0)) for i in (-5, 0, 1, 2, 9)] == [1, 1, 2, 3, 3]


def test_operands_and_results_are_trees() -> None:
    swap = hx.jit(lambda p, t: lax.cond(p, lambda t: {"a": t["b"], "b": t["a"]}, lambda t: t, t))
    t = {"a": hnp.ones(2), "b": hnp.zeros(2)}
    np.testing.assert_array_equal(swap(True, t)["a"], [0, 0])
    np.testing.assert_array_equal(swap(False, t)["a"], [1, 1])


def test_the_derivative_is_that_of_the_branch_taken() -> None:
    f = lambda x: lax.cond(x > 0, lambda x: x * x, lambda x: -x, x)
    assert [float(hx.grad(f)(x)) for x in (3.0, -3.0)] == [6.0, -1.0]
    np.testing.assert_array_equal(hx.vmap(hx.grad(f))(hnp.array([3.0, -3.0])), [6, -1])


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.grad, lambda f: lambda x: hx.vmap(f)(x[None])[0]])
def test_a_function_in_several_places_is_called_once(wrap: Any) -> None:
    calls = []

    class Scaled:
        __hash__ = None  # type: ignore[assignment]

        def __init__(self, scale: float):
            self.scale = hnp.float32(scale)

        def __call__(self, x: Any) -> Any:
            calls.append(self)
            return self.scale * x

    f, g = Scaled(2.0), Scaled(3.0)
    chosen = [wrap(lambda x, i=i: lax.switch(i, [f, g, f], x))(hnp.float32(1.0)) for i in range(3)]
    assert chosen == [2.0, 3.0, 2.0] and calls == 3 * [f, g]
    calls.clear()
    assert wrap(lambda x: lax.cond(x > 0, f, f, x))(hnp.float32(1.0)) == 2.0 and calls == [f]


def test_branches_of_different_results_are_refused() -> None:
    with pytest.raises(errors.HandlaxError, match="branch"):
        lax.cond(hnp.array(True), lambda: hnp.ones(2), lambda: hnp.ones(3))


CALLERS = [lambda f: f, hx.jit, lambda f: hx.jit(hx.grad(f)), lambda f: lambda x: hx.vmap(f)(x[None])]


@pytest.mark.parametrize("wrap", CALLERS)
def test_branches_that_only_call_the_host_compile(wrap: Any) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        lax.cond(x > 0, lambda: hx.debug.callback(lambda v: seen.append(float(v)), x), lambda: None)
        lax.switch(1, [lambda: None, lambda: hx.debug.callback(lambda v: seen.append(-float(v)), x)])
        return x * x

    wrap(f)(hnp.asarray(2.0))
    hx.effects_barrier()
    assert sorted(seen) == [-2.0, 2.0]


def test_what_all_branches_return_unchanged_is_the_operand_itself():
    x, y = hnp.arange(3.0), hnp.ones(2)
    branches = [lambda x, y: (y, x + 1, x), lambda x, y: (y, x, 2 * x)]
    same, *_ = lax.switch(hnp.int32(1), branches, x, y)
    assert same is y
    outs = hx.vmap(lambda i: lax.switch(i, branches, x, y), out_axes=(None, 0, 0))(hnp.arange(2))
    assert [out.tolist() for out in outs] == [[1, 1], [[1, 2, 3], [0, 1, 2]], [[0, 1, 2], [0, 2, 4]]]


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("transformed", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_cond_takes_an_operand_for_each_branch(chosen, transformed):
    f = transformed(lambda p: hx.lax.cond(p, (1.0,), lambda x: x[0] + 1.0, {"a": 2.0}, lambda y: y["a"] * 3.0))
    assert f(chosen) == (2.0 if chosen else 6.0)


def test_an_operand_may_be_given_by_its_name() -> None:
    branches = [lambda x: x, lambda x: 2 * x]
    assert lax.switch(1, branches, operand=3.0) == lax.cond(False, *branches, operand=3.0) == 6.0


@pytest.mark.parametrize("operands", [(1.0, hnp.sin, 2.0, 3.0), (1.0, hnp.sin, 2.0), (1.0, 2.0, 3.0, hnp.sin)])
def test_an_operand_in_the_place_of_a_branch_is_refused(operands) -> None:
    with pytest.raises(errors.NotAFunction, match="cond: a function is needed, got float"):
        lax.cond(True, *operands)


def _per_platform(x: Any) -> Any:
    return lax.platform_dependent(x, tpu=lambda x: -x, cpu=lambda x: x * x, gpu=lambda x: x + 2.0)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, lambda f: lambda x: hx.vmap(f)(x[None])[0]])
def test_the_branch_of_the_platform_is_computed(wrap: Any) -> None:
    f = wrap(_per_platform)
    assert f(hnp.float32(3.0)) == 9.0 and hx.grad(f)(hnp.float32(3.0)) == 6.0
    repeated = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]
    np.testing.assert_allclose(hx.jit(hx.grad(repeated))(hnp.float32(1.1)), 8 * 1.1**7, rtol=1e-5)


def test_a_compiled_program_has_the_branch_of_its_platform_alone() -> None:
    for f in (_per_platform, hx.grad(_per_platform)):
        text = hx.jit(f).lower(3.0).as_text()
        assert "stablehlo.case" not in text and "negate" not in text
    for platforms, case in ((("cuda", "cpu"), True), (("cpu",), False), (("cuda",), False)):
        exported = hx.export.export(hx.jit(_per_platform), platforms=platforms)(3.0)
        text = exported.mlir_module()
        assert ("stablehlo.case" in text, "stablehlo.multiply" in text) == (case, "cpu" in platforms)
        assert ("stablehlo.add" in text, "stablehlo.negate" in text) == ("cuda" in platforms, False)
        if "cpu" in platforms:
            assert exported.call(3.0) == 9.0


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, lambda f: hx.export.export(hx.jit(f), platforms=("cpu",))])
def test_a_platform_without_a_branch_is_refused(wrap: Any) -> None:
    with pytest.raises(errors.BadArgument, match="a function for 'cpu' must be given"):
        wrap(lambda x: lax.platform_dependent(x, tpu=lambda x: -x, rocm=lambda x: x))(1.0)
    assert wrap(lambda x: lax.platform_dependent(x, tpu=lambda x: -x, default=lambda x: x)) is not None


def test_branches_of_platforms_print_and_parse() -> None:
    program = hx.make_program(_per_platform)(3.0)
    assert "branches_platforms=(('tpu',), ('cpu',), ('cuda', 'rocm'))" in str(program)
    assert hx.parse_program(str(program)).unwrap()(3.0) == (9.0,)
