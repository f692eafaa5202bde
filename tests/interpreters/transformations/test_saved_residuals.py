"""saved_residuals: what is kept, from where, by whose word, for whom."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name, memory_budget, print_saved_residuals, saved_residuals

X = np.ones((3, 4), "float32")
WS = np.ones((5, 4, 4), "float32")
DOTS = hx.checkpoint_policies.dots_saveable


def f(x):
    y = hnp.sin(x)
    return hnp.sum(hnp.exp(y))


def test_a_residual_says_type_bytes_operation_line_and_use():
    cos, exp = saved_residuals(f, X)
    assert (cos.type.shape, cos.bytes, cos.name, cos.policy, cos.verdict) == ((3, 4), 48, "cos", None, None)
    line = f.__code__.co_firstlineno + 1
    assert (cos.site.line, cos.site.function) == (line, "f")
    assert [use.operation for use in exp.uses] == ["mul"]
    assert str(cos) == (
        f"f32[3,4] 48 bytes: output of cos at test_saved_residuals.py:{line} (f), "
        f"for mul at test_saved_residuals.py:{line}"
    )


def test_the_bytes_are_those_of_all():
    assert saved_residuals(f, X).bytes == 96
    assert str(saved_residuals(f, X)).count("\n") == 1


def test_arguments_come_first_under_their_names():
    def g(p, x, *rest, scale):
        return hnp.sum(p["w"][0] * x * rest[0] * scale)

    found = saved_residuals(hx.checkpoint(g), {"w": [X]}, X, X, scale=X)
    assert [r.name for r in found] == ["p['w'][0]", "x", "rest[0]", "scale"]
    assert {r.source for r in found} == {"argument"}


def test_a_captured_array_is_a_constant():
    found = saved_residuals(lambda x: hnp.sum(x * X), X)
    assert [(r.source, r.type.shape) for r in found] == [("constant", (3, 4))]


def test_a_checkpointed_function_keeps_its_arguments_alone():
    assert [r.name for r in saved_residuals(hx.checkpoint(f), X)] == ["x"]


def test_an_unneeded_residual_is_not_there():
    assert not saved_residuals(lambda x: hnp.sum(x) * 2.0 + lax.stop_gradient(hnp.sum(hnp.sin(x))), X)


def stack(block):
    return lambda x, ws: hnp.sum(lax.scan(lambda c, w: (block(c, w), None), x, ws)[0])


def dense(c, w):
    return hnp.sin(checkpoint_name(hnp.sin(c @ w), "inner") * c)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["scan", "jit of scan"])
def test_in_a_loop_a_residual_is_stacked_and_known_by_its_origin(wrap):
    found = saved_residuals(wrap(stack(hx.checkpoint(dense, policy=DOTS))), X, WS)
    _, carry, product = found
    assert [r.type.shape for r in found] == [(5, 4, 4), (5, 3, 4), (5, 3, 4)]
    assert (found[0].name, carry.name) == ("ws", "scan")
    assert (product.name, product.policy, product.site.function) == ("dot_general", DOTS, "dense")
    assert {use.operation for use in product.uses} == {"sin", "cos"}


def test_twelve_blocks_under_scan_keep_exactly_what_the_policy_allows():
    ws = np.ones((12, 4, 4), "float32")
    policy = hx.checkpoint_policies.save_only_these_names("inner")
    shapes = lambda f: sorted(r.type.shape for r in saved_residuals(stack(f), X, ws))
    assert shapes(hx.checkpoint(dense)) == [(12, 3, 4), (12, 4, 4)]
    assert shapes(hx.checkpoint(dense, policy=policy)) == [(12, 3, 4), (12, 3, 4), (12, 4, 4)]
    assert len(shapes(dense)) > 3


def test_the_result_of_a_checkpoint_is_kept_by_who_needs_it():
    def g(x):
        y = hx.checkpoint(hnp.sin)(x)
        return hnp.sum(y * y)

    found = saved_residuals(g, X)
    assert [(r.source, r.name, r.policy) for r in found] == [("argument", "x", None), ("operation", "sin", None)]


@hx.effect(diff="stop")
class Draw:
    def result_type(op):
        return hnp.float32(0.0).type


def test_the_result_of_an_effect_is_kept_by_nobodys_word():
    def g(x):
        return hnp.sum(hnp.sin(x) * hx.perform(Draw()))

    run = hx.handle(hx.handler({Draw: lambda op: hnp.sin(2.0)}))
    found = run(lambda: saved_residuals(hx.checkpoint(g), X))()
    assert [(r.name, r.policy) for r in found] == [("x", None), ("draw", None)]


def test_it_prints_one_a_line(capsys):
    print_saved_residuals(hx.checkpoint(f, policy=memory_budget(100)), X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "kept by memory_budget(100)" in lines[0]


def test_nothing_but_a_function_has_residuals():
    with pytest.raises(errors.NotAFunction):
        saved_residuals(3)


def test_a_residual_is_a_pair_of_its_type_and_where_it_comes_from():
    for residual in saved_residuals(lambda x: hnp.sum(hnp.sin(x) * x), X):
        kind, where = residual
        assert (kind, where) == (residual.type, residual.where) == tuple(residual) and len(residual) == 2
        assert residual[0] is kind and residual[1] == where and where in str(residual)
    assert where.startswith(("output of", "the argument x"))
