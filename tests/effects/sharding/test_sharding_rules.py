"""Sharding rules: dimensions of one factor are cut alike; what is ambiguous, or cannot be, is an error."""

import pytest

from handlax.effects.base.errors import RegistrationError, ShardingTypeError
from handlax.effects.sharding.mesh import AbstractMesh, AxisType
from handlax.effects.sharding.named_sharding import cut_over
from handlax.effects.sharding.partition_spec import UNCONSTRAINED
from handlax.effects.sharding.sharding_rules import (
    ShardingRule,
    alike,
    cut_results,
    equally,
    reduced,
    summed_axes,
    updated,
)
from handlax.effects.types.array_type import array_type

MESH = AbstractMesh((2, 4), ("a", "b"))
PRODUCT = ShardingRule([("i", "k"), ("k", "j")], [("i", "j")])


def typed(shape, *entries, mesh=MESH):
    return array_type(shape, "float32", cut=cut_over(mesh, (*entries, *[None] * (len(shape) - len(entries)))))


def result(rule, operands, shape):
    (t,) = cut_results("f", rule, operands, [array_type(shape, "float32")])
    return str(t)


class Sum:
    axes = (0,)


@pytest.mark.parametrize(("operands", "expected"), [
    ([typed((8, 4), "a"), typed((4, 8), None, "b")], "f32[8@a,8@b]"),
    ([typed((8, 4), "a"), typed((4, 8), "b")], "f32[8@a,8]"),
    ([typed((8, 4), None, "b"), typed((4, 8))], "f32[8,8]"),
    ([typed((8, 4), ("a", "b")), typed((4, 8))], "f32[8@(a,b),8]"),
])
def test_a_product_is_cut_as_its_operands(operands, expected):
    assert result(PRODUCT, operands, (8, 8)) == expected


@pytest.mark.parametrize(("rule", "operands", "shape", "found"), [
    (PRODUCT, [typed((8, 4), None, "b"), typed((4, 8), "b")], (8, 8), "may be cut in several ways"),
    (PRODUCT, [typed((8, 4), None, "b"), typed((4, 8), "a")], (8, 8), "may be cut in several ways"),
    (PRODUCT, [typed((8, 4), "a"), typed((4, 8), None, "a")], (8, 8), "cut twice along 'a'"),
    (PRODUCT._replace(whole={"i"}), [typed((8, 4), "a"), typed((4, 8))], (8, 8), "must be whole"),
    (PRODUCT, [typed((6, 4), "a"), typed((4, 8))], (3, 8), "multiple of 2, got size 3"),
    (PRODUCT, [typed((8, 4), "a"), typed((4, 8), None, "c", mesh=AbstractMesh((2,), ("c",)))], (8, 8), "over one mesh"),
])
def test_what_does_not_fit_is_an_error_with_its_remedy(rule, operands, shape, found):
    with pytest.raises(ShardingTypeError, match=found) as error:
        result(rule, operands, shape)
    assert "reshard" in error.value.hint


def test_a_rule_names_each_dimension_of_a_result():
    with pytest.raises(RegistrationError, match=r"name each dimension of its result f32\[8\], got 2 of them"):
        result(ShardingRule(["i"], ["ij"]), [typed((8,), "a")], (8,))


def test_whole_dimensions_join_with_any_unless_they_must_be_equal():
    xs = [typed((8, 4), "a", "b"), typed((8, 4), "a")]
    results = [array_type((8, 4), "float32")]
    assert result(alike(None, xs, results), xs, (8, 4)) == "f32[8@a,4@b]"
    with pytest.raises(ShardingTypeError, match=r"cut alike, got f32\[8@a,4@b\] and f32\[8@a,4\]"):
        result(equally(None, xs, results), xs, (8, 4))


def test_a_single_row_that_replaces_one_is_whole():
    x, results = typed((8, 4), "a", "b"), [array_type((8, 4), "float32")]
    xs = [x, typed((1, 4), None, "b")]
    assert result(updated(None, xs, results), xs, (8, 4)) == "f32[8@a,4@b]"
    xs = [x, typed((2, 4), None, "b")]
    with pytest.raises(ShardingTypeError, match="must be cut alike"):
        result(updated(None, xs, results), xs, (8, 4))


def test_a_reduced_dimension_is_dropped_and_numbers_are_beside_all():
    xs = [typed((8, 4), "a", "b")]
    assert result(reduced(Sum, xs, [array_type((4,), "float32")]), xs, (4,)) == "f32[4@b]"
    operands = [*xs, array_type((), "float32")]
    assert result(alike(None, operands, [array_type((8, 4), "float32")]), operands, (8, 4)) == "f32[8@a,4@b]"


def test_only_explicit_axes_are_in_types_and_whole_values_have_none():
    mixed = AbstractMesh((2, 4), ("a", "b"), (AxisType.Explicit, AxisType.Auto))
    assert str(typed((8, 4), "a", "b", mesh=mixed)) == "f32[8@a,4]"
    assert typed((8, 4), None, "b", mesh=mixed) is array_type((8, 4), "float32")
    assert typed((8, 4), UNCONSTRAINED, mesh=AbstractMesh((2,), ("a",), (AxisType.Auto,))).cut is None


def summed(operands, linear=(), contracts=False):
    """The unreduced and the reduced axes of the results, of operands with these sums."""
    types = [
        array_type(shape, "float32", cut=cut_over(MESH, [None] * len(shape), **sums)) for shape, sums in operands]
    found = summed_axes("f", types, lambda positions: tuple(positions) in linear, contracts)
    return tuple(map(set, found))


U, R, WHOLE = {"unreduced": {"a"}}, {"reduced": {"a"}}, {}


@pytest.mark.parametrize(("operands", "options", "found"), [
    ([((8,), U)], {"linear": [(0,)]}, ({"a"}, set())),
    ([((8,), U), ((8,), U)], {"linear": [(0, 1)]}, ({"a"}, set())),
    ([((8,), U), ((8,), R)], {"linear": [(0,)]}, ({"a"}, set())),
    ([((8,), U), ((), WHOLE)], {"linear": [(0,)]}, ({"a"}, set())),
    ([((8,), R), ((8,), R)], {}, (set(), {"a"})),
    ([((8,), R), ((), WHOLE)], {}, (set(), {"a"})),
    ([((8,), WHOLE), ((), R)], {}, (set(), set())),
    ([((), R), ((), WHOLE)], {}, (set(), {"a"})), ([((), U), ((), WHOLE)], {"linear": [(0,)]}, ({"a"}, set())),
    ([((8,), R), ((8,), WHOLE)], {"contracts": True}, (set(), set())),
])
def test_linear_operations_keep_partial_sums_and_all_keep_reduced_values(operands, options, found):
    assert summed(operands, **options) == found


@pytest.mark.parametrize(("operands", "found"), [
    ([((8,), U)], "must be linear in partial sums"), ([((8,), U), ((8,), {"unreduced": {"b"}})], "must be linear"),
    ([((8,), R), ((8,), WHOLE)], "must be reduced along the same axes"),
    ([((), R), ((), {"reduced": {"b"}})], "must be reduced along the same axes"),
])
def test_sums_that_do_not_fit_are_errors(operands, found):
    with pytest.raises(ShardingTypeError, match=f"f: .*{found}") as raised:
        summed(operands)
    assert "hx.reshard" in raised.value.hint
