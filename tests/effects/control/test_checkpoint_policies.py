"""Checkpoint policies: values that decide what may be saved, called as those of JAX."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import checkpoint_policies as policies
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import Offloadable, Recompute, Saveable, checkpoint_name, saved_residuals

X = np.ones((3, 4), "float32")
W = np.ones((4, 4), "float32")


def f(x, w):
    y = checkpoint_name(hnp.sin(x @ w), "first")
    z = hnp.sin(y @ w)
    return hnp.sum(checkpoint_name(z, "second") * z)


def batched(x, w):
    return hnp.sum(hnp.sin(hnp.einsum("bij,bjk->bik", hnp.sin(x @ w), hnp.sin(x @ w))))


def kept(policy, f=f, *args):
    """The residuals besides the arguments: names of operations, or of values."""
    found = saved_residuals(hx.checkpoint(f, policy=policy), *(args or (X, W)))
    return sorted(r.label or r.name for r in found if r.source == "operation")


PLAIN = ["cos", "cos", "first", "second", "sin"]
CASES = [
    (None, []),
    (policies.nothing_saveable, []),
    (policies.everything_saveable, PLAIN),
    (policies.dots_saveable, ["dot_general", "dot_general"]),
    (policies.dots_with_no_batch_dims_saveable, ["dot_general", "dot_general"]),
    (policies.save_only_these_names("first"), ["first"]),
    (policies.save_only_these_names("first", "second"), ["first", "second"]),
    (policies.save_only_these_names("third"), []),
    (policies.save_any_names_but_these("first"), ["second"]),
    (policies.save_anything_except_these_names("second"), ["cos", "cos", "first", "sin"]),
    (
        policies.save_from_both_policies(policies.save_only_these_names("first"), policies.dots_saveable),
        ["dot_general", "dot_general", "first"],
    ),
]


NAMES = [getattr(policy, "__name__", str(policy)) for policy, _ in CASES]


@pytest.mark.parametrize(("policy", "names"), CASES, ids=NAMES)
def test_what_is_kept_is_what_the_policy_allows(policy, names):
    assert kept(policy) == names


def test_everything_saveable_keeps_what_is_kept_without_checkpoint():
    plain = [r.type for r in saved_residuals(f, X, W)]
    assert [r.type for r in saved_residuals(hx.checkpoint(f, policy=policies.everything_saveable), X, W)] == plain


def test_products_with_batch_dimensions_are_told_apart():
    x = np.ones((2, 3, 3), "float32")
    w = np.ones((3, 3), "float32")
    assert kept(policies.dots_saveable, batched, x, w).count("dot_general") == 3
    assert kept(policies.dots_with_no_batch_dims_saveable, batched, x, w).count("dot_general") == 2


def test_jax_style_policies_run_unchanged():
    asked = []

    def policy(prim, *avals, **params):
        asked.append((prim.name, [aval.shape for aval in avals], params))
        if prim.name == "name":
            return params["name"] == "second"
        return prim is lax.dot_general_p and params["dimension_numbers"][1] == ((), ())

    assert kept(policy) == ["dot_general", "dot_general", "second"]
    assert ("sin", [(3, 4)], {"accuracy": None}) in asked
    assert any(name == "name" and params["name"] == "first" for name, _, params in asked)


@pytest.mark.parametrize(
    ("answer", "names"),
    [(True, PLAIN), (False, []), (np.True_, PLAIN), (Saveable(), PLAIN), (Saveable, PLAIN), (Recompute(), []),
     (Recompute, []), (Offloadable("device", "pinned_host"), PLAIN)],
)
def test_a_policy_answers_with_a_bool_or_a_verdict(answer, names):
    assert kept(lambda primitive, *types, **params: answer) == names


def test_a_name_is_a_string():
    with pytest.raises(errors.BadArgument, match="checkpoint_name: the name must be a string, got 3"):
        checkpoint_name(X, 3)


def test_another_answer_is_refused():
    with pytest.raises(errors.BadArgument, match="bool, Saveable, Recompute or Offloadable, got 'yes' for sin"):
        hx.grad(hx.checkpoint(hnp.sin, policy=lambda primitive, *types, **params: "yes"))(1.0)


def test_an_offloaded_value_is_kept_and_says_so():
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["first"], names_which_can_be_offloaded=["second"],
        offload_src="device", offload_dst="pinned_host",
    )
    residuals = saved_residuals(hx.checkpoint(f, policy=policy), X, W)
    assert "to_memory" not in {use.operation for residual in residuals for use in residual.uses}
    found = {r.label: r.verdict for r in residuals if r.label}
    assert isinstance(found["first"], Saveable)
    assert found["second"] == Offloadable("device", "pinned_host")
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    assert kept(dots) == ["dot_general", "dot_general"]
    np.testing.assert_allclose(hx.grad(hx.checkpoint(f, policy=policy))(X, W), hx.grad(f)(X, W), rtol=1e-5)


def test_of_two_policies_keeping_comes_before_offloading():
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    both = policies.save_from_both_policies(dots, policies.dots_saveable)
    found = saved_residuals(hx.checkpoint(f, policy=both), X, W)
    assert {type(r.verdict) for r in found if r.name == "dot_general"} == {Saveable}


def test_a_name_is_saved_or_offloaded():
    with pytest.raises(errors.BadArgument, match="'a' in both"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="", offload_dst=""
        )


def test_policies_are_values():
    assert policies.save_only_these_names("a") == policies.save_only_these_names("a")
    assert policies.save_only_these_names("a") != policies.save_any_names_but_these("a")
    twice = [policies.save_from_both_policies(policies.dots_saveable, policies.nothing_saveable) for _ in range(2)]
    assert len(set(twice)) == 1
    both = policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a"))
    assert repr(both) == "save_from_both_policies(dots_saveable, save_only_these_names('a'))"


def test_a_policy_holds_in_sub_programs_too():
    for inner in (hx.jit(f), hx.checkpoint(f)):
        assert kept(policies.dots_saveable, lambda x, w, g=inner: g(x, w) * 2.0) == ["dot_general", "dot_general"]
