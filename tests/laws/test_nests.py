"""Every law of control flow and transformations, over generated functions in which they are nested."""

from __future__ import annotations

import runpy

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax.effects.core.arrays import as_array
from handlax.effects.operations.elementwise.arithmetic import Rem
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.interpreters.core.record import record
from handlax.testing import NEST_LAWS, Law, LawFails, Nest, check_nest_law, programs, random_program, reduced
from handlax.testing.closeness import assert_results_equal
from handlax.testing.generator.control import CONTROL
from handlax.testing.generator.control_flow import NODES
from handlax.testing.generator.unrolled import UNROLLED
from handlax.testing.nest_laws import FORWARD, REVERSE, changes_of, tower

COMPILED = 20  # examples of a law that compiles every one
EXAMPLES = {"compiled": COMPILED, "forward towers": 2 * COMPILED, "reverse towers": 2 * COMPILED}


@pytest.mark.parametrize("law", NEST_LAWS, ids=lambda law: law.name)
def test_law_of_nests(law):
    # a failing nest is reduced by ``check_nest_law``, which knows its text
    @settings(max_examples=EXAMPLES.get(law.name, 60), phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse="reverse" in law.needs, without=law.without), st.integers(0, 99))
    def holds(nest, seed):
        reason = check_nest_law(law, nest, seed)
        assert reason is None or (law.name == "differences" and "no float64 result" in reason)

    holds()


@pytest.fixture
def evaluated_in_float64():
    """Settings of the process, under which rules are cached; in a scope of settings, as above, they are not."""
    changes = {"default_float": "float64", "disable_jit": True}
    before = {name: getattr(hx.config, name) for name in changes}
    try:
        for name, value in changes.items():
            hx.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            hx.config.update(name, value)


@pytest.mark.parametrize("changes", [FORWARD, REVERSE], ids=["forward", "reverse"])
def test_cached_rule_programs_give_what_rules_give(changes, evaluated_in_float64):
    @settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
    @given(programs(reverse=changes is REVERSE), st.integers(0, 99))
    def holds(nest, seed):
        f, inputs = tower(CONTROL, nest, changes_of(seed, changes)), [as_array(x) for x in nest.inputs(seed)]
        found = f(*inputs)
        with hx.rules(jvp={Rem: hx.columns.JVP.find(Rem)}):  # rules are not cached in a scope with rules of its own
            wanted = f(*inputs)
        assert [y.aval for y in found] == [y.aval for y in wanted]
        assert_results_equal(found, wanted, what="formulas, against rules")
        typecheck(record(lambda *xs: list(f(*xs)), [x.aval for x in inputs]))

    holds()
    assert hx.cache_info()["rule_programs"].size


def test_generated_nests_have_every_kind_of_node_and_are_deep():
    texts = [random_program(seed).source for seed in range(200)]
    for name in NODES:
        assert sum(f"hx.{name}(" in text for text in texts) > 10, name
    assert max(len(line) - len(line.lstrip()) for text in texts for line in text.splitlines()) >= 16


def test_every_word_has_both_meanings_where_no_nest_was_written():
    reference = runpy.run_module("handlax.testing.generator.unrolled")["UNROLLED"]
    assert {*NODES} < {*vars(CONTROL)} == {*vars(reference)}


def test_the_same_seed_gives_the_same_nest():
    assert random_program(7) == random_program(7) != random_program(8)


def test_a_law_that_fails_is_reported_with_a_small_nest():
    def refuse(nest, seed):
        assert "hx.scan(" not in nest.source

    law = Law("no loops", "there are no loops", refuse)
    nest = next(nest for nest in map(random_program, range(99)) if nest.source.count("hx.scan(") == 2)
    with pytest.raises(AssertionError, match="there are no loops") as caught:
        check_nest_law(law, nest, 3, seconds=100.0)
    assert len(str(caught.value)) < 500


def looping(test, body, init, **options):
    """A loop of an iteration too few."""
    carry = last = init
    while test(carry):
        last, carry = carry, body(carry)
    return last


COUNTED = """
def program(x, v, w, k, p):
    def g1(c1):
        (i1, f1) = c1
        return (i1 < 3)
    def g2(c2):
        (i2, f2) = c2
        return (i2 + 1, hnp.sin(f2))
    (i3, f3) = hx.while_loop(g1, g2, (0, x))
    return (f3,)
"""


def test_a_nest_is_reduced_to_programs_that_end():
    def check(nest, seed):
        assert_results_equal(nest.by(UNROLLED, while_loop=looping)(*nest.inputs(seed)), nest(*nest.inputs(seed)))

    with pytest.raises(LawFails, match=r"(?s)def program.*hx.while_loop"):
        check_nest_law(Law("loops", "loops are loops", check), Nest(COUNTED), 0, seconds=5.0)


def test_a_law_that_does_not_apply_to_a_nest_says_why():
    laws = {law.name: law for law in NEST_LAWS}
    custom = "def program(x, v, w, k, p):\n    g = hx.custom_jvp(hnp.sin)\n    return (g(x),)\n"
    assert check_nest_law(laws["text"], Nest(custom), 0) == "the nest has custom_jvp"
    reason = check_nest_law(laws["grad"], Nest(COUNTED), 0)
    assert reason is not None and "while_loop" in reason


def test_a_reduced_nest_still_fails_and_nothing_of_it_can_go():
    nest = random_program(5)
    fails = lambda nest: "hnp." in nest.source
    small = reduced(nest, fails)
    assert fails(small) and len(small.source.split()) < 15
    assert reduced(small, fails) == small
    assert isinstance(small, Nest)
