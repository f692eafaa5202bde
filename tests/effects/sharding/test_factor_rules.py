"""Rules of factors: their texts, what they are fitted to, and what is no rule."""

import copy
import pickle

import pytest

from handlax import errors
from handlax.effects.sharding.factor_rules import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    FactorKinds,
    SdyShardingRule,
    factors_text,
    parse_rule,
    sized,
)


@pytest.mark.parametrize(("text", "operands", "results", "options"), [
    ("->", ((),), ((),), {}),
    ("i j, , k->j", (("i", "j"), (), ("k",)), (("j",),), {}),
    ("...0 i, ...1 i -> ...i", (("…0", "i"), ("…1", "i")), (("…0", "i"),), {}),
    ("(i_ j2) -> j2 (i_ k)", ((("i_", "j2"),),), (("j2", ("i_", "k")),), {"i_": 2, "k": 3}),
])
def test_a_text_is_a_rule(text, operands, results, options):
    rule = parse_rule(text, **options)
    assert (rule.operand_mappings, rule.result_mappings, rule.factor_sizes) == (operands, results, options)
    written = [[ArrayMapping(*[CompoundFactor(*dim) if isinstance(dim, tuple) else dim for dim in array])
                for array in side] for side in (operands, results)]
    assert SdyShardingRule(*written, **options) == rule == copy.deepcopy(rule) == pickle.loads(pickle.dumps(rule))
    assert len({rule, parse_rule(text, **options)}) == 1 and rule != parse_rule("i -> j")


def test_a_rule_is_shown_with_its_kinds():
    rule = parse_rule("i (j k) -> i", j=2, k=4, reduction_factors=("j",), permutation_factors=("k",))
    assert repr(rule) == (
        "SdyShardingRule((('i', ('j', 'k')),), (('i',),), {'j': 2, 'k': 4} reduction_factors=('j',) "
        "permutation_factors=('k',))")
    with pytest.raises(AttributeError, match="sharding rules"):
        rule.factor_sizes = {}


@pytest.mark.parametrize(("text", "found"), [
    (3, "got 3"), ("i", "got 'i'"), ("i -> j -> k", "one ->"), (".i -> j", r"got '\.'"), ("2i -> j", "got '2'"),
    ("i; j -> j", "got ';'"), ("…j -> …j", "got '…'"), ("i j, k) -> j", r"got '\)'"), ("i (j k -> j", "closed"),
    ("i ( ) j -> j", "two factors"), ("i (j ) -> j", "two factors"), ("i (j (k)) -> j", r"got '\('"),
    ("(i, j) -> i", "got ','"), ("i ... -> j", "must stand before"), ("(... j) -> j", "must stand before"),
])
def test_what_is_no_text_of_a_rule(text, found):
    with pytest.raises(errors.BadArgument, match=found):
        parse_rule(text)


@pytest.mark.parametrize(("options", "found"), [
    ({"l": 2}, "'l', which is no factor"), ({"j": 2}, "needs a size, got none of 'k'"),
    ({"k": 2, "j": 2, "i": 2}, "'i', which is a whole dimension"), ({"k": 2.0, "j": 2}, "k=2.0"),
    ({"k": 2, "j": 2, "reduction_factors": ("l",)}, "reduction_factors: .*, got 'l'"),
    ({"k": 2, "j": 2, "reduction_factors": "j"}, "a tuple of factors is needed"),
    ({"k": 2, "j": 2, "reduction_factors": ("j", "j")}, "'j' 2 times"),
    ({"k": 2, "j": 2, "reduction_factors": ("j",), "permutation_factors": ("j",)}, "'j' 2 times"),
])
def test_what_does_not_fit_the_factors(options, found):
    with pytest.raises(errors.BadArgument, match=found):
        parse_rule("i (j k) -> i", **options)


@pytest.mark.parametrize(("make", "found"), [
    (lambda: CompoundFactor("i"), "two factors or more"), (lambda: CompoundFactor(BATCHING, "i"), "got '…'"),
    (lambda: CompoundFactor("i", 2), "got 2"), (lambda: ArrayMapping("i", 3), "got 3"),
    (lambda: ArrayMapping("3i"), "got '3i'"), (lambda: ArrayMapping("i", BATCHING), "only the first"),
])
def test_what_is_no_factor(make, found):
    with pytest.raises(errors.BadArgument, match=found):
        make()


@pytest.mark.parametrize(("text", "options", "operands", "results", "attribute"), [
    ("i j -> i j", {}, [(16, 32)], [(16, 8)], "([i, j])->([i, j]) {i=16, j=8}"),
    ("..., -> ...", {}, [(16, 32), ()], [(16, 32)], "([i, j], [])->([i, j]) {i=16, j=32}"),
    ("... , ... -> ...", {}, [(), ()], [()], "([], [])->([])"),
    ("-> i", {}, [], [(8,)], "()->([i]) {i=8}"),
    ("i ->", {}, [(8,)], [], "([i])->() {i=8}"),
    ("-> i", {}, [()], [(8,)], "([])->([i]) {i=8}"),
    ("(i j) -> j i", {}, [(8,)], [(4, 2)], "([ij])->([j, i]) {i=2, j=4}"),
    ("... j, ...1 j k -> ... k", {"reduction_factors": ("j",), "need_replication_factors": ("k",)},
     [(2, 3), (4, 3, 5)], [(2, 5)],
     "([i, j], [k, j, l])->([i, l]) {i=2, j=3, k=4, l=5} reduction={j} need_replication={l}"),
    ("i -> i", {"permutation_factors": ("i",)}, [(4,)], [(4,)], "([i])->([i]) {i=4} permutation={i}"),
])
def test_a_rule_fitted_to_shapes_is_an_attribute(text, options, operands, results, attribute):
    rule = sized("f", parse_rule(text, **options), operands, results)
    assert factors_text(rule) == f"#sdy.op_sharding_rule<{attribute}, custom>"


def test_factors_are_named_as_shardy_names_them():
    names = [f"f{k}" for k in range(20)]
    rule = sized("f", parse_rule(f"{' '.join(names)} ->"), [(1,) * 20], [()])
    assert "y, z, z_1, z_2])" in factors_text(rule)


def test_dimensions_that_the_rule_does_not_have_are_whole():
    rule = sized("f", parse_rule("i -> i j"), [(4,)], [(4, 3)]).of_storage([(4, 2)], [(4, 3)])
    assert "<([i, j])->([i, k]) {i=4, j=2, k=3} need_replication={j}, custom>" in factors_text(rule)


@pytest.mark.parametrize(("text", "operands", "results", "found"), [
    ("i j -> i j", [(4, 4), (4, 4)], [(4, 4)], "each operand, 2, got 1"),
    ("i j -> i j, i", [(4, 4)], [(4, 4)], "each result, 1, got 2"),
    ("i j -> i j k", [(4, 4)], [(4, 4)], r"result 0: .* got \('i', 'j', 'k'\) for shape \(4, 4\)"),
    ("... i j k -> ...", [(4, 4)], [(4, 4)], "operand 0: sharding_rule must name each dimension"),
    ("..., ... -> ...", [(16, 32), (16,)], [(16, 32)], "operand 1: "),
    ("..., ... -> ...", [(16, 32), (16, 32)], [(16, 64)], "one size, got 32 and 64"),
    ("i j -> (i j)", [(2, 4)], [(9,)], r"got 9 for \(i=2 j=4\)"),
])
def test_what_does_not_fit_the_shapes(text, operands, results, found):
    with pytest.raises((errors.ShapeMismatch, errors.BadArgument), match=found):
        sized("f", parse_rule(text), operands, results)


def test_types_are_cut_as_the_major_factor_and_sums_are_whole():
    rule = sized("f", parse_rule("(i k) j, j -> i", k=4, reduction_factors=("j",), need_replication_factors=("k",)),
                 [(8, 3), (3,)], [(2,)]).of_types
    assert rule.operands == [["i", (0, "j")], [(1, "j")]] and rule.results == [["i"]] and rule.whole == ("k",)


def test_the_factors_of_a_kind_have_the_names_of_the_options():
    rule = parse_rule("i j, k -> i", reduction_factors=("j",), permutation_factors=("k",))
    assert rule.kinds == FactorKinds(("j",), (), ("k",)) == sized("f", rule, [(2, 4), (3,)], [(2,)]).kinds
    assert [getattr(rule, kind) for kind in FactorKinds._fields] == [*rule.kinds]
